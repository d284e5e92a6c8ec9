"""Transactions that a failed job leaves open, and how they are ended.

An open transaction hides later records from readers of committed records, until it times out. A job
that starts again ends those of its earlier runs; for a job that does not, its supervisor ends them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from headgate.checkpoints.sparklog import find_last_commit
from headgate.connectors.registry import clusters_of, find_connector, get_connector
from headgate.engine.plan.ends import count_tasks
from headgate.engine.plan.plan import plan_flow
from headgate.engine.settings import Delivery, Fenced
from headgate.errors import HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.flow.topics import Topic
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import Run, find_run


def earlier_runs(home: JobFolder, run: Run, before: str | None) -> tuple[Fenced, ...]:
    """Return the runs of a job that must not write beside this one any more.

    Args:
        before: The run that was the job's present one when this was opened.
    """
    origin = None if run.origin is None else run.origin.lineage
    fenced = []
    for lineage in dict.fromkeys(run for run in (before, origin) if run is not None):
        # A savepoint may be of another job, which is none of ours to fence.
        earlier = None if lineage == run.lineage else find_run(home, lineage)
        if earlier is not None:
            last = _last_batch(run, earlier)
            fenced.append(
                Fenced(
                    lineage,
                    count_run_tasks(earlier),
                    is_over=earlier.ends_with_driver,
                    last=-1 if last is None else last,
                )
            )
    return tuple(fenced)


def _last_batch(run: Run, earlier: Run) -> int | None:
    """Return the last batch of an earlier run whose rows are part of the output.

    A run that was restored goes on where it left its origin, and no other run is part of its
    history. A run that starts empty follows all that the run before has committed.
    """
    if run.origin is None:
        return find_last_commit(earlier.checkpoint)
    return run.origin.batch if run.origin.lineage == earlier.lineage else None


def end_transactions(
    job: str, run: Run, graph: Graph, tell: Callable[[HeadgateError], None]
) -> None:
    """End the transactions that a run's tasks left open; failures are passed to `tell`."""
    clusters = clusters_of(_transactional(graph))
    ids = transactional_ids(job, run.lineage, tasks=count_run_tasks(run), clients=len(clusters))
    for topic in clusters.values():
        try:
            get_connector(topic).writing.end_transactions(topic, ids)
        except HeadgateError as error:
            tell(error)


def has_transactions(graph: Graph, delivery: Delivery) -> bool:
    """Tell whether a flow's tasks write in transactions."""
    return delivery is Delivery.EXACTLY_ONCE and any(_transactional(graph))


def _transactional(graph: Graph) -> Iterator[Topic]:
    for topic in (*(node.topic for node in graph.outputs()), graph.dead_letters):
        connector = find_connector(topic)
        if connector is not None and connector.writing.has_transactions:
            yield topic


def transactional_ids(job: str, lineage: str, *, tasks: int, clients: int) -> Sequence[str]:
    """Return the ids that the kernel's tasks give themselves.

    Args:
        clients: How many clients a flow has; some may reach the same cluster, where the kernel
            numbers their ids.
    """
    return [
        f"headgate.{job}.{lineage}.{task}{'' if slot == 0 else f'-{slot}'}"
        for slot in range(clients)
        for task in range(tasks)
    ]


def count_run_tasks(run: Run) -> int:
    """Return how many tasks of a run write at most."""
    return count_tasks(plan_flow(run.flow, history={}, max_record=0), run.parallelism)
