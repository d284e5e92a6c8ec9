"""Positions on brokers in the kernel's format: the part that all brokers share."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from headgate.errors import Domain, HeadgateError

FORMAT = 1

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
            raise _unreadable(
                on, f"its format is {content['format']}, and this release reads {FORMAT}"
            )
        return {name: parse(topic) for name, topic in sorted(content["topics"].items())}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unreadable(on, f"it is corrupted ({error})") from error


def _unreadable(on: str, problem: str) -> HeadgateError:
    return HeadgateError(
        "POSITION_UNREADABLE",
        f"cannot read a position on {on}: {problem}",
        hint="restore from another checkpoint: headgate checkpoints NAME",
        domain=Domain.EXTERNAL,
    )
