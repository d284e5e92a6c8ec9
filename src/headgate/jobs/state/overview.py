"""The operators of a job that hold state, with their sizes: read from files, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headgate.engine.settings import state_variables
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.state.places import NOW, Place, find_place, key_columns
from headgate.jobs.state.values import StateOperator, StateOverview


def list_state(home: JobFolder, *, at: str | None = None) -> StateOverview:
    """Return the operators of a job that hold state, and its size; `at` as in `find_place`."""
    place = find_place(home, at)
    sizes = _sizes(home, place)
    return StateOverview(
        job=home.name,
        checkpoint=place.checkpoint,
        batch=place.batch,
        moment=place.moment,
        operators=tuple(_operator(place, uid, sizes.get(uid, (0, 0))) for uid in place.operators),
    )


def _operator(place: Place, uid: str, size: tuple[int, int]) -> StateOperator:
    node = place.flow.node(uid)
    columns = key_columns(place, node)
    return StateOperator(
        uid=uid,
        kind=node.operator,
        variables=state_variables(node),
        keys=tuple(name for name, _ in columns),
        key_types=tuple(kind for _, kind in columns),
        rows=size[0],
        bytes=size[1],
    )


def _sizes(home: JobFolder, place: Place) -> dict[str, tuple[int, int]]:
    """Return rows and bytes by uid, of the checkpoint or of the job's last status."""
    if place.checkpoint != NOW and place.sizes is not None:
        return {uid: (held.rows, held.bytes) for uid, held in place.sizes.items()}
    status: Mapping[str, Any] = home.find_json("status.json") or {}
    rows, sizes = status.get("state_rows") or {}, status.get("state_bytes") or {}
    return {uid: (int(rows[uid]), int(sizes.get(uid, 0))) for uid in rows}
