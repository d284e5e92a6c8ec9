"""Restart strategies: whether a failed job is tried again, and after what wait.

Each is a value that decides from the failures alone, without a clock.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from headgate._units import format_duration, parse_duration
from headgate.errors import HeadgateError
from headgate.jobs.lifecycle.failures import Failure

# An attempt that ran this long before it failed shows that the problem before it was fixed.
HEALTHY = timedelta(minutes=10)

_LARGEST_FACTOR = 100
_FACTOR = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_HINT = (
    "write exponential:FIRST,LONGEST,FACTOR, fixed-delay:RESTARTS,WAIT, "
    "failure-rate:RESTARTS,PER,WAIT or none, as in fixed-delay:5,10s"
)


class RestartStrategy(Protocol):
    """Decides what follows a failure."""

    @property
    def memory(self) -> int:
        """How many of the last failures the decision depends on; older ones may be dropped."""

    def next_delay(self, failures: Sequence[Failure]) -> timedelta | None:
        """Return the wait before the next attempt, or None to give up.

        Args:
            failures: The failures since the job was submitted, oldest first; never empty. At
                least the last `memory` of them.
        """

    def __str__(self) -> str:
        """Return the text that `parse_strategy` reads."""


@dataclass(frozen=True, slots=True)
class Exponential:
    """Waits longer after each failure up to a limit, and never gives up.

    The wait is the first one again after an attempt that ran for 10 minutes.
    """

    first: timedelta
    longest: timedelta
    factor: float

    @property
    def memory(self) -> int:
        """The number of failures after which the wait is the longest."""
        if self.factor == 1:
            return 1
        # One more than the logarithm, which rounding may make slightly too small.
        return 2 + math.ceil(math.log(self.longest / self.first) / math.log(self.factor))

    def next_delay(self, failures: Sequence[Failure]) -> timedelta | None:
        """Return the first wait times the factor for each failure since the job was healthy."""
        if not failures[-1].retryable:
            return None
        before = min(_count_since_health(failures), self.memory) - 1
        seconds = self.first.total_seconds() * self.factor**before
        if seconds >= self.longest.total_seconds():
            return self.longest
        return max(self.first, timedelta(seconds=seconds))

    def __str__(self) -> str:
        factor = repr(self.factor).removesuffix(".0")
        return f"exponential:{format_duration(self.first)},{format_duration(self.longest)},{factor}"


@dataclass(frozen=True, slots=True)
class FixedDelay:
    """Waits the same each time, and gives up after a number of restarts.

    Attributes:
        restarts: How many restarts are allowed; 0 gives up at the first failure.
        per: Only failures within this interval count; None for all failures of the job.
    """

    restarts: int = 0
    wait: timedelta = timedelta(0)
    per: timedelta | None = None

    @property
    def memory(self) -> int:
        """One failure more than restarts."""
        return self.restarts + 1

    def next_delay(self, failures: Sequence[Failure]) -> timedelta | None:
        """Return the wait, or None after more failures than allowed restarts."""
        last = failures[-1]
        count = sum(self.per is None or last.at - failure.at < self.per for failure in failures)
        return self.wait if last.retryable and count <= self.restarts else None

    def __str__(self) -> str:
        if not self.restarts:
            return "none"
        wait = format_duration(self.wait)
        if self.per is None:
            return f"fixed-delay:{self.restarts},{wait}"
        return f"failure-rate:{self.restarts},{format_duration(self.per)},{wait}"


def parse_strategy(text: str) -> RestartStrategy:
    """Return the strategy that `--restart` names, or raise BAD_RESTART."""
    written = text.strip()
    name, colon, rest = written.partition(":")
    parts = [part.strip() for part in rest.split(",")] if colon else []
    match name, parts:
        case "exponential", [first, longest, factor]:
            return _exponential(text, first, longest, factor)
        case "fixed-delay", [restarts, wait]:
            return FixedDelay(_restarts(text, restarts), _duration(text, wait))
        case "failure-rate", [restarts, per, wait]:
            return FixedDelay(
                _restarts(text, restarts), _duration(text, wait), _interval(text, per)
            )
        case "none", [] if not colon:
            return FixedDelay()
        case (("exponential" | "fixed-delay" | "failure-rate" | "none"), _):
            needed = {"fixed-delay": "2 values", "none": "no values"}.get(name, "3 values")
            raise _bad(text, f"{name} takes {needed}, got {len(parts)}")
    raise _bad(text, f"there is no strategy {name!r}")


def _exponential(text: str, first: str, longest: str, factor: str) -> Exponential:
    strategy = Exponential(_interval(text, first), _interval(text, longest), _factor(text, factor))
    if strategy.longest < strategy.first:
        raise _bad(text, f"the longest wait must be at least the first, {first}, got {longest}")
    return strategy


def _factor(text: str, factor: str) -> float:
    if not _FACTOR.fullmatch(factor) or not 1 <= float(factor) <= _LARGEST_FACTOR:
        raise _bad(text, f"factor must be a number from 1 to {_LARGEST_FACTOR}, got {factor!r}")
    return float(factor)


def _restarts(text: str, count: str) -> int:
    if not (count.isascii() and count.isdigit() and len(count) <= 9 and int(count) > 0):
        raise _bad(text, f"restarts must be a positive integer, got {count!r}")
    return int(count)


def _interval(text: str, written: str) -> timedelta:
    duration = _duration(text, written)
    if not duration:
        raise _bad(text, f"a wait must be greater than zero, got {written}")
    return duration


def _duration(text: str, written: str) -> timedelta:
    try:
        return parse_duration(written)
    except HeadgateError as error:
        raise _bad(text, f"a duration must look like 500ms, 10s or 5m, got {written!r}") from error


def _bad(text: str, problem: str) -> HeadgateError:
    return HeadgateError(
        "BAD_RESTART", f"cannot read restart strategy {text!r}: {problem}", hint=_HINT
    )


def _count_since_health(failures: Sequence[Failure]) -> int:
    """Return the number of failures since the last healthy attempt, its own included."""
    for count, failure in enumerate(reversed(failures), start=1):
        if failure.healthy >= HEALTHY:
            return count
    return len(failures)
