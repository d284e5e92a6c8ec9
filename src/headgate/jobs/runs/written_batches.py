"""What a run has written of some batches, output by output, once nothing of it can write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headgate.connectors import Files, Kafka, Pulsar
from headgate.connectors.files import written as files
from headgate.connectors.kafka import written as kafka
from headgate.connectors.kafka.client import ClientSpec
from headgate.connectors.pulsar import written as pulsar
from headgate.connectors.written import NOTHING, Batches, Writers, Written, unknown
from headgate.engine.driver_lock import await_drivers
from headgate.engine.settings import Delivery
from headgate.flow.graph import Graph
from headgate.flow.topics import Topic
from headgate.jobs.home import JobHome
from headgate.jobs.runs.lineage import Run
from headgate.jobs.runs.transactions import count_run_tasks, transactional_ids

# In a run's folder: some start of the run wrote rows that leave no mark.
_UNMARKED = "at-least-once"
# Tasks run in the driver alone, and end with it.
_LOCAL = re.compile(r"local(\[|$)")


def note_delivery(home: JobHome, run: Run, delivery: Delivery) -> None:
    """Note, before a run writes, that brokers will not know which of its batches they have."""
    if delivery is Delivery.AT_LEAST_ONCE:
        (home.run_folder(run.lineage) / _UNMARKED).touch()


def find_written(home: JobHome, run: Run, batches: Batches) -> dict[str, Written]:
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
    clients = len({topic.client for topic in topics.values() if isinstance(topic, Kafka | Pulsar)})
    writers = Writers(
        run.lineage,
        f"headgate.{home.name}.{run.lineage}",
        tuple(
            transactional_ids(
                home.name, run.lineage, tasks=count_run_tasks(run), clients=max(1, clients)
            )
        ),
    )
    options = (home.find_json("job.json") or {}).get("options") or {}
    is_marked = _has_marks(home, run, options)
    is_gone = _LOCAL.match(options.get("master", "local")) is not None
    answers: dict[ClientSpec, Written] = {}
    found = {}
    for name, topic in topics.items():
        match topic:
            case Files() | Pulsar() if not is_gone:
                found[name] = unknown("executors of the run may be alive on other machines")
            case Files():
                found[name] = files.find_written(Path(topic.path), writers, batches)
            case Kafka() | Pulsar() if not is_marked:
                found[name] = unknown("delivery is at-least-once, which leaves no marks")
            case Kafka():
                if topic.client not in answers:
                    answers[topic.client] = kafka.find_written(topic.client, writers, batches)
                found[name] = answers[topic.client]
            case Pulsar():
                found[name] = pulsar.find_written(topic, writers, batches)
            case _:
                # A terminal keeps no rows.
                found[name] = NOTHING
    return found


def topics_of(flow: Graph) -> dict[str, Topic]:
    """Return what a flow writes to, by output, dead letters last."""
    topics = {node.id: node.topic for node in flow.outputs()}
    return {**topics, flow.dead_letters.name: flow.dead_letters}


def _has_marks(home: JobHome, run: Run, options: Mapping[str, Any]) -> bool:
    """Tell whether all that the run wrote to brokers left a mark there."""
    if (home.run_folder(run.lineage) / _UNMARKED).exists():
        return False
    # Releases up to 0.7 noted the delivery of a job's last start alone.
    return bool(options.get("delivery", Delivery.EXACTLY_ONCE) == Delivery.EXACTLY_ONCE)
