"""Rates: how often somebody may ask."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

# More askers than these are not remembered; the one that was quiet longest is forgotten.
_MOST_ASKERS = 10_000
_TELL_EVERY_S = 60.0


@dataclass(frozen=True, slots=True)
class Rate:
    """So many at once, and so many a second after that."""

    burst: int
    per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one client may do.

    Attributes:
        requests: Requests of any kind; a page of the console takes dozens.
        actions: What changes something: a stop, a savepoint, a replay.
        failures: Tokens that are none. Once they are used up, the next wrong ones have to wait.
        body: Bytes of a request's body.
    """

    requests: Rate = Rate(600, 100)
    actions: Rate = Rate(30, 1)
    failures: Rate = Rate(10, 1 / 6)
    body: int = 1 << 20


class Buckets:
    """One token bucket for each asker; safe to use from several threads."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._lock = threading.Lock()
        self._filled: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._told: OrderedDict[str, float] = OrderedDict()

    def take(self, asker: str) -> int:
        """Return 0 and count one, or the whole seconds to wait and count none."""
        with self._lock:
            level, now = self._look(asker)
            if level < 1:
                return self._wait(level)
            self._put(asker, level - 1, now)
            return 0

    def is_news(self, asker: str) -> bool:
        """Tell whether to write down a refusal of this asker: the first one in a minute."""
        with self._lock:
            now, last = self._clock(), self._told.get(asker)
            if last is not None and now - last < _TELL_EVERY_S:
                return False
            self._told[asker] = now
            self._told.move_to_end(asker)
            if len(self._told) > _MOST_ASKERS:
                self._told.popitem(last=False)
            return True

    def _look(self, asker: str) -> tuple[float, float]:
        now = self._clock()
        level, at = self._filled.get(asker, (float(self._rate.burst), now))
        return min(float(self._rate.burst), level + (now - at) * self._rate.per_s), now

    def _put(self, asker: str, level: float, now: float) -> None:
        self._filled[asker] = (level, now)
        self._filled.move_to_end(asker)
        if len(self._filled) > _MOST_ASKERS:
            self._filled.popitem(last=False)

    def _wait(self, level: float) -> int:
        return max(1, math.ceil((1 - level) / self._rate.per_s))
