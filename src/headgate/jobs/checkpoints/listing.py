"""The checkpoints and savepoints of a job, as those see them who look from outside."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from headgate.checkpoints.catalog import (
    Kept,
    list_all,
    pin,
    read_kept,
    unpin,
)
from headgate.checkpoints.manifest import (
    CheckpointFacts,
    Kind,
    Manifest,
    SourceFacts,
    StateFacts,
)
from headgate.checkpoints.verify import Problem, verify
from headgate.errors import HeadgateError
from headgate.flow.names import did_you_mean
from headgate.jobs.checkpoints.portable import is_portable, read_portable
from headgate.jobs.checkpoints.state_check import open_state
from headgate.jobs.home import JobHome
from headgate.jobs.registry import get_home

COMPLETED = "COMPLETED"
DAMAGED = "DAMAGED"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointView:
    """One checkpoint or savepoint.

    Attributes:
        status: COMPLETED, or DAMAGED if it does not even say what it is.
        kind: `checkpoint` or `savepoint`.
        run: The lineage it is of; None if it cannot be told.
        problems: What is wrong with it, as far as somebody looked.
        manifest: What it says of itself; None if it cannot be read.
        rows: Rows that Spark found in the state of each operator; None if nobody opened it.
        file_count: How many files it has, where the manifest does not list them: a server's.
    """

    id: str
    status: str
    kind: str
    folder: Path
    run: str | None
    pinned: bool = False
    problems: tuple[Problem, ...] = ()
    manifest: Manifest | None = None
    rows: Mapping[str, int] | None = None
    file_count: int | None = None

    @property
    def files(self) -> int:
        """How many files it has."""
        if self.file_count is not None:
            return self.file_count
        return 0 if self.manifest is None else len(self.manifest.files)

    @property
    def completed_at(self) -> datetime | None:
        """When its batch was committed."""
        return None if self.manifest is None else self.manifest.facts.completed_at

    def to_json(self) -> dict[str, Any]:
        """Return the checkpoint as JSON values; positions are JSON themselves."""
        told = {
            "id": self.id,
            "status": self.status,
            "kind": self.kind,
            "run": self.run,
            "pinned": self.pinned,
            "folder": str(self.folder),
            "problems": [str(each) for each in self.problems],
            "rows": None if self.rows is None else dict(self.rows),
        }
        if self.manifest is None:
            return told
        return {**told, **_manifest_to_json(self.manifest), "files": self.files}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> CheckpointView:
        """Return the checkpoint that `to_json` told of; its manifest has what was told."""
        parts = [str(each).partition(": ") for each in told["problems"]]
        return cls(
            id=str(told["id"]),
            status=str(told["status"]),
            kind=str(told["kind"]),
            folder=Path(told["folder"]),
            run=told["run"],
            pinned=bool(told["pinned"]),
            problems=tuple(Problem(file, what) for file, _, what in parts),
            manifest=_manifest_from_json(told) if "batch" in told else None,
            rows=told["rows"],
            file_count=told.get("files"),
        )


def list_checkpoints(root: Path, name: str, *, every_run: bool = False) -> list[CheckpointView]:
    """Return the checkpoints of a job's present run and its savepoints, oldest first.

    Args:
        every_run: Those of the runs before, too.
    """
    home = get_home(root, name, verb="list the checkpoints of")
    present = home.find_present_run() or (home.find_json("status.json") or {}).get("lineage")
    lineages = _lineages(home) if every_run else [present] if present else []
    found: list[CheckpointView] = []
    for lineage in lineages:
        found += _look_into(home.checkpoints_folder(lineage), "checkpoint", lineage)
    found += _look_into(home.savepoints_folder, "savepoint", None)
    return sorted(found, key=lambda each: (each.completed_at is not None, _order(each)))


def get_checkpoint(root: Path, name: str, checkpoint: str, *, quick: bool = True) -> CheckpointView:
    """Return one checkpoint by its id, with what is wrong with its files.

    Of those with one id the present run's comes first, then the newest of any other.

    Args:
        checkpoint: `chk-17`, `17`, a savepoint's name, or `latest`.
        quick: Look at names and sizes, and read small files only.

    Raises:
        HeadgateError: CHECKPOINT_NOT_FOUND with those there are.
    """
    wanted = f"chk-{checkpoint}" if checkpoint.isdigit() else checkpoint
    named = _find_named(get_home(root, name, verb="list the checkpoints of"), wanted)
    if named is not None:
        return _verified(named, quick=quick)
    present = list_checkpoints(root, name)
    for views in (present, list_checkpoints(root, name, every_run=True)):
        for each in reversed(views):
            if each.id == wanted or wanted == "latest":
                return _verified(each, quick=quick)
    ids = [each.id for each in reversed(present)]
    raise HeadgateError(
        "CHECKPOINT_NOT_FOUND",
        f"cannot find checkpoint {checkpoint!r} of job {name!r}: "
        + (f"it has {', '.join(ids)}" if ids else "it has none yet"),
        hint=did_you_mean(checkpoint, ids) if ids else f"headgate checkpoints {name}",
    )


def pin_checkpoint(root: Path, name: str, checkpoint: str, *, pinned: bool) -> CheckpointView:
    """Make a checkpoint stay whatever is retained, or let it go when its time comes."""
    found = get_checkpoint(root, name, checkpoint)
    kept = read_kept(found.folder)
    if pinned:
        pin(kept)
    else:
        unpin(kept)
    return get_checkpoint(root, name, found.id)


def verify_anything(root: Path, subject: str, *, open_newest: bool = True) -> list[CheckpointView]:
    """Return what a job's name or a path stands for, every file checked.

    Of a job these are the checkpoints of its present run, its savepoints, and what Spark itself
    works on, under the name `present`. A path is a checkpoint, a savepoint or a folder of Spark's.
    A job's name comes first; `./NAME` is always a path.

    Args:
        open_newest: Have Spark open the state of the newest one that is whole, and count its rows.

    Raises:
        HeadgateError: JOB_NOT_FOUND if it is neither.
    """
    folder = Path(subject)
    is_job = (root / "jobs" / subject).is_dir() and "/" not in subject
    if not is_job and folder.is_dir():
        if is_portable(folder):
            return [_view(read_portable(folder))]
        found = [_verify_folder(folder, folder.name, run=None)]
    else:
        found = _verify_job(get_home(root, subject, verb="verify"))
    return _with_state(found) if open_newest else found


def _with_state(found: list[CheckpointView]) -> list[CheckpointView]:
    """Return the views with the rows of the newest one whose state can be opened."""
    for place, each in reversed(list(enumerate(found))):
        told = each.manifest
        if told is not None and told.facts.has_known_state and not each.problems:
            rows, problems = open_state(read_kept(each.folder))
            return [*found[:place], replace(_with(each, problems), rows=rows), *found[place + 1 :]]
    return found


def _verify_job(home: JobHome) -> list[CheckpointView]:
    found = [_verified(each, quick=False) for each in list_checkpoints(home.root, home.name)]
    lineage = home.find_present_run()
    folder = None if lineage is None else _find_live(home, lineage)
    if folder is not None and (folder / "commits").is_dir():
        found.append(_verify_folder(folder, "present", run=lineage))
    return found


def _verify_folder(folder: Path, name: str, *, run: str | None) -> CheckpointView:
    try:
        view = _view(read_kept(folder))
    except HeadgateError:
        view = CheckpointView(id=name, status=COMPLETED, kind="folder", folder=folder, run=run)
    return _with(view, verify(folder))


def _look_into(folder: Path, kind: str, lineage: str | None) -> Iterable[CheckpointView]:
    kept, unreadable = list_all(folder)
    yield from (_view(each) for each in kept)
    yield from (_unreadable(folder, each, kind, lineage) for each in unreadable)


def look_at_folder(folder: Path, kind: str, lineage: str | None) -> CheckpointView:
    """Return the checkpoint that a folder is, or is meant to be."""
    try:
        return _view(read_kept(folder))
    except HeadgateError as error:
        return _unreadable(folder.parent, Problem(folder.name, error.message), kind, lineage)


def _unreadable(folder: Path, problem: Problem, kind: str, lineage: str | None) -> CheckpointView:
    return CheckpointView(
        id=problem.file,
        status=DAMAGED,
        kind=kind,
        folder=folder / problem.file,
        run=lineage,
        problems=(problem,),
    )


def _view(kept: Kept) -> CheckpointView:
    return CheckpointView(
        id=kept.id,
        status=COMPLETED,
        kind=kept.kind.value,
        folder=kept.folder,
        run=kept.manifest.facts.lineage,
        pinned=kept.pinned,
        manifest=kept.manifest,
    )


def _find_named(home: JobHome, wanted: str) -> CheckpointView | None:
    """Return the present run's checkpoint of a name by its folder, where nothing else is meant."""
    present = home.find_present_run()
    is_number = wanted.removeprefix("chk-").isdigit()
    if present is None or not is_number or (home.savepoints_folder / wanted).exists():
        return None
    try:
        return _view(read_kept(home.checkpoints_folder(present) / wanted))
    except HeadgateError:
        return None


