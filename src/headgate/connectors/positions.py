"""Positions on brokers, as the kernel's sources write them: what is the same on each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from headgate.errors import Domain, HeadgateError

FORMAT = 1

P = TypeVar("P")


def parse_topics(text: str, parse: Callable[[Mapping[str, Any]], P], *, on: str) -> dict[str, P]:
    """Return what a position says of each topic, by the topic's name.

    Args:
        parse: Makes it of the JSON; may raise as wrong JSON makes it.
        on: The broker's name, for the message.

    Raises:
        HeadgateError: POSITION_UNREADABLE.
    """
    try:
        content = json.loads(text)
        if content["format"] != FORMAT:
            raise _unreadable(on, f"its format is {content['format']}, and {FORMAT} is known")
        return {name: parse(each) for name, each in sorted(content["topics"].items())}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unreadable(on, f"it is damaged ({error})") from error


def _unreadable(on: str, found: str) -> HeadgateError:
    return HeadgateError(
        "POSITION_UNREADABLE",
        f"cannot read a position on {on}: {found}",
        hint="restore from another checkpoint: headgate checkpoints NAME",
        domain=Domain.EXTERNAL,
    )
