"""Which kept checkpoints may go. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from headgate.checkpoints.checkpoint import Checkpoint
from headgate.checkpoints.manifest import Kind

KEEP_ALL = timedelta(minutes=10)
KEEP_MINUTES = timedelta(hours=6)
_MINUTE = timedelta(minutes=1)
_HOUR = timedelta(hours=1)


def to_delete(
    kept: Sequence[Checkpoint], *, retain: int, retain_for: timedelta | None, now: datetime
) -> list[str]:
    """Return the ids of the checkpoints that may go, oldest first.

    The newest `retain` stay, however old they are. With `retain_for`, of the younger ones all of
    the last 10 minutes stay too, then the first of every minute, after 6 hours the first of every
    hour. What was pinned stays, and so do savepoints. Deleting what is returned and asking again
    returns nothing.
    """
    ordered = sorted(
        (checkpoint for checkpoint in kept if checkpoint.kind is Kind.CHECKPOINT),
        key=lambda checkpoint: checkpoint.completed_at,
    )
    stays = {checkpoint.id for checkpoint in ordered[-retain:]} if retain > 0 else set()
    stays |= {checkpoint.id for checkpoint in ordered if checkpoint.pinned}
    if retain_for is not None:
        stays |= _thinned(ordered, retain_for, now)
    return [checkpoint.id for checkpoint in ordered if checkpoint.id not in stays]


def _thinned(ordered: Sequence[Checkpoint], retain_for: timedelta, now: datetime) -> set[str]:
    minutes, hours = _first_of_each(ordered, _MINUTE), _first_of_each(ordered, _HOUR)
    stays = set()
    for checkpoint in ordered:
        age = now - checkpoint.completed_at
        first = age <= KEEP_ALL or checkpoint.id in (minutes if age <= KEEP_MINUTES else hours)
        if first and age <= retain_for:
            stays.add(checkpoint.id)
    return stays


def _first_of_each(ordered: Sequence[Checkpoint], step: timedelta) -> set[str]:
    """Return the oldest checkpoint of every minute, or hour, of the clock.

    Of the clock and not of age: so a checkpoint's place never changes. The first of an hour is
    the first of its minute too, so that what is kept later was kept before.
    """
    first: dict[int, str] = {}
    for checkpoint in ordered:
        first.setdefault(
            int(checkpoint.completed_at.timestamp() // step.total_seconds()), checkpoint.id
        )
    return set(first.values())
