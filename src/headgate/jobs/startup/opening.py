"""The run that a start goes on with: resumed, restored, fallen back to, or new."""

from __future__ import annotations

import os
from collections.abc import Sequence

from headgate._codec import encode
from headgate.checkpoints.problems import Problem
from headgate.checkpoints.sparklog import find_begun, find_last_commit, read_offsets
from headgate.checkpoints.stores import place_at
from headgate.checkpoints.verify import find_good
from headgate.connectors.registry import check_brokers
from headgate.engine.session.clusters import check_cluster_settings
from headgate.engine.session.driver_lock import await_drivers
from headgate.engine.session.masters import check_master
from headgate.engine.settings import Delivery
from headgate.errors import Domain, HeadgateError
from headgate.jobs.checkpoints.keeper import CheckpointKeeper, by_source
from headgate.jobs.checkpoints.listing import list_past, list_readable_past
from headgate.jobs.checkpoints.restore_plan import (
    RestorePlan,
    SealedPlan,
    check_plan,
    resolve_restore,
)
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.drain import check_not_drained
from headgate.jobs.runs.lineage import Run, check_state, continue_run, find_run, write_run
from headgate.jobs.runs.moved_sources import check_places
from headgate.jobs.startup.fallback import check_repeats, describe_repeats, find_repeats
from headgate.jobs.startup.left_batch import leave_batch
from headgate.jobs.startup.open_batch import (
    BegunBatch,
    check_choice,
    describe_choice,
    look_at_open_batch,
)
from headgate.jobs.startup.resuming import check_job_file, find_damage
from headgate.jobs.startup.start import Start
from headgate.jobs.values import LATEST, OpenBatch, RunOptions


def open_run(start: Start, *, restore: SealedPlan | None = None) -> tuple[Run, str]:
    """Return the run to go on with, and what the user has to know about the choice.

    Args:
        restore: The plan that was resolved for this start, if it was shown to the user before.

    Raises:
        HeadgateError: What a start refuses.
    """
    home, graph, options = start.home, start.graph, start.options
    _check_cluster(options)
    if restore is not None:
        return _restore_as_planned(start, check_plan(home, graph, restore, options))
    if options.restore_from == LATEST:
        return _restore_latest(start)
    if options.restore_from is not None or options.restore_at is not None:
        return _restore_chosen(start)
    if not options.fresh:
        check_job_file(home)
    present = None if options.fresh else home.find_present_run()
    if present is None:
        check_brokers(graph)
        check_master(options.master)
        run = start.make_run(parallelism=_slots(options))
        write_run(home, run)
        return run, ""
    return _resume(start, _get_run(home, present))


def _check_cluster(options: RunOptions) -> None:
    check_cluster_settings(
        options.master,
        {
            "executors": options.executors,
            "executor-cores": options.executor_cores,
            "driver-host": options.driver_host,
            "driver-bind": options.driver_bind,
            "python": options.python,
            "py-env": options.py_env,
        },
    )


def _slots(options: RunOptions) -> int:
    """Return how many tasks run at a time, as far as that is known before Spark starts."""
    if options.executors is not None:
        return options.executors * (options.executor_cores or 1)
    return os.cpu_count() or 1


def _get_run(home: JobFolder, lineage: str) -> Run:
    run = find_run(home, lineage)
    if run is None:
        raise HeadgateError(
            "RUN_MISSING",
            f"cannot resume job {home.name!r}: the manifest of its run {lineage} is missing",
            hint=f"restore {home.run_folder(lineage) / 'run.json'}, or start empty with --fresh",
            domain=Domain.EXTERNAL,
        )
    return run


def _resume(start: Start, known: Run) -> tuple[Run, str]:
    """Go on with the present run, or with a new one if it is corrupted or has an open batch."""
    home, graph, options = start.home, start.graph, start.options
    check_state(known, job=home.name)
    _check_parallelism(known, options, home.name)
    problems = find_damage(home, known)
    if problems:
        return _fall_back(start, problems)
    _check_places(start, known)
    if graph != known.flow or options.consent.open_batch is not None:
        batch = look_at_open_batch(home, known)
        if batch is not None:
            return _leave_batch(start, known, batch, flow_changed=graph != known.flow)
    check_not_drained(known.checkpoint, list_past(home), job=home.name)
    run = continue_run(known, graph, job=home.name, master=options.master)
    write_run(home, run)
    _drop_taken(run)
    return run, ""


