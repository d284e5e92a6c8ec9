"""A job in the foreground: from the flow's file to a final state, in this process."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from headgate._clock import Clock, SystemClock
from headgate._codec import encode
from headgate._kernel.jar import get_jars
from headgate.checkpoints.problems import Problem
from headgate.checkpoints.sparklog import find_last_commit
from headgate.checkpoints.verify import find_good
from headgate.connectors.logs import bind, parse_log
from headgate.connectors.reaching import check_brokers
from headgate.engine.plan import kernel_modules
from headgate.engine.settings import (
    AttemptSettings,
    Delivery,
    Fenced,
    HeldFiles,
    HeldState,
    SparkSettings,
)
from headgate.engine.state_variables import state_variable
from headgate.errors import Domain, HeadgateError
from headgate.flow.graph import Graph
from headgate.jobs.attempts.launch import Launcher, ProcessLauncher
from headgate.jobs.attempts.wire import AttemptSpec
from headgate.jobs.checkpoints.keeper import CheckpointKeeper, Keeping
from headgate.jobs.checkpoints.listing import list_past, list_readable_past
from headgate.jobs.checkpoints.portable import state_folder
from headgate.jobs.checkpoints.restore import find_target, plan_restore, restore_run
from headgate.jobs.flow_file import LoadedFlow, load_flow
from headgate.jobs.home import JobHome
from headgate.jobs.lifecycle.intent import find_intent
from headgate.jobs.lifecycle.machine import Machine
from headgate.jobs.lifecycle.restart import parse_strategy
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.runs.drain import check_not_drained
from headgate.jobs.runs.lineage import Run, check_state, continue_run, find_run, new_run, write_run
from headgate.jobs.runs.open_batch_age import unfinished_since_ms
from headgate.jobs.runs.publishing import make_publisher
from headgate.jobs.runs.transactions import earlier_runs, end_transactions, has_transactions
from headgate.jobs.runs.written_batches import note_delivery
from headgate.jobs.startup.fallback import check_repeats, describe_repeats, find_repeats
from headgate.jobs.startup.left_batch import leave_batch
from headgate.jobs.startup.open_batch import (
    BegunBatch,
    check_choice,
    describe_choice,
    look_at_open_batch,
)
from headgate.jobs.startup.resuming import check_attempt, check_job_file, find_damage
from headgate.jobs.startup.start_positions import parse_starts
from headgate.jobs.supervision.supervisor import Supervisor
from headgate.jobs.totals import Totals
from headgate.jobs.values import NO_CONSENT, JobSnapshot, OpenBatch, RunOptions, Watcher


def run_job(
    flow: str,
    options: RunOptions,
    watcher: Watcher,
    *,
    launcher: Launcher | None = None,
    clock: Clock | None = None,
    stop: threading.Event | None = None,
) -> JobSnapshot:
    """Supervise a job until it has caught up, is stopped, or fails for good.

    A job that exists goes on from its newest checkpoint. SIGINT and SIGTERM end it before its
    next batch; a second one ends it at once, which costs no record either.

    Args:
        launcher: Where attempts run; by default each in a process of its own.
        stop: Ends the job before its next batch once it is set, as a signal would.
    """
    clock = clock or SystemClock()
    check_java()
    loaded = load_flow(flow)
    graph = bind(loaded.graph, parse_log(options.on))
    home = JobHome(options.home, graph.name)
    # What is asked for from here on is for this start, however long it takes to open the run.
    asked = find_intent(home)
    # Here, where somebody sees it: fetching a connector's jars takes a while the first time.
    get_jars(kernel_modules(graph), progress=watcher.on_notice)
    with home.locked():
        before = home.find_present_run()
        run, notice = _open_run(home, graph, options, clock)
        note_delivery(home, run, options.delivery)
        return _supervise(
            home,
            run,
            flow,
            loaded,
            graph,
            options,
            watcher,
            launcher,
            clock,
            notice,
            fenced=earlier_runs(home, run, before),
            after_intent=0 if asked is None else asked.number,
            stop=stop or threading.Event(),
        )


def _open_run(home: JobHome, graph: Graph, options: RunOptions, clock: Clock) -> tuple[Run, str]:
    """Return the run to go on with, and what the user has to know about the choice."""
    if options.restore_from is not None or options.restore_at is not None:
        return _restore(home, graph, options, clock), ""
    if not options.fresh:
        check_job_file(home)
    lineage = None if options.fresh else home.find_present_run()
    known = None if lineage is None else find_run(home, lineage)
    if lineage is not None and known is None:
        raise HeadgateError(
            "RUN_MISSING",
            f"cannot resume job {home.name!r}: the manifest of its run {lineage} is missing",
            hint=f"restore {home.run_folder(lineage) / 'run.json'}, or start empty with --fresh",
            domain=Domain.EXTERNAL,
        )
    if known is None:
        check_brokers(graph)
        run = new_run(
            home,
            graph,
            parallelism=options.parallelism or os.cpu_count() or 1,
            checkpoints=None if options.checkpoints is None else options.checkpoints.absolute(),
            now=clock.now(),
        )
        write_run(home, run)
        return run, ""
    check_state(known, job=home.name)
    _check_parallelism(known, options, home.name)
    problems = find_damage(home, known)
    if problems:
        return _fall_back(home, graph, options, clock, problems)
    if graph != known.flow or options.consent.open_batch is not None:
        batch = look_at_open_batch(home, known)
        if batch is not None:
            return _leave_batch(home, known, batch, graph, options, clock)
    check_not_drained(known.checkpoint, list_past(home), job=home.name)
    run = continue_run(known, graph, job=home.name)
    write_run(home, run)
    _drop_taken(run)
    return run, ""


def _drop_taken(run: Run) -> None:
    """Remove what operators took over, once it is in the run's own checkpoint."""
    folder = None if run.origin is None else run.origin.folder
    if folder is not None and find_last_commit(run.checkpoint) is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _fall_back(
    home: JobHome, graph: Graph, options: RunOptions, clock: Clock, problems: Sequence[Problem]
) -> tuple[Run, str]:
    """Go on from the newest checkpoint that is whole, and say so; refuse where there is none.

    One behind which rows were written is gone back to only if the user agrees: they come again.
    """
    found = "; ".join(str(each) for each in problems[:3])
    past = list_readable_past(home)
    good, bad = find_good(past)
    if options.strict or good is None:
        hint = f"headgate restore {home.name} --from {good.id}" if good else "start with --fresh"
        raise HeadgateError(
            "CHECKPOINT_DAMAGED",
            f"cannot resume job {home.name!r}: its newest checkpoint is corrupted: {found}",
            hint=hint,
            domain=Domain.EXTERNAL,
        )
    skipped = "".join(f", {name} is damaged too" for name in bad)
    repeats = find_repeats(home, good)
    if options.delivery is Delivery.EXACTLY_ONCE and not options.consent.allow_repeats:
        check_repeats(repeats, good, job=home.name, why=f"{found}{skipped}")
    notice = (
        f"the newest checkpoint is corrupted ({found}){skipped}: went back to {good.id}; "
        f"{describe_repeats(repeats)}"
    )
    home.add_event(clock.now(), "FELL_BACK", checkpoint=good.id, notice=notice)
    return _restore(home, graph, replace(options, restore_from=str(good.folder)), clock), notice


