"""The process of one attempt: reports to its supervisor, and ends with it.

The first message to it is the attempt's spec, the others are orders. Its own messages are news.
"""

from __future__ import annotations

import contextlib
import queue
import signal
import time
from collections.abc import Callable
from typing import Any

# Registers the kinds of topics that a flow's JSON may name.
import headgate.connectors  # noqa: F401
from headgate._clock import SystemClock
from headgate._codec import decode
from headgate.engine.attempt.attempt import Attempt, Ending
from headgate.engine.attempt.failures import explain
from headgate.jobs.attempts.damage import find_damage
from headgate.jobs.attempts.wire import (
    AttemptSpec,
    Batch,
    Ended,
    Failed,
    Loading,
    Measured,
    News,
    RowShown,
    Running,
    SourceEvent,
    encode_news,
)
from headgate.jobs.lifecycle.failures import format_trace, to_failure
from headgate.jobs.lifecycle.vocabulary import Order
from headgate.jobs.processes.parent import Parent, kill_group

_LOOK_EVERY = 0.1
_MEASURE_EVERY = 5.0

Tell = Callable[[News], Any]


def work(spec: AttemptSpec, orders: queue.Queue[Order], tell: Tell) -> None:
    """Run one attempt to its end; its last news is Ended or Failed.

    Args:
        orders: Followed between two looks at the query. The query begins held, and reads after the
            order to open.
        tell: Sends news; called on this thread.
    """
    attempt: Attempt | None = None
    try:
        attempt = Attempt(spec.graph, spec.settings, near=spec.near)
        # It reads nothing before the supervisor has noted the run; an earlier stop still holds.
        attempt.hold()
        _obey_all(attempt, orders)
        _await_executors(attempt, orders, tell)
        attempt.start()
        tell(Running())
        _follow(attempt, orders, tell)
        tell(Ended(attempt.ending() is Ending.CAUGHT_UP))
    except Exception as error:  # noqa: BLE001 - the supervisor decides about every failure
        printed = [] if attempt is None else attempt.last_output()
        known = explain(error, job=spec.settings.job, last_output=printed)
        cause = find_damage(spec.settings, known) or known
        trace = format_trace(error, more="" if attempt is None else attempt.find_trace())
        tell(Failed(to_failure(cause, at=SystemClock().now(), where="driver"), trace))
    finally:
        if attempt is not None:
            with contextlib.suppress(Exception):
                attempt.close()


def _await_executors(attempt: Attempt, orders: queue.Queue[Order], tell: Tell) -> None:
    """Return once tasks can run, or at once if the attempt has been ordered to end."""
    gauge = _Gauge(attempt, tell)
    while True:
        gauge.look()
        for kind, source, message in attempt.look().events:
            tell(SourceEvent(kind, source, message))
        if attempt.has_executors() or attempt.is_stopping():
            return
        time.sleep(_LOOK_EVERY)
        _obey_all(attempt, orders)


def _follow(attempt: Attempt, orders: queue.Queue[Order], tell: Tell) -> None:
    loading = False
    ended = False
    gauge = _Gauge(attempt, tell)
    while not ended:
        _obey_all(attempt, orders)
        ended = attempt.wait(_LOOK_EVERY)
        if not ended:
            gauge.look()
        if attempt.is_loading() is not loading:
            loading = not loading
            tell(Loading(loading))
        # Once more after the end, for the report of the last batch.
        news = attempt.look()
        for kind, source, message in news.events:
            tell(SourceEvent(kind, source, message))
        for report in news.batches:
            tell(Batch(report))
        for output, row in news.rows:
            tell(RowShown(output, row))


class _Gauge:
    """Measures an attempt every few seconds."""

    def __init__(self, attempt: Attempt, tell: Tell) -> None:
        self._attempt = attempt
        self._tell = tell
        self._measured_at = float("-inf")

    def look(self) -> None:
        """Tell what the driver and its executors use, if the last time is long ago."""
        if time.monotonic() - self._measured_at < _MEASURE_EVERY:
            return
        self._measured_at = time.monotonic()
        # The job goes on without figures. An error that matters shows in the query.
        with contextlib.suppress(Exception):
            self._tell(Measured(self._attempt.vitals(), self._attempt.executors()))


def _obey_all(attempt: Attempt, orders: queue.Queue[Order]) -> None:
    obey = {
        Order.STOP: attempt.stop,
        Order.DRAIN: attempt.drain,
        Order.HOLD: attempt.hold,
        Order.OPEN: attempt.open,
    }
    with contextlib.suppress(queue.Empty):
        while True:
            obey[orders.get_nowait()]()


def main() -> None:
    """Run as the child of a supervisor."""
    # The supervisor decides what Ctrl-C means, also where a user's terminal reaches this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = Parent()
    orders: queue.Queue[Order] = queue.Queue()
    spec = decode(AttemptSpec, parent.receive())
    # Another supervisor may start the job at once, so this process and its JVM end without waiting
    # when their supervisor is gone. The next attempt repeats the open batch.
    parent.listen(lambda message: orders.put(Order(message["order"])), kill_group)
    work(spec, orders, lambda news: parent.send(encode_news(news)))


if __name__ == "__main__":
    main()