def _check_places(start: Start, run: Run) -> None:
    """Refuse a source in another place, where the position of the present run does not hold."""
    begun = find_begun(run.checkpoint)
    taken = {} if run.origin is None else run.origin.positions
    read = {} if begun is None else by_source(run.flow, read_offsets(run.checkpoint, begun))
    positions = {**taken, **{name: at for name, at in read.items() if at is not None}}
    job = start.home.name
    check_places(run.flow, start.graph, positions, what=f"cannot resume job {job!r}", job=job)


def _drop_taken(run: Run) -> None:
    """Remove what operators took over, once it is in the run's own checkpoint."""
    folder = None if run.origin is None else run.origin.folder
    if folder is not None and find_last_commit(run.checkpoint) is not None:
        place_at(folder).remove_tree()


def _fall_back(start: Start, problems: Sequence[Problem]) -> tuple[Run, str]:
    """Go on from the newest valid checkpoint, and say so; refuse if there is none.

    If rows were written after that checkpoint, the user must agree, since they are written again.
    """
    home, options = start.home, start.options
    problem_text = "; ".join(str(problem) for problem in problems[:3])
    past = list_readable_past(home)
    good, bad = find_good(past)
    if options.strict or good is None:
        hint = f"headgate restore {home.name} --from {good.id}" if good else "start with --fresh"
        raise HeadgateError(
            "CHECKPOINT_DAMAGED",
            f"cannot resume job {home.name!r}: its newest checkpoint is corrupted: {problem_text}",
            hint=hint,
            domain=Domain.EXTERNAL,
        )
    skipped = "".join(f", {name} is corrupted too" for name in bad)
    repeats = find_repeats(home, good)
    if options.delivery is Delivery.EXACTLY_ONCE and not options.consent.allow_repeats:
        check_repeats(repeats, good, job=home.name, why=f"{problem_text}{skipped}")
    notice = (
        f"the newest checkpoint is corrupted ({problem_text}){skipped}: went back to {good.id}; "
        f"{describe_repeats(repeats)}"
    )
    home.add_event(start.clock.now(), "FELL_BACK", checkpoint=good.id, notice=notice)
    return _restore(start, start.plan_restore(good)), notice


def _restore_latest(start: Start) -> tuple[Run, str]:
    """Go on in a new run exactly where the present run ended, whatever it kept.

    A corrupted run cannot tell where it ended: the newest checkpoint is restored.
    """
    home = start.home
    await_drivers(home.path / "driver.lock")
    present = home.find_present_run()
    known = None if present is None else find_run(home, present)
    if known is None or find_damage(home, known):
        return _restore_chosen(start)
    _check_places(start, known)
    batch = look_at_open_batch(home, known)
    if batch is not None:
        return _leave_batch(start, known, batch, flow_changed=False)
    # A run that was killed right after a commit has no checkpoint of the batch.
    CheckpointKeeper(home, known, start.options, start.clock).keep_last()
    return _restore_chosen(start)


def _leave_batch(
    start: Start, run: Run, batch: BegunBatch, *, flow_changed: bool
) -> tuple[Run, str]:
    """Go on in a new run, before an open batch or behind it; refuse what the user did not choose.

    If another flow finished the batch in its own run, its rows could not be told from those that
    the batch has already written.
    """
    home, choice = start.home, start.options.consent.open_batch
    if flow_changed or start.options.delivery is Delivery.EXACTLY_ONCE:
        check_choice(batch, choice, job=home.name, flow_changed=flow_changed)
    made, warnings = leave_batch(start, run, batch)
    write_run(home, made)
    facts = {"choice": "skip" if choice is OpenBatch.SKIP else "repeat", **encode(batch)}
    home.add_event(start.clock.now(), "BATCH_LEFT", lineage=made.lineage, **facts)
    return made, "; ".join((describe_choice(batch, choice), *warnings))


def _restore_chosen(start: Start) -> tuple[Run, str]:
    resolved = resolve_restore(start.home, start.graph, start.options, now=start.clock.now())
    return _restore_as_planned(start, resolved.plan)


def _restore_as_planned(start: Start, plan: RestorePlan) -> tuple[Run, str]:
    return _restore(start, plan), "; ".join(plan.warnings)


def _restore(start: Start, plan: RestorePlan) -> Run:
    run = start.restore(plan)
    write_run(start.home, run)
    now = start.clock.now()
    start.home.add_event(now, "RESTORED", lineage=run.lineage, restore=encode(plan))
    return run


def _check_parallelism(run: Run, options: RunOptions, job: str) -> None:
    if options.parallelism is not None and options.parallelism != run.parallelism:
        raise HeadgateError(
            "PARALLELISM_FIXED",
            f"cannot resume job {job!r} with parallelism {options.parallelism}: its state has "
            f"parallelism {run.parallelism}",
            hint=f"omit --parallelism to continue with {run.parallelism}, or add --from latest",
        )
