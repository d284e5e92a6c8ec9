"""The child: runs one attempt and tells of it; ends when its supervisor does.

The first message to it is the attempt's spec, the others are orders. Those from it are news.
"""

from __future__ import annotations

import contextlib
import queue
import signal
from collections.abc import Callable
from typing import Any

# Registers the kinds of topics that a flow's JSON may name.
import headgate.connectors  # noqa: F401
from headgate._codec import decode
from headgate.engine.attempt import Attempt, Ending
from headgate.engine.failures import explain
from headgate.errors import Domain, HeadgateError
from headgate.jobs.attempts.damage import find_damage
from headgate.jobs.attempts.wire import (
    AttemptSpec,
    Batch,
    Ended,
    Failed,
    Loading,
    News,
    RowShown,
    Running,
    SourceEvent,
    encode_news,
)
from headgate.jobs.processes.parent import Parent, kill_group

_LOOK_EVERY = 0.1

Tell = Callable[[News], Any]


def work(spec: AttemptSpec, orders: queue.Queue[str], tell: Tell) -> None:
    """Run one attempt to its end; its last news is Ended or Failed.

    Args:
        orders: `stop`, `drain`, `hold` and `open`, taken between two looks at the query. It begins
            held, and reads once it is told to open.
        tell: Called on this thread.
    """
    attempt: Attempt | None = None
    try:
        attempt = Attempt(spec.graph, spec.settings, near=spec.near)
        # Nothing is read before the supervisor has taken note; a stop that was asked for stands.
        attempt.hold()
        _obey_all(attempt, orders)
        attempt.start()
        tell(Running())
        _follow(attempt, orders, tell)
        tell(Ended(attempt.ending() is Ending.CAUGHT_UP))
    except Exception as error:  # noqa: BLE001 - whatever ends an attempt is its supervisor's to know
        known = explain(error, job=spec.settings.job)
        tell(failure(find_damage(spec.settings, known) or known))
    finally:
        if attempt is not None:
            with contextlib.suppress(Exception):
                attempt.close()


def failure(error: BaseException) -> Failed:
    """Return an error as news."""
    root = error
    while root.__cause__ is not None:
        root = root.__cause__
    if isinstance(error, HeadgateError):
        return Failed(
            code=error.code,
            message=error.message,
            hint=error.hint,
            domain=error.domain.value,
            retryable=error.retryable,
            root_cause=error.root_cause or f"{type(root).__name__}: {root}",
            where="driver",
        )
    return Failed(
        code="INTERNAL",
        message=f"{type(error).__name__}: {error}",
        hint="report it with the job's logs",
        domain=Domain.INTERNAL.value,
        retryable=True,
        root_cause=f"{type(root).__name__}: {root}",
        where="driver",
    )


def _follow(attempt: Attempt, orders: queue.Queue[str], tell: Tell) -> None:
    loading = False
    ended = False
    while not ended:
        _obey_all(attempt, orders)
        ended = attempt.wait(_LOOK_EVERY)
        if attempt.is_loading() is not loading:
            loading = not loading
            tell(Loading(loading))
        # Once more after the end, so that the last batch is told of.
        news = attempt.look()
        for kind, source, message in news.events:
            tell(SourceEvent(kind, source, message))
        for report in news.batches:
            tell(Batch(report))
        for output, row in news.rows:
            tell(RowShown(output, row))


def _obey_all(attempt: Attempt, orders: queue.Queue[str]) -> None:
    with contextlib.suppress(queue.Empty):
        while True:
            _obey(attempt, orders.get_nowait())


def _obey(attempt: Attempt, order: str) -> None:
    match order:
        case "stop":
            attempt.stop()
        case "drain":
            attempt.drain()
        case "hold":
            attempt.hold()
        case "open":
            attempt.open()
        case _:
            raise ValueError(f"no such order: {order}")


def main() -> None:
    """Run as the child of a supervisor."""
    # The supervisor decides what Ctrl-C means, also where a user's terminal reaches this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = Parent()
    orders: queue.Queue[str] = queue.Queue()
    spec = decode(AttemptSpec, parent.receive())
    # Another supervisor may start the job at once, so nothing is waited for when this one is gone:
    # this process and its JVM end, and the batch under way is repeated.
    parent.listen(lambda message: orders.put(message["order"]), kill_group)
    work(spec, orders, lambda news: parent.send(encode_news(news)))


if __name__ == "__main__":
    main()