def _leave_batch(
    home: JobHome, run: Run, batch: BegunBatch, graph: Graph, options: RunOptions, clock: Clock
) -> tuple[Run, str]:
    """Go on in a new run, before an open batch or behind it; refuse what the user did not choose.

    Finishing the batch in its own run with another flow would give rows that nobody can tell from
    those it has written.
    """
    choice = options.consent.open_batch
    check_choice(batch, choice, job=home.name)
    notice = describe_choice(batch, choice)
    made = leave_batch(home, run, batch, graph, options, clock)
    write_run(home, made)
    done = "skip" if choice is OpenBatch.SKIP else "repeat"
    home.add_event(clock.now(), "BATCH_LEFT", lineage=made.lineage, choice=done, **batch.to_json())
    return made, notice


def _restore(home: JobHome, graph: Graph, options: RunOptions, clock: Clock) -> Run:
    kept = find_target(home, source=options.restore_from, at=options.restore_at, now=clock.now())
    plan = plan_restore(home, graph, kept, drop=options.drop_state, parallelism=options.parallelism)
    run = restore_run(
        home,
        graph,
        plan,
        parallelism=options.parallelism,
        checkpoints=None if options.checkpoints is None else options.checkpoints.absolute(),
        now=clock.now(),
    )
    write_run(home, run)
    home.add_event(clock.now(), "RESTORED", lineage=run.lineage, restore=plan.to_json())
    return run


def _check_parallelism(run: Run, options: RunOptions, job: str) -> None:
    if options.parallelism is not None and options.parallelism != run.parallelism:
        raise HeadgateError(
            "PARALLELISM_FIXED",
            f"cannot resume job {job!r} with parallelism {options.parallelism}: its state has "
            f"parallelism {run.parallelism}",
            hint=f"omit --parallelism to continue with {run.parallelism}, or add --from latest",
        )


