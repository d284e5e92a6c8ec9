"""One attempt of one flow on Spark, from the first plan to the last batch."""

from __future__ import annotations

import enum
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql.streaming.query import StreamingQuery

from headgate._clock import SystemClock
from headgate._kernel.bridge import Feeds, Gate, Lease, explained
from headgate._kernel.executors import read_executors
from headgate._kernel.gateway import find_jvm_exit
from headgate._kernel.traces import query_trace
from headgate._kernel.translate import is_clean_stop, query_causes, query_failure
from headgate._kernel.vitals import read_vitals
from headgate._locations import Location
from headgate.engine.attempt import query as queries
from headgate.engine.attempt.executor_watch import ExecutorWatch
from headgate.engine.attempt.executors import Executors, parse_executors
from headgate.engine.attempt.lease import take_lease
from headgate.engine.attempt.progress import BatchReport, parse_report
from headgate.engine.attempt.shared_folders import check_folders
from headgate.engine.attempt.vitals import Vitals, parse_vitals
from headgate.engine.plan.flow_plan import FlowPlan, kernel_modules
from headgate.engine.plan.plan import plan_flow
from headgate.engine.session.masters import is_local
from headgate.engine.session.session import DriverOutput, open_session
from headgate.engine.session.stores import stores_of
from headgate.engine.settings import AttemptSettings, HeldState
from headgate.engine.user_code.shipping import in_users_terms
from headgate.errors import Domain, HeadgateError
from headgate.flow.graph.graph import Graph

_LOOK_EVERY = 0.05
_LAST_REPORT = 10.0


class Ending(enum.StrEnum):
    """The outcome of an attempt that did not fail."""

    STOPPED = "stopped"
    CAUGHT_UP = "caught up"


@dataclass(frozen=True, slots=True)
class News:
    """Everything that happened since the last poll.

    Attributes:
        rows: Rows for the terminal: output and JSON text.
        events: Events of topics and executors: kind, source (empty for executors) and message.
    """

    batches: tuple[BatchReport, ...]
    rows: tuple[tuple[str, str], ...]
    events: tuple[tuple[str, str, str], ...] = ()


