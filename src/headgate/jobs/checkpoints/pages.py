"""A job's checkpoints a page at a time: of many that are kept, only those shown are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from headgate.checkpoints.catalog import Kind, find_number, list_names, read_kept
from headgate.errors import HeadgateError
from headgate.jobs.checkpoints.listing import CheckpointView, look_at_folder
from headgate.jobs.home import JobHome
from headgate.jobs.registry import get_home

DEFAULT_LIMIT = 50


@dataclass(frozen=True, slots=True)
class CheckpointPage:
    """Some of a job's checkpoints and savepoints.

    Attributes:
        total: How many there are on all pages.
        counts: How many of each kind, by `checkpoint` and `savepoint`.
    """

    total: int
    checkpoints: tuple[CheckpointView, ...]
    counts: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """Return the page as JSON values."""
        return {
            "total": self.total,
            "checkpoints": [each.to_json() for each in self.checkpoints],
            "counts": dict(self.counts),
        }


# A checkpoint that was not read yet: its run, its batch, its name and its kind, in order of time.
_Place: TypeAlias = tuple[str, int, str, Kind]


def page_checkpoints(
    root: Path,
    name: str,
    *,
    offset: int = 0,
    limit: int = DEFAULT_LIMIT,
    newest_first: bool = True,
    every_run: bool = False,
) -> CheckpointPage:
    """Return some of what `list_checkpoints` lists, however much that is.

    Args:
        offset: How many to pass over.
        every_run: Those of the runs before, too.
    """
    home = get_home(root, name, verb="list the checkpoints of")
    checkpoints = _checkpoints(home, every_run=every_run)
    savepoints = [_savepoint(home, each) for each in list_names(home.savepoints_folder)]
    places = sorted([*checkpoints, *savepoints], reverse=newest_first)
    return CheckpointPage(
        len(places),
        tuple(_look(home, place) for place in places[offset : offset + limit]),
        {Kind.CHECKPOINT.value: len(checkpoints), Kind.SAVEPOINT.value: len(savepoints)},
    )


def _look(home: JobHome, place: _Place) -> CheckpointView:
    run, _, name, kind = place
    of = home.checkpoints_folder(run) if kind is Kind.CHECKPOINT else home.savepoints_folder
    return look_at_folder(of / name, kind.value, run or None)


def _checkpoints(home: JobHome, *, every_run: bool) -> list[_Place]:
    present = home.find_present_run() or (home.find_json("status.json") or {}).get("lineage")
    runs = list_names(home.path / "runs") if every_run else [present] if present else []
    found: list[_Place] = []
    for run in runs:
        for name in list_names(home.checkpoints_folder(run)):
            batch = find_number(name)
            found.append((run, -1 if batch is None else batch, name, Kind.CHECKPOINT))
    return found


def _savepoint(home: JobHome, name: str) -> _Place:
    # Named as the user likes; there are few of them.
    try:
        manifest = read_kept(home.savepoints_folder / name).manifest
    except HeadgateError:
        return ("", -1, name, Kind.SAVEPOINT)
    return (manifest.facts.lineage, manifest.batch, name, Kind.SAVEPOINT)
