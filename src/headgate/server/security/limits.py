"""Rate limits: how often a client may ask."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from headgate.errors import HeadgateError

# Of more clients than these, the one that was quiet longest is forgotten.
_MOST_CLIENTS = 10_000
_NEWS_EVERY_S = 60.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rate:
    """A burst, and after it so many a second."""

    burst: int
    per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one client.

    Attributes:
        requests: Requests of any kind; a page of the console takes dozens.
        actions: Changes: a stop, a savepoint, a replay.
        failures: Wrong tokens. Once they are used up, the next wrong ones have to wait.
        body: Bytes of a request's body.
        headers: The time in which a request's headers must arrive.
        connections: Connections that are open at once.
    """

    requests: Rate = Rate(600, 100)
    actions: Rate = Rate(30, 1)
    failures: Rate = Rate(10, 1 / 6)
    body: int = 1 << 20
    headers: timedelta = timedelta(seconds=10)
    connections: int = 256


class RateLimitedError(HeadgateError):
    """The refusal of a client that asks too often.

    Attributes:
        wait: The seconds after which it may ask again.
    """

    def __init__(self, verb: str, wait: int) -> None:
        super().__init__(
            "RATE_LIMITED",
            f"cannot {verb} now: this client sent too many requests",
            hint=f"try again in {wait} seconds",
            retryable=True,
        )
        self.wait = wait


class Buckets:
    """One token bucket for each client; safe to use from several threads."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._lock = threading.Lock()
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._reported: OrderedDict[str, float] = OrderedDict()

    def take(self, client: str) -> int:
        """Return 0 and count one request, or the seconds to wait and count none."""
        with self._lock:
            now = self._clock()
            level, at = self._levels.get(client, (float(self._rate.burst), now))
            level = min(float(self._rate.burst), level + (now - at) * self._rate.per_s)
            if level < 1:
                return max(1, math.ceil((1 - level) / self._rate.per_s))
            _put(self._levels, client, (level - 1, now))
            return 0

    def is_news(self, client: str) -> bool:
        """Return whether to write down a refusal of this client: the first one in a minute."""
        with self._lock:
            now, last = self._clock(), self._reported.get(client)
            if last is not None and now - last < _NEWS_EVERY_S:
                return False
            _put(self._reported, client, now)
            return True


def _put(clients: OrderedDict[str, T], client: str, value: T) -> None:
    clients[client] = value
    clients.move_to_end(client)
    if len(clients) > _MOST_CLIENTS:
        clients.popitem(last=False)
