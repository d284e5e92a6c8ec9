"""The timeline as an element of a page: marks, and a handle that is dragged to a moment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from nicegui import ui
from nicegui.events import GenericEventArguments

from headgate.checkpoints.checkpoint import Checkpoint
from headgate.jobs.views.past import Past, PastRestore
from headgate.server.console.charts.timeline import Track, in_ms, lay_out
from headgate.server.console.parts.formats import format_bytes, format_moment

OnMoment = Callable[[datetime], Awaitable[None]]


class MomentsTrack(ui.element, component="../static/moments_track.js"):
    """Shows a past, and calls back with the moment to which its handle is moved."""

    def __init__(self, on_moment: OnMoment) -> None:
        super().__init__()
        self._props["label"] = "Moment to go back to"

        async def moved(event: GenericEventArguments) -> None:
            await on_moment(datetime.fromtimestamp(float(event.args["at"]) / 1000, UTC))

        self.on("moment", moved)

    def show(self, past: Past, moment: datetime | None, now: datetime) -> None:
        """Show a past, with the handle at a moment; a handle that is dragged stays in the hand."""
        completed = [checkpoint.completed_at for checkpoint in past.checkpoints]
        # A restore before the first checkpoint stands at the edge.
        inside = [
            restore.at for restore in past.restores if not completed or restore.at >= completed[0]
        ]
        left = [savepoint.completed_at for savepoint in past.left_behind]
        track = lay_out([*completed, *left, *inside], now)
        self._set("marks", [_mark(checkpoint, track) for checkpoint in past.checkpoints])
        self._set("behind", [mark_left_behind(savepoint, track) for savepoint in past.left_behind])
        self._set("restores", [_restore(restore, track) for restore in past.restores])
        for name, value in track.to_json().items():
            self._set(name, value)
        self._set("value", in_ms(moment or track.ends))

    def _set(self, name: str, value: Any) -> None:
        if self._props.get(name) != value:
            self._props[name] = value


def _mark(checkpoint: Checkpoint, track: Track) -> dict[str, Any]:
    pinned = ", pinned" if checkpoint.pinned else ""
    at = checkpoint.completed_at
    return {
        "id": checkpoint.id,
        "source": checkpoint.source,
        "kind": checkpoint.kind.value,
        "pinned": checkpoint.pinned,
        "at": in_ms(at),
        "place": round(track.place(at), 5),
        "title": f"{checkpoint.id}, {format_moment(at)} UTC, "
        f"{format_bytes(checkpoint.full_bytes)}{pinned}",
    }


def mark_left_behind(savepoint: Checkpoint, track: Track) -> dict[str, Any]:
    """Return the mark of a savepoint that no moment means: it is of a run that a restore left."""
    mark = _mark(savepoint, track)
    how = f"of run {savepoint.run}: restore it from the history"
    return {**mark, "title": f"{mark['title']}, {how}"}


def _restore(restore: PastRestore, track: Track) -> dict[str, Any]:
    return {
        "at": in_ms(restore.at),
        "place": round(track.place(restore.at), 5),
        "title": f"restored from {restore.checkpoint} of run {restore.of} "
        f"at {format_moment(restore.at)} UTC",
    }