def _supervise(
    home: JobHome,
    run: Run,
    flow: str,
    loaded: LoadedFlow,
    graph: Graph,
    options: RunOptions,
    watcher: Watcher,
    launcher: Launcher | None,
    clock: Clock,
    notice: str,
    *,
    fenced: tuple[Fenced, ...],
    after_intent: int,
    stop: threading.Event,
) -> JobSnapshot:
    def unpublished(error: HeadgateError) -> None:
        home.add_event(clock.now(), "LAG_UNPUBLISHED", **error.as_dict())

    def unended(error: HeadgateError) -> None:
        home.add_event(clock.now(), "TRANSACTIONS_OPEN", **error.as_dict())

    def end_open() -> None:
        if has_transactions(graph, options.delivery):
            end_transactions(home.name, run, graph, unended)

    def running() -> None:
        keeper.attempt_running()
        home.write_job(run.lineage, flow=_place(flow), options=_stored(options))

    def spec(_attempt: int) -> AttemptSpec:
        # What holds at a start holds at a restart.
        check_attempt(home, run)
        settings = _settings(home, run, options, starts)
        return AttemptSpec(graph, replace(settings, fenced=fenced), loaded.folder)

    starts = parse_starts(options.start, graph)
    keeper = CheckpointKeeper(home, run, _keeping(options), clock)
    supervisor = Supervisor(
        home,
        Machine(job=home.name, strategy=parse_strategy(options.restart)),
        # Made anew each time: what an operator takes over is for the first commit alone.
        spec,
        launcher=launcher or ProcessLauncher(home.driver_output, verbose=options.verbose),
        keeper=keeper,
        # Not before: a start that fails at once must not take the place of a good run.
        on_running=running,
        watcher=watcher,
        clock=clock,
        after_intent=after_intent,
        stop=stop,
        publisher=make_publisher(home.name, graph, unpublished),
        on_dead_end=end_open,
        snapshot=JobSnapshot(
            job=home.name,
            state=JobState.STARTING,
            lineage=run.lineage,
            resumed_from=find_last_commit(run.checkpoint),
            loading=False,
            elapsed=timedelta(0),
            totals=Totals(),
            folder=home.path,
            notice=notice,
        ),
    )
    return supervisor.run()


def _settings(
    home: JobHome, run: Run, options: RunOptions, starts: Mapping[str, str]
) -> AttemptSettings:
    origin = run.origin
    folder = None if origin is None else origin.folder
    begun = find_last_commit(run.checkpoint) is not None
    held: dict[str, HeldState | HeldFiles] = {}
    if origin is not None and folder is not None and not begun:
        held = {
            uid: HeldFiles(state_folder(folder, uid))
            if origin.portable
            else HeldState(folder, number, origin.batch, state_variable(run.flow.node(uid)))
            for uid, number in origin.operators.items()
        }
    return AttemptSettings(
        job=home.name,
        lineage=run.lineage,
        checkpoint=run.checkpoint,
        batch_every=options.batch_every,
        min_pause=options.min_pause,
        max_batch=options.max_batch,
        max_record=options.max_record,
        shown=options.print_rows,
        until_caught_up=options.until_caught_up,
        history=run.history,
        held=held,
        starts={**starts, **({} if origin is None else origin.positions)},
        delivery=options.delivery,
        on_data_loss=options.on_data_loss,
        loaded=()
        if origin is None
        else tuple(name for name in origin.positions if name not in origin.loading),
        watermark_ms=0 if origin is None else origin.watermark_ms,
        times={} if origin is None else origin.times,
        partition_times={} if origin is None else origin.partition_times,
        unfinished_since_ms=unfinished_since_ms(run.checkpoint),
        placed_since=run.placed_since or 0,
        spark=SparkSettings(
            parallelism=run.parallelism,
            master=options.master,
            driver_memory=options.driver_memory,
            executor_memory=options.executor_memory,
            state_memory=options.state_memory,
            log_file=home.log_file,
            lock_file=home.path / "driver.lock",
            log_level=options.log_level,
            verbose=options.verbose,
        ),
    )


def _keeping(options: RunOptions) -> Keeping:
    return Keeping(
        options.checkpoint_every, options.retain, options.retain_for, options.delete_on_cancel
    )


def _place(flow: str) -> str:
    """Return a flow's reference as it is found from anywhere."""
    path, colon, name = flow.partition(":")
    return f"{Path(path).absolute()}{colon}{name}"


def _stored(options: RunOptions) -> Any:
    """Return the options of a later start: what was for this one alone is left out."""
    later = replace(
        options,
        fresh=False,
        restore_from=None,
        restore_at=None,
        drop_state=(),
        consent=NO_CONSENT,
        home=options.home.absolute(),
    )
    return encode(later)


def check_java() -> None:
    """Refuse to start without Java, before Spark says so in its own words."""
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") or (home and (Path(home) / "bin" / "java").exists()):
        return
    raise HeadgateError(
        "JAVA_MISSING",
        "cannot start Spark: there is no Java on this machine",
        hint="install a JDK 17 or newer, or set JAVA_HOME to one; headgate doctor checks it",
        domain=Domain.EXTERNAL,
    )
