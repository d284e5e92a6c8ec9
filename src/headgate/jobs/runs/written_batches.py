"""What a run has written of some batches, output by output, once nothing of it can write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from headgate.connectors.contract.written import NOTHING, Batches, Writers, Written
from headgate.connectors.registry import CONNECTORS, clusters_of
from headgate.engine.session.driver_lock import await_drivers
from headgate.engine.settings import Delivery
from headgate.flow.graph.graph import Graph
from headgate.flow.topics import Topic
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import Run
from headgate.jobs.runs.transactions import count_run_tasks, transactional_ids

# In a run's folder: some start of the run wrote rows that leave no mark.
UNMARKED = "at-least-once"
# Tasks run in the driver alone, and end with it.
_LOCAL = re.compile(r"local(\[|$)")


def note_delivery(home: JobFolder, run: Run, delivery: Delivery) -> None:
    """Note, before a run writes, that brokers will not know which of its batches they have."""
    if delivery is Delivery.AT_LEAST_ONCE:
        (home.run_folder(run.lineage) / UNMARKED).touch()


def has_unmarked(home: JobFolder, lineage: str) -> bool:
    """Return True if some start of a run wrote rows that leave no mark."""
    return (home.run_folder(lineage) / UNMARKED).exists()


def find_written(home: JobFolder, run: Run, batches: Batches) -> dict[str, Written]:
    """Return what each output of a run holds of some batches, dead letters last.

    The run's drivers must have ended, and its tasks are shut out of Kafka; so the answer stays
    true until the job is started again.

    Args:
        home: Locked.

    Raises:
        HeadgateError: DRIVER_STILL_RUNNING.
    """
    await_drivers(home.path / "driver.lock")
    topics = topics_of(run.flow)
    options = (home.find_json("job.json") or {}).get("options") or {}
    ids = transactional_ids(
        home.name,
        run.lineage,
        tasks=count_run_tasks(run),
        clients=max(1, len(clusters_of(topics.values()))),
    )
    writers = Writers(
        run.lineage,
        f"headgate.{home.name}.{run.lineage}",
        tuple(ids),
        are_gone=_LOCAL.match(options.get("master", "local")) is not None,
        leave_marks=_has_marks(home, run, options),
    )
    # A terminal keeps no rows.
    written = dict.fromkeys(topics, NOTHING)
    for kind, connector in CONNECTORS.items():
        served = {name: topic for name, topic in topics.items() if topic.kind == kind}
        written |= connector.writing.find_written(served, writers, batches)
    return written


def topics_of(flow: Graph) -> dict[str, Topic]:
    """Return what a flow writes to, by output, dead letters last."""
    topics = {node.id: node.topic for node in flow.outputs()}
    return {**topics, flow.dead_letters.name: flow.dead_letters}


def _has_marks(home: JobFolder, run: Run, options: Mapping[str, Any]) -> bool:
    """Tell whether all that the run wrote to brokers left a mark there."""
    if has_unmarked(home, run.lineage):
        return False
    # Releases up to 0.7 noted the delivery of a job's last start alone.
    return bool(options.get("delivery", Delivery.EXACTLY_ONCE) == Delivery.EXACTLY_ONCE)