class Attempt:
    """A running query. One thread starts and polls it; any thread may call `stop`.

    Args:
        graph: A flow with every topic bound.
        near: The flow's folder, from which its functions and their workers import modules.
    """

    def __init__(self, graph: Graph, settings: AttemptSettings, *, near: Path | None) -> None:
        self.plan: FlowPlan = plan_flow(
            graph,
            history=settings.history,
            max_record=settings.max_record,
            placed_since=settings.placed_since,
            job=settings.job,
            parallelism=settings.spark.parallelism,
        )
        self._settings = settings
        self._run = uuid.uuid4().hex
        self._stopping = False
        self._spark = open_session(
            settings.spark, modules=(*kernel_modules(graph), *stores_of(_places(settings)))
        )
        self._output = DriverOutput(settings.spark)
        self._near = near
        self._executors = (
            None
            if is_local(settings.spark.master)
            else ExecutorWatch(settings.spark, self.executors, SystemClock())
        )
        self._gate = Gate(self._spark, self._run)
        self._feeds = Feeds(self._spark, self._run)
        self._query: StreamingQuery | None = None
        self._lease: Lease | None = None
        try:
            self._lease = take_lease(self._spark, settings)
            self._rows, self._written = queries.build(
                self._spark, self.plan, settings, run=self._run, near=near
            )
        except BaseException:
            # The caller has no attempt to close.
            self.close()
            raise

    def explain(self) -> str:
        """Return Spark's own plan of the query."""
        return explained(self._rows)

    def has_executors(self) -> bool:
        """Return True if tasks can run, or False while the cluster has given no executor yet."""
        return self._executors is None or self._executors.known > 0

    def start(self) -> None:
        """Start the query: first finish a batch that was begun, then read new records."""
        self._gate.set_min_pause(self._settings.min_pause)
        if self._settings.drain_begun:
            self._gate.finish_drain()
        elif self._settings.drain:
            self._gate.drain()
        elif self._settings.until_caught_up:
            self._gate.stop_when_caught_up()
        queries.prepare_topics(self.plan, self._settings)
        if self._executors is not None and self._executors.known:
            count = self._executors.known
            check_folders(self._spark, self.plan, self._settings, executors=count)
        self._query = queries.start(
            self._rows, self.plan, self._settings, run=self._run, written=self._written
        )

    def is_loading(self) -> bool:
        """Return True while streams wait for tables to load."""
        return self._gate.is_loading()

    def look(self) -> News:
        """Return everything that happened since the last poll."""
        reports = (
            parse_report(
                report,
                scans=self.plan.scans(),
                operators=self.plan.operators,
                repeats=self.plan.repeats(),
            )
            for report in self._feeds.progress()
        )
        return News(
            tuple(report for report in reports if report is not None),
            tuple(self._feeds.rows()),
            (*self._feeds.events(), *self._executor_events()),
        )

    def vitals(self) -> Vitals:
        """Return what the driver uses of its memory and of its time."""
        settings, now = self._settings.spark, SystemClock().now()
        return parse_vitals(read_vitals(self._spark), settings, at=now)

    def executors(self) -> Executors:
        """Return the executors since Spark was started, and what each has reported last."""
        settings, now = self._settings.spark, SystemClock().now()
        return parse_executors(read_executors(self._spark), settings, at=now)

    def _executor_events(self) -> Iterator[tuple[str, str, str]]:
        if self._executors is not None:
            for event in self._executors.look():
                yield event.kind, "", event.message

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the query, at most this long; return whether it has ended."""
        # Poll, since awaitTermination raises the query's error.
        query = self._started()
        deadline = time.monotonic() + seconds
        while query.isActive and time.monotonic() < deadline:
            time.sleep(_LOOK_EVERY)
        ended = not query.isActive
        if ended:
            # The report of the last batch may still be on its way.
            self._feeds.await_end(_LAST_REPORT)
        return ended

    def stop(self) -> None:
        """End the query before its next batch, so that no batch is unfinished."""
        self._stopping = True
        self._gate.stop()

    def drain(self) -> None:
        """End the query after reading all current records and closing every window."""
        self._stopping = True
        self._gate.drain()

    def is_stopping(self) -> bool:
        """Return True once the query has been told to end."""
        return self._stopping

    def hold(self) -> None:
        """Hold the next batch; the query stays alive."""
        self._gate.hold()

    def open(self) -> None:
        """Let batches start again."""
        self._gate.open()

    def ending(self) -> Ending:
        """Return the outcome of an ended query, or raise its error."""
        causes = in_users_terms(query_causes(self._started()), self._near)
        if causes and not is_clean_stop(causes):
            raise query_failure(self._settings.job, causes, last_output=self.last_output())
        if self._stopping:
            return Ending.STOPPED
        if self._settings.until_caught_up or self._settings.drain:
            return Ending.CAUGHT_UP
        raise HeadgateError(
            "QUERY_ENDED",
            f"job {self._settings.job!r} ended: its query stopped without a request",
            hint="see the job's log; --verbose shows it",
            domain=Domain.INTERNAL,
            retryable=True,
        )

    def last_output(self) -> list[str]:
        """Return the last lines that the driver's JVM and its Python workers printed."""
        return self._output.last_lines()

    def find_trace(self) -> str:
        """Return the JVM's stack trace of the query's failure; empty if there is none."""
        return "" if self._query is None else query_trace(self._query)

    def close(self) -> None:
        """Stop Spark, whatever the query is doing."""
        if find_jvm_exit() is not None:
            return
        self._feeds.close()
        self._gate.forget()
        self._spark.stop()
        if self._lease is not None:
            # Nothing is written any more: the next driver need not wait.
            self._lease.release()

    def _started(self) -> StreamingQuery:
        if self._query is None:
            raise HeadgateError("NOT_STARTED", "cannot poll a query before it is started")
        return self._query


def _places(settings: AttemptSettings) -> Iterator[Location]:
    """Yield the checkpoints that the query writes and reads."""
    yield settings.checkpoint
    for held in settings.held.values():
        yield held.checkpoint if isinstance(held, HeldState) else held.folder
