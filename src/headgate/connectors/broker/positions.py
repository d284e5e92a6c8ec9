"""Positions on brokers in the kernel's format: the part that all brokers share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from headgate.errors import Domain, HeadgateError

FORMAT = 1
# The maximum number of topics in a message.
_NAMED = 5

P = TypeVar("P")


def parse_topics(text: str, parse: Callable[[Mapping[str, Any]], P], *, on: str) -> dict[str, P]:
    """Return the position in each topic, by the topic's name.

    Args:
        parse: Parses the JSON of a topic; may raise ValueError, KeyError or TypeError.
        on: The broker's name, for the message.

    Raises:
        HeadgateError: POSITION_UNREADABLE.
    """
    try:
        content = json.loads(text)
        if content["format"] != FORMAT:
            raise unreadable(
                on, f"its format is {content['format']}, and this release reads {FORMAT}"
            )
        return {name: parse(topic) for name, topic in sorted(content["topics"].items())}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise unreadable(on, f"it is corrupted ({error})") from error


def find_unread(reads: Callable[[str], bool], names: Iterable[str]) -> str | None:
    """Return that a topic reads none of the topics that a position is of; None if it does.

    A position without topics is that of a pattern that matched none yet.
    """
    known = [*names]
    if not known or any(map(reads, known)):
        return None
    more = ", ..." if len(known) > _NAMED else ""
    return f"the job had read {', '.join(known[:_NAMED])}{more}"


def unreadable(on: str, problem: str) -> HeadgateError:
    """Return the error for a position that has another form than those of a log.

    Args:
        on: The log's name, for the message.
    """
    return HeadgateError(
        "POSITION_UNREADABLE",
        f"cannot read a position on {on}: {problem}",
        hint="restore from another checkpoint: headgate checkpoints NAME",
        domain=Domain.EXTERNAL,
    )
