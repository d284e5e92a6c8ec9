"""What a call has changed, as the reply to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from headgate.functions.processes.outputs import Outputs
from headgate.functions.processes.scope import Scope
from headgate.functions.processes.wire import Reply, Request, What, pack_ints, pack_longs
from headgate.functions.states.values import ValueState

if TYPE_CHECKING:
    from headgate.functions.processes.calls import ProcessShape, State


def settle(
    scope: Scope,
    states: Sequence[State],
    outputs: Outputs,
    shape: ProcessShape,
    request: Request,
    cleanups: list[int | None],
    errors: list[tuple[int, str]],
) -> Reply:
    """Return the reply to a call.

    Args:
        cleanups: When the clean-up of each key is due, as its record says.
    """
    rows = sum(outputs.lengths())
    parts = [section for output in outputs.all for section in output.sections()]
    pages = [(state, state.settle()) for state in states if not isinstance(state, ValueState)]
    places = [at for at, changed in enumerate(scope.changed) if changed]
    due = _plan(scope, states, request, cleanups, places)
    parts += _records(states, shape.record, places, due)
    for state, changes in pages:
        batch = state.batch(changes).serialize() if changes.keys else b""
        parts += changes.sections(batch)
    timers = scope.timers
    parts.append(pack_ints(timers.keys) + bytes(timers.whats) + pack_longs(timers.moments))
    return Reply(rows, errors, parts)


def _plan(
    scope: Scope,
    states: Sequence[State],
    request: Request,
    cleanups: list[int | None],
    places: Sequence[int],
) -> list[int | None]:
    """Return when the clean-up of each changed key is due, and note the changes."""
    due: list[int | None] = []
    expiring = [state for state in states if state.has_ttl]
    if not expiring and cleanups.count(None) == len(cleanups):
        return [None] * len(places)
    for at in places:
        scope.at = at
        old = None if request.cleanups[at] else cleanups[at]
        times = [time for state in expiring if (time := state.earliest(at)) is not None]
        new = min(times, default=None)
        if old is not None and new is not None and old <= new:
            # It comes early, and finds out then when the next one is due.
            new = old
        if old is not None and old != new:
            scope.timers.add(What.EXPIRY, old, remove=True)
        if new is not None and old != new:
            scope.timers.add(What.EXPIRY, new)
        due.append(new)
    return due


def _records(
    states: Sequence[State],
    schema: pa.Schema,
    places: Sequence[int],
    due: list[int | None],
) -> list[bytes]:
    """Return the sections with the records of the changed keys."""
    if not places:
        return [b"", b"", b""]
    columns = [state.column(places) for state in states]
    columns.append(pa.array(due, pa.int64()))
    batch = pa.RecordBatch.from_arrays(columns, schema=schema)
    removed = bytearray(len(places))
    counts = [column.null_count for column in columns]
    if all(counts):
        present = [column.is_valid().to_pylist() for column in columns]
        removed = bytearray(not any(row) for row in zip(*present, strict=True))
    return [pack_ints(places), bytes(removed), batch.serialize()]
