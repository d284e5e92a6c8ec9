"""How lists are paged: `limit` and `after` in a request, `next` and `more` in its answer.

`next` is the `after` of the next page, and `more` says whether that page has entries now. A list
that grows, such as a log, is followed by asking with `next` again and again.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Query

from headgate.checkpoints.checkpoint import AnyCheckpoint, by_age
from headgate.errors import HeadgateError

# The place of a checkpoint in a list of all: the later, the greater.
_Place = tuple[bool, float, str, str, str]

AFTER = "The `next` of the page before."
Limit = Annotated[int, Query(ge=1, le=1000, description="How many, at most.")]
Newest = Annotated[int, Query(ge=0, le=1000, description="How many of the newest, at most.")]
CheckpointCursor = Annotated[
    str | None, Query(max_length=1024, description=f"{AFTER} Without it, the newest ones.")
]
EventCursor = Annotated[
    str | None,
    Query(
        pattern=r"^[0-9]{1,16}$",
        description=f"{AFTER} `0` begins with the first event. Without it, the newest ones.",
    ),
]
LogCursor = Annotated[
    str | None,
    Query(
        pattern=r"^[0-9]{1,20}:[0-9]{1,19}$",
        description=f"{AFTER} It has the lines that were written since, up to a megabyte. Without "
        "it, the last lines.",
    ),
]


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """A page of checkpoints and savepoints, newest first.

    Attributes:
        total: How many there are in all.
        next: The `after` of the next page; None if there are no checkpoints.
        more: Whether there are older ones.
    """

    checkpoints: tuple[AnyCheckpoint, ...]
    total: int
    next: str | None
    more: bool


def page_checkpoints(
    checkpoints: Sequence[AnyCheckpoint], *, after: str | None, limit: int
) -> Checkpoints:
    """Return a page of checkpoints, newest first.

    A checkpoint that is added or deleted meanwhile shifts no other one out of the next page.

    Args:
        checkpoints: All of them, in any order.
        after: The `next` of the page before; anything else raises BAD_POSITION.
    """
    rest = sorted(checkpoints, key=_place, reverse=True)
    if after is not None:
        last_seen = _parse(after)
        rest = [checkpoint for checkpoint in rest if _place(checkpoint) < last_seen]
    page = rest[:limit]
    following = _format(_place(page[-1])) if page else after
    return Checkpoints(tuple(page), len(checkpoints), following, len(rest) > len(page))


def _place(checkpoint: AnyCheckpoint) -> _Place:
    # The id of a checkpoint is unique within its run.
    return (*by_age(checkpoint), checkpoint.run or "", str(checkpoint.kind))


def _format(place: _Place) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def _parse(cursor: str) -> _Place:
    try:
        dated, at, name, run, kind = json.loads(base64.urlsafe_b64decode(cursor))
        return bool(dated), float(at), str(name), str(run), str(kind)
    except (ValueError, TypeError) as error:
        raise HeadgateError(
            "BAD_POSITION",
            f"cannot list checkpoints after {cursor[:256]!r}: it is not the next of a page",
            hint="use the next of the previous response, or omit it",
        ) from error
