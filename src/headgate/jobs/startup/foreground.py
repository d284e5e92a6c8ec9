"""A job in the foreground: from the flow's file to a final state, in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from headgate._artifacts import get_java
from headgate._clock import Clock, SystemClock
from headgate._codec import encode
from headgate._kernel.jar import get_jars
from headgate.checkpoints.catalog import list_names
from headgate.checkpoints.sparklog import find_last_commit
from headgate.connectors import Console
from headgate.connectors.logs import bind, parse_log
from headgate.engine.plan.flow_plan import kernel_modules
from headgate.engine.session.stores import stores_of
from headgate.engine.settings import Fenced
from headgate.errors import HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.jobs.attempts.launch import Launcher, ProcessLauncher
from headgate.jobs.attempts.wire import AttemptSpec
from headgate.jobs.checkpoints.keeper import CheckpointKeeper
from headgate.jobs.checkpoints.restore_plan import SealedPlan
from headgate.jobs.flow_file import LoadedFlow, keep_flow, load_flow
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import find_intent
from headgate.jobs.lifecycle.machine import Machine
from headgate.jobs.lifecycle.restart import parse_strategy
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.runs.deletions import finish_deletions
from headgate.jobs.runs.job_stores import JobStores, held_stores, stores_at
from headgate.jobs.runs.left_rows import check_left_rows
from headgate.jobs.runs.lineage import Run
from headgate.jobs.runs.publishing import make_publisher
from headgate.jobs.runs.transactions import earlier_runs, end_transactions, has_transactions
from headgate.jobs.runs.written_batches import note_delivery
from headgate.jobs.startup.attempt_settings import attempt_settings
from headgate.jobs.startup.opening import open_run
from headgate.jobs.startup.resuming import check_attempt
from headgate.jobs.startup.start import Start
from headgate.jobs.startup.start_positions import parse_starts
from headgate.jobs.supervision.meter import Meter, ports_of
from headgate.jobs.supervision.supervisor import Supervisor
from headgate.jobs.totals import Totals
from headgate.jobs.values import NO_CONSENT, JobSnapshot, RunOptions, Watcher


def run_job(
    flow: str | LoadedFlow,
    options: RunOptions,
    watcher: Watcher,
    *,
    restore: SealedPlan | None = None,
    launcher: Launcher | None = None,
    clock: Clock | None = None,
    stop: threading.Event | None = None,
) -> JobSnapshot:
    """Supervise a job until it has caught up, is stopped, or fails for good.

    A job that exists goes on from its newest checkpoint. SIGINT and SIGTERM end it before its
    next batch; a second one ends it at once, which costs no record either.

    Args:
        flow: As `load_flow` takes it, or what it returned: then the file is not executed again.
        restore: What the start restores, if that was resolved before; no other checkpoint is
            chosen.
        launcher: Where attempts run; by default each in a process of its own.
        stop: Ends the job before its next batch once it is set, as a signal would.
    """
    clock = clock or SystemClock()
    get_java("start Spark")
    loaded = load_flow(flow) if isinstance(flow, str) else flow
    graph = bind(loaded.graph, parse_log(options.on))
    home = JobFolder(options.home, graph.name)
    # What is asked for from here on is for this start, however long it takes to open the run.
    asked = find_intent(home)
    # Here, where the user sees the progress: fetching a connector's jars takes a while at first.
    get_jars(_modules_of(home, graph, options), progress=watcher.on_notice)
    finish_deletions(home.root)
    with home.locked(), _held_stores(home, options, watcher) as stores:
        taken = _take_over(home, stores, loaded, options, clock)
        before = home.find_present_run()
        check_left_rows(home, before, graph)
        run, notice = open_run(Start(home, graph, options, clock), restore=restore)
        note_delivery(home, run, options.delivery)
        opened = _OpenedJob(
            home=home,
            run=run,
            loaded=loaded,
            graph=graph,
            options=options,
            clock=clock,
            keeper=_make_keeper(home, run, options, clock, stores),
            stores=stores,
            fenced=earlier_runs(home, run, before),
        )
        supervisor = opened.make_supervisor(
            "; ".join(part for part in (taken, notice) if part),
            watcher,
            launcher or ProcessLauncher(home.driver_output, verbose=options.verbose),
            after_intent=0 if asked is None else asked.number,
            stop=stop or threading.Event(),
        )
        opened.note_first_start()
        return supervisor.run()


def _held_stores(
    home: JobFolder, options: RunOptions, watcher: Watcher
) -> AbstractContextManager[JobStores]:
    return held_stores(
        home,
        verb="start",
        chosen=options.checkpoints,
        lease=options.lease_expires,
        tell=watcher.on_notice,
    )


def _make_keeper(
    home: JobFolder, run: Run, options: RunOptions, clock: Clock, stores: JobStores
) -> CheckpointKeeper:
    def forget() -> None:
        stores.note_present(None)

    return CheckpointKeeper(home, run, options, clock, on_forgotten=forget, check=stores.check)


def _modules_of(home: JobFolder, graph: Graph, options: RunOptions) -> list[str]:
    """Return the modules of the kernel, and the stores, whose jars a start needs."""
    return [*kernel_modules(graph), *stores_of(stores_at(home, options.checkpoints))]


def _take_over(
    home: JobFolder, stores: JobStores, loaded: LoadedFlow, options: RunOptions, clock: Clock
) -> str:
    """Bring an empty home, or one that is not up to date, to where the job is.

    Returns:
        What the user has to know; empty if the home was up to date.
    """
    anew = options.fresh or "/" in (options.restore_from or "")
    stored = encode(_stored(options.for_later_start()))
    taken = stores.take_over(ignore_corrupted=anew, flow=keep_flow(home, loaded), options=stored)
    if taken is None:
        return ""
    store, lineage = taken
    home.add_event(clock.now(), "TAKEN_OVER", store=str(store), lineage=lineage)
    return f"another home ran the job: its run {lineage} is taken over from {store}"


def _stored(options: RunOptions) -> RunOptions:
    """Return options as `job.json` has them: they hold in any working directory."""
    source = options.restore_from
    if source is not None and Path(source).is_dir():
        source = str(Path(source).absolute())
    return replace(options, home=options.home.absolute(), restore_from=source)


def _on_stderr(graph: Graph) -> frozenset[str]:
    """Return the outputs whose rows are printed to standard error."""
    topics = [(node.id, node.topic) for node in graph.outputs()]
    topics.append((graph.dead_letters.name, graph.dead_letters))
    return frozenset(name for name, topic in topics if isinstance(topic, Console) and topic.stderr)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenedJob:
    """A job whose run is open, with the functions that its supervisor calls."""

    home: JobFolder
    run: Run
    loaded: LoadedFlow
    graph: Graph
    options: RunOptions
    clock: Clock
    keeper: CheckpointKeeper
    stores: JobStores
    fenced: tuple[Fenced, ...]

    def make_supervisor(
        self,
        notice: str,
        watcher: Watcher,
        launcher: Launcher,
        *,
        after_intent: int,
        stop: threading.Event,
    ) -> Supervisor:
        """Return the supervisor of the job; nothing is started yet."""
        return Supervisor(
            self.home,
            Machine(job=self.home.name, strategy=parse_strategy(self.options.restart)),
            self.make_attempts(),
            launcher=launcher,
            keeper=self.keeper,
            meter=Meter(self.home, self.clock, ports_of(self.graph)),
            # Not before: a start that fails at once must not take the place of a good run.
            on_running=self.note_running,
            watcher=watcher.split(_on_stderr(self.graph)),
            clock=self.clock,
            after_intent=after_intent,
            stop=stop,
            publisher=make_publisher(self.home.name, self.graph, self.note_unpublished),
            on_dead_end=self.end_transactions,
            find_loss=self.stores.find_loss,
            snapshot=self.first_snapshot(notice),
        )

    def make_attempts(self) -> Callable[[int], AttemptSpec]:
        """Return the function that makes an attempt's spec; bad start positions are refused."""
        starts = parse_starts(self.options.start, self.graph)

        def make(attempt: int) -> AttemptSpec:
            # What holds at a start holds at a restart. Made anew each time: what an operator
            # takes over is for the first commit alone.
            self.stores.check()
            check_attempt(self.home, self.run)
            settings = attempt_settings(self.home, self.run, self.options, starts)
            spark = replace(settings.spark, attempt=attempt)
            return AttemptSpec(
                self.graph, replace(settings, spark=spark, fenced=self.fenced), self.loaded.folder
            )

        return make

    def first_snapshot(self, notice: str) -> JobSnapshot:
        """Return what the job is before its first attempt."""
        return JobSnapshot(
            job=self.home.name,
            state=JobState.STARTING,
            lineage=self.run.lineage,
            resumed_from=_find_resumed(self.run),
            loading=False,
            elapsed=timedelta(0),
            totals=Totals(),
            folder=self.home.path,
            notice=notice,
            names=self.graph.names,
        )

    def note_first_start(self) -> None:
        """Write how a job without a run is started, so that `headgate start` can repeat it.

        The start may be killed, or fail, before its attempt runs. A `job.json` that was removed is
        not replaced: the job may have written output.
        """
        is_first = list_names(self.home.path / "runs") == [self.run.lineage]
        is_known = (self.home.path / "job.json").exists()
        if (is_first or is_known) and self.home.find_present_run() is None:
            # What is to be restored is not in any run yet, so a repeated start restores it, too.
            self._write_job(None, replace(self.options, fresh=False, consent=NO_CONSENT))

    def note_running(self) -> None:
        """Write how the job was started, now that an attempt runs."""
        self.keeper.attempt_running()
        self._write_job(self.run.lineage, self.options.for_later_start())
        # Last: a home that was killed before goes on with the run itself, or with the one before.
        self.stores.note_present(self.run.lineage)

    def _write_job(self, lineage: str | None, options: RunOptions) -> None:
        flow = keep_flow(self.home, self.loaded)
        self.home.write_job(lineage, flow=flow, options=encode(_stored(options)))

    def note_unpublished(self, error: HeadgateError) -> None:
        """Write that the job's lag could not be published."""
        self.home.add_event(self.clock.now(), "LAG_UNPUBLISHED", **error.as_dict())

    def end_transactions(self) -> None:
        """End the transactions that the run's tasks left open, if they write in any."""

        def unended(error: HeadgateError) -> None:
            self.home.add_event(self.clock.now(), "TRANSACTIONS_OPEN", **error.as_dict())

        if has_transactions(self.graph, self.options.delivery):
            end_transactions(self.home.name, self.run, self.graph, unended)


def _find_resumed(run: Run) -> int | None:
    """Return the batch from whose state and positions a start goes on; None if it begins empty."""
    last, origin = find_last_commit(run.checkpoint), run.origin
    if last is None and origin is not None and origin.folder is not None:
        # Operators take their state by uid, and the run has not committed a batch of its own.
        return origin.batch
    return last
