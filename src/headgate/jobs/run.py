"""Running a job in this process: from the flow's file to its end."""

from __future__ import annotations

import os
import shutil
import signal
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any

from headgate._clock import Clock, SystemClock
from headgate.checkpoints.sparklog import find_last_commit
from headgate.connectors.logs import bind, parse_log
from headgate.engine.attempt import Attempt, Ending
from headgate.engine.settings import AttemptSettings, SparkSettings
from headgate.errors import Domain, HeadgateError
from headgate.flow.graph import Graph
from headgate.jobs.home import JobHome
from headgate.jobs.job import JobSnapshot, JobState, RunOptions, Watcher
from headgate.jobs.loading import load_flow
from headgate.jobs.runs import Run, continue_run, find_run, new_run, write_run
from headgate.jobs.totals import Totals

_LOOK_EVERY = 0.2


def run_job(
    flow: str, options: RunOptions, watcher: Watcher, *, clock: Clock | None = None
) -> JobSnapshot:
    """Run a job until it has caught up, is stopped by a signal, or fails.

    A job that exists goes on from its newest checkpoint. SIGINT and SIGTERM end it before its
    next batch; a second one ends it at once, which costs no record either.
    """
    clock = clock or SystemClock()
    check_java()
    loaded = load_flow(flow)
    graph = bind(loaded.graph, parse_log(options.on))
    home = JobHome(options.home, graph.name)
    with home.locked():
        run = _open_run(home, graph, options, clock)
        supervisor = _Supervisor(home, run, options, watcher, clock)
        return supervisor.run(graph, loaded.folder)


def _open_run(home: JobHome, graph: Graph, options: RunOptions, clock: Clock) -> Run:
    lineage = None if options.fresh else home.find_present_run()
    known = None if lineage is None else find_run(home, lineage)
    if known is None:
        run = new_run(
            home,
            graph,
            parallelism=options.parallelism or os.cpu_count() or 1,
            checkpoints=None if options.checkpoints is None else options.checkpoints.absolute(),
            now=clock.now(),
        )
    else:
        run = continue_run(known, graph, job=home.name)
        _check_parallelism(run, options, home.name)
    write_run(home, run)
    home.write_present_run(run.lineage)
    return run


def _check_parallelism(run: Run, options: RunOptions, job: str) -> None:
    if options.parallelism is not None and options.parallelism != run.parallelism:
        raise HeadgateError(
            "PARALLELISM_FIXED",
            f"cannot resume job {job!r} with parallelism {options.parallelism}: "
            f"its state is spread over {run.parallelism}",
            hint=f"leave out --parallelism to go on with {run.parallelism}, or add --fresh",
        )


class _Supervisor:
    """Runs one attempt and tells of it: status.json, events.jsonl and the watcher."""

    def __init__(
        self, home: JobHome, run: Run, options: RunOptions, watcher: Watcher, clock: Clock
    ) -> None:
        self._home = home
        self._run = run
        self._options = options
        self._watcher = watcher
        self._clock = clock
        self._started = clock.monotonic()
        self._resumed_from = find_last_commit(run.checkpoint)
        self._totals = Totals()
        self._state = JobState.STARTING
        self._loading = False

    def run(self, graph: Graph, folder: Path) -> JobSnapshot:
        self._enter(JobState.STARTING, lineage=self._run.lineage)
        attempt: Attempt | None = None
        try:
            attempt = Attempt(graph, self._settings(), near=folder)
            with _StopWanted() as stop:
                attempt.start()
                self._enter(JobState.RUNNING)
                self._follow(attempt, stop)
            ending = attempt.ending()
        except BaseException as error:
            died = attempt.find_death() if attempt is not None else None
            self._fail(died or error)
            if died is not None:
                raise died from error
            raise
        finally:
            if attempt is not None:
                attempt.close()
        done = JobState.STOPPED if ending is Ending.STOPPED else JobState.FINISHED
        self._enter(done)
        return self._snapshot()

    def _settings(self) -> AttemptSettings:
        options = self._options
        return AttemptSettings(
            job=self._home.name,
            lineage=self._run.lineage,
            checkpoint=self._run.checkpoint,
            batch_every=options.batch_every,
            max_batch=options.max_batch,
            max_record=options.max_record,
            shown=options.print_rows,
            until_caught_up=options.until_caught_up,
            history=self._run.history,
            spark=SparkSettings(
                parallelism=self._run.parallelism,
                driver_memory=options.driver_memory,
                log_file=self._home.log_file,
                verbose=options.verbose,
            ),
        )

    def _follow(self, attempt: Attempt, stop: _StopWanted) -> None:
        ended = False
        while not ended:
            if stop.wanted and self._state is JobState.RUNNING:
                attempt.stop()
                self._enter(JobState.STOPPING)
            ended = attempt.wait(_LOOK_EVERY)
            self._loading = not ended and attempt.is_loading()
            # Once more after the end, so that the last batch is counted.
            news = attempt.look()
            for report in news.batches:
                self._totals = self._totals.plus(report)
            for output, row in news.rows:
                self._watcher.on_row(output, row)
            self._tell()

    def _enter(self, state: JobState, **facts: Any) -> None:
        self._state = state
        self._home.add_event(self._clock.now(), state.value, **facts)
        self._tell()

    def _fail(self, error: BaseException) -> None:
        known = error if isinstance(error, HeadgateError) else None
        code = known.code if known else type(error).__name__
        self._enter(JobState.FAILED, code=code, message=str(error))

    def _snapshot(self) -> JobSnapshot:
        return JobSnapshot(
            job=self._home.name,
            state=self._state,
            lineage=self._run.lineage,
            resumed_from=self._resumed_from,
            loading=self._loading,
            elapsed=timedelta(seconds=self._clock.monotonic() - self._started),
            totals=self._totals,
            folder=self._home.path,
        )

    def _tell(self) -> None:
        snapshot = self._snapshot()
        self._home.write_status(
            {**snapshot.to_json(), "pid": os.getpid(), "at": self._clock.now().isoformat()}
        )
        self._watcher.on_snapshot(snapshot)


class _StopWanted:
    """Set by the first SIGINT or SIGTERM within; the second is what it always was.

    The handler does no more than that: it may come in the middle of a call to the JVM.
    """

    _SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.wanted = False
        self._kept: dict[signal.Signals, Any] = {}

    def __enter__(self) -> _StopWanted:
        for each in self._SIGNALS:
            self._kept[each] = signal.signal(each, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for each, handler in self._kept.items():
            signal.signal(each, handler)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.wanted = True
        for each, handler in self._kept.items():
            signal.signal(each, handler)


def check_java() -> None:
    """Refuse to start without Java, before Spark says so in its own words."""
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") or (home and (Path(home) / "bin" / "java").exists()):
        return
    raise HeadgateError(
        "JAVA_MISSING",
        "cannot start Spark: there is no Java on this machine",
        hint="install a JDK 17 or newer, or set JAVA_HOME to one; headgate doctor tells more",
        domain=Domain.EXTERNAL,
    )
