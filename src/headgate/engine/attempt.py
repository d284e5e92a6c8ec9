"""One attempt of one flow on Spark, from the first plan to the last batch."""

from __future__ import annotations

import enum
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql.streaming.query import StreamingQuery

from headgate._kernel.bridge import Feeds, Gate, explained
from headgate._kernel.gateway import find_jvm_exit
from headgate._kernel.translate import is_clean_stop, query_causes, query_failure
from headgate.engine import query as queries
from headgate.engine.plan import FlowPlan, kernel_modules, plan_flow
from headgate.engine.progress import BatchReport, parse_report
from headgate.engine.session import open_session
from headgate.engine.settings import AttemptSettings
from headgate.errors import Domain, HeadgateError
from headgate.flow.graph import Graph

_LOOK_EVERY = 0.05
_LAST_REPORT = 10.0


class Ending(enum.StrEnum):
    """How an attempt ended that did not fail."""

    STOPPED = "stopped"
    CAUGHT_UP = "caught up"


@dataclass(frozen=True, slots=True)
class News:
    """What happened since the last look.

    Attributes:
        rows: For the terminal: output and JSON text.
        events: Of topics: kind, source and message.
    """

    batches: tuple[BatchReport, ...]
    rows: tuple[tuple[str, str], ...]
    events: tuple[tuple[str, str, str], ...] = ()


class Attempt:
    """A running query. One thread starts it and looks at it; `stop` may come from any.

    Args:
        graph: A flow with every topic bound.
        near: The flow's folder, where its functions are looked for.
    """

    def __init__(self, graph: Graph, settings: AttemptSettings, *, near: Path | None) -> None:
        self.plan: FlowPlan = plan_flow(
            graph,
            history=settings.history,
            max_record=settings.max_record,
            placed_since=settings.placed_since,
            job=settings.job,
        )
        self._settings = settings
        self._run = uuid.uuid4().hex
        self._stopping = False
        self._spark = open_session(settings.spark, modules=kernel_modules(graph))
        self._gate = Gate(self._spark, self._run)
        self._feeds = Feeds(self._spark, self._run)
        self._query: StreamingQuery | None = None
        try:
            self._rows = queries.build(self._spark, self.plan, settings, run=self._run, near=near)
        except BaseException:
            # There is no attempt that anybody could close.
            self.close()
            raise

    def explain(self) -> str:
        """Return Spark's own plan of the query."""
        return explained(self._rows)

    def start(self) -> None:
        """Start the query: first a batch that was begun and not finished, then what is new."""
        self._gate.set_min_pause(self._settings.min_pause)
        if self._settings.until_caught_up:
            self._gate.stop_when_caught_up()
        self._query = queries.start(self._rows, self.plan, self._settings, run=self._run)

    def is_loading(self) -> bool:
        """Tell whether streams still wait for tables to be read."""
        return self._gate.is_loading()

    def look(self) -> News:
        """Return what happened since the last look."""
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
            tuple(self._feeds.events()),
        )

    def wait(self, seconds: float) -> bool:
        """Wait for the query's end, but no longer than this; return whether it has ended."""
        # Asking and sleeping, since awaitTermination raises what ended the query.
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
        """End the query before its next batch: nothing is left half done."""
        self._stopping = True
        self._gate.stop()

    def drain(self) -> None:
        """End the query once all that is there now has been read and every window is over."""
        self._stopping = True
        self._gate.drain()

    def hold(self) -> None:
        """Let no further batch begin; the query stays as it is."""
        self._gate.hold()

    def open(self) -> None:
        """Let batches begin again."""
        self._gate.open()

    def ending(self) -> Ending:
        """Return how the query ended, or raise why it failed; it must have ended."""
        causes = query_causes(self._started())
        if causes and not is_clean_stop(causes):
            raise query_failure(self._settings.job, causes)
        if self._stopping:
            return Ending.STOPPED
        if self._settings.until_caught_up:
            return Ending.CAUGHT_UP
        raise HeadgateError(
            "QUERY_ENDED",
            f"job {self._settings.job!r} ended: its query is over, and nobody had asked for it",
            hint="the job's log holds the whole story; --verbose shows it",
            domain=Domain.INTERNAL,
            retryable=True,
        )

    def close(self) -> None:
        """End Spark, whatever the query is doing."""
        if find_jvm_exit() is not None:
            return
        self._feeds.close()
        self._gate.forget()
        self._spark.stop()

    def _started(self) -> StreamingQuery:
        if self._query is None:
            raise HeadgateError("NOT_STARTED", "cannot look at a query that was not started")
        return self._query
