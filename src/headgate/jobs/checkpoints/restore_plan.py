"""What a restore would do, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from headgate.checkpoints.checkpoint import Checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePreview:
    """What a restore would do, in the words of whoever asks; a server tells of it, too.

    Attributes:
        checkpoint: Its id.
        kind: `checkpoint` or `savepoint`.
    """

    checkpoint: str
    kind: str
    completed_at: datetime
    folder: Path
    as_it_was: bool
    taken: tuple[str, ...]
    dropped: tuple[str, ...]
    empty: tuple[str, ...]
    again: Mapping[str, int | None]
    outputs: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "checkpoint": self.checkpoint,
            "kind": self.kind,
            "completed_at": self.completed_at.isoformat(),
            "folder": str(self.folder),
            "as_it_was": self.as_it_was,
            "state_taken": list(self.taken),
            "state_dropped": list(self.dropped),
            "starts_empty": list(self.empty),
            "records_again": dict(self.again),
            "outputs_with_repeats": list(self.outputs),
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> RestorePreview:
        """Return what `to_json` told of."""
        return cls(
            checkpoint=str(told["checkpoint"]),
            kind=str(told["kind"]),
            completed_at=datetime.fromisoformat(told["completed_at"]),
            folder=Path(told["folder"]),
            as_it_was=bool(told["as_it_was"]),
            taken=tuple(told["state_taken"]),
            dropped=tuple(told["state_dropped"]),
            empty=tuple(told["starts_empty"]),
            again=dict(told["records_again"]),
            outputs=tuple(told["outputs_with_repeats"]),
        )


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """What a restore would do.

    Attributes:
        as_it_was: Whether Spark goes on from the checkpoint itself; else operators take their
            state from it by uid, and sources their positions.
        taken: Operators that keep their state.
        dropped: Operators whose state is left behind, as the user said.
        empty: Operators that start empty, since the checkpoint does not know them.
        again: Records that will be read again, by source: those between the checkpoint and where
            the present run is. None where that cannot be told.
        outputs: Outputs that may receive rows they have received before.
    """

    kept: Checkpoint
    as_it_was: bool
    taken: tuple[str, ...]
    dropped: tuple[str, ...]
    empty: tuple[str, ...]
    again: Mapping[str, int | None]
    outputs: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return self.preview().to_json()

    def preview(self) -> RestorePreview:
        """Return what the plan would do, for whoever asks."""
        return RestorePreview(
            checkpoint=self.kept.id,
            kind=self.kept.kind.value,
            completed_at=self.kept.completed_at,
            folder=self.kept.folder,
            as_it_was=self.as_it_was,
            taken=self.taken,
            dropped=self.dropped,
            empty=self.empty,
            again=self.again,
            outputs=self.outputs,
        )