def _verified(view: CheckpointView, *, quick: bool) -> CheckpointView:
    return view if view.manifest is None else _with(view, verify(view.folder, quick=quick))


def _with(view: CheckpointView, problems: Sequence[Problem]) -> CheckpointView:
    return CheckpointView(
        id=view.id,
        status=DAMAGED if problems else view.status,
        kind=view.kind,
        folder=view.folder,
        run=view.run,
        pinned=view.pinned,
        problems=tuple(problems),
        manifest=view.manifest,
    )


def _find_live(home: JobHome, lineage: str) -> Path | None:
    from headgate.jobs.runs.lineage import find_run

    run = find_run(home, lineage)
    return None if run is None else run.checkpoint


def _lineages(home: JobHome) -> list[str]:
    runs = home.path / "runs"
    return sorted(each.name for each in runs.iterdir()) if runs.is_dir() else []


def _order(view: CheckpointView) -> tuple[float, str]:
    at = view.completed_at
    return (0.0 if at is None else at.timestamp(), view.id)


def _manifest_to_json(manifest: Manifest) -> dict[str, Any]:
    facts = manifest.facts
    return {
        "batch": manifest.batch,
        "completed_at": facts.completed_at.isoformat(),
        "duration_ms": round(facts.duration.total_seconds() * 1000),
        "sources": {
            name: {"records": each.records, "position": _position(each.position)}
            for name, each in facts.sources.items()
        },
        "watermark": None if facts.watermark is None else facts.watermark.isoformat(),
        "state": {
            uid: {"rows": each.rows, "bytes": each.bytes} for uid, each in facts.state.items()
        },
        "full_bytes": manifest.full_bytes,
        "new_bytes": manifest.new_bytes,
        "parallelism": facts.parallelism,
    }


def _manifest_from_json(told: Mapping[str, Any]) -> Manifest:
    watermark = told["watermark"]
    return Manifest(
        kind=Kind(told["kind"]),
        batch=int(told["batch"]),
        facts=CheckpointFacts(
            job="",
            lineage=str(told["run"]),
            completed_at=datetime.fromisoformat(told["completed_at"]),
            duration=timedelta(milliseconds=told["duration_ms"]),
            sources={
                name: SourceFacts(_position_text(each["position"]), int(each["records"]))
                for name, each in told["sources"].items()
            },
            watermark=None if watermark is None else datetime.fromisoformat(watermark),
            state={
                uid: StateFacts(int(each["rows"]), int(each["bytes"]))
                for uid, each in told["state"].items()
            },
            parallelism=int(told["parallelism"]),
        ),
        full_bytes=int(told["full_bytes"]),
        new_bytes=int(told["new_bytes"]),
        files={},
    )


def _position_text(position: Any) -> str | None:
    return position if position is None or isinstance(position, str) else json.dumps(position)


def _position(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text
