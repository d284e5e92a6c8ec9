"""The start of reading without a stored position: text from a user, translated for the kernel.

`earliest`, `latest`, or a time (`2026-11-15T10:05`, UTC without a zone: the first record of that
time or later, by partition). Each broker adds positions by partition, such as `offsets:0=15,1=20`;
partitions that are not named start at their earliest record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from headgate.errors import HeadgateError

WORDS = ("earliest", "latest")

_TIMESTAMP = re.compile(r"timestamp:[0-9]+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class StartSyntax:
    """The starts of one broker.

    Attributes:
        prefix: Introduces positions by partition.
        example: Positions by partition for `--start`.
        positions: The name of positions in messages.
        find_position: Returns the normalized position in a partition, or None if it is not valid.
    """

    prefix: str
    example: str
    positions: str
    find_position: Callable[[object], object | None]

    def check_start(self, start: object, *, topic: str) -> str | None:
        """Return a start as normalized text: a time in UTC, positions by partition.

        Args:
            start: Text, a datetime, or positions by partition.
            topic: The topic's name for the message; may be empty.

        Raises:
            HeadgateError: BAD_TOPIC.
        """
        match start:
            case None:
                return None
            case str():
                return self._check_text(start.strip(), topic)
            case datetime():
                return _time_text(start)
            case Mapping() if text := self._find_positions(start.items()):
                return text
            case _:
                raise self._bad_start(topic, start)

    def kernel_start(self, start: str) -> str:
        """Return a start as the kernel's source reads it.

        Args:
            start: A result of `check_start`, or the JSON of a position, which is unchanged.
        """
        if start.startswith("{"):
            return start
        checked = self._check_text(start.strip(), "")
        if checked in WORDS or checked.startswith((self.prefix, "timestamp:")):
            return checked
        elapsed = datetime.fromisoformat(checked) - _EPOCH
        return f"timestamp:{elapsed // timedelta(milliseconds=1)}"

    def _check_text(self, text: str, topic: str) -> str:
        if text in WORDS or _TIMESTAMP.fullmatch(text):
            return text
        if text.startswith(self.prefix):
            pairs = (pair.partition("=") for pair in text.removeprefix(self.prefix).split(","))
            positions = self._find_positions((name.strip(), at.strip()) for name, _, at in pairs)
            if positions:
                return positions
        try:
            return _time_text(datetime.fromisoformat(text))
        except (ValueError, OverflowError):
            raise self._bad_start(topic, text) from None

    def _find_positions(self, pairs: Iterable[tuple[object, object]]) -> str | None:
        positions = {}
        for partition, text in pairs:
            number, position = find_count(partition), self.find_position(text)
            if number is None or position is None:
                return None
            positions[number] = position
        texts = [f"{number}={position}" for number, position in sorted(positions.items())]
        return self.prefix + ",".join(texts) if texts else None

    def _bad_start(self, topic: str, start: object) -> HeadgateError:
        of = f"topic {topic!r}" if topic else "a topic"
        return HeadgateError(
            "BAD_TOPIC",
            f"cannot start reading {of} at {start!r}: a start must be earliest, latest, a time or "
            f"{self.positions} by partition",
            hint=f"use earliest, latest, 2026-11-15T10:05:00, or {self.example}",
        )


def find_count(value: object) -> int | None:
    """Return a number from 0 on, given as an integer or as digits; None for another value."""
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() else None
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return int(str(value)) if is_count else None


def _time_text(moment: datetime) -> str:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat()


OFFSETS = StartSyntax("offsets:", "offsets:0=15,1=20", "offsets", find_count)
