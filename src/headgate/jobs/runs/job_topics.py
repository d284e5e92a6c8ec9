"""The topics of a job as it was last run, wherever they are."""

from __future__ import annotations

from pathlib import Path

from headgate.connectors import Files, Kafka, Pulsar
from headgate.connectors.files.places import FilesPlaces
from headgate.connectors.places import Places
from headgate.connectors.pulsar.names import DEFAULT_NAMESPACE
from headgate.errors import HeadgateError
from headgate.flow.graph import Graph
from headgate.flow.topics import Topic
from headgate.jobs.home import JobHome
from headgate.jobs.runs.lineage import find_run


def get_flow(home: JobHome, *, doing: str) -> Graph:
    """Return the flow of a job as it was last run, its topics bound.

    Args:
        doing: What cannot be done where there is none, up to the job's name.

    Raises:
        HeadgateError: JOB_NEVER_RAN.
    """
    lineage = home.find_present_run() or (home.find_json("status.json") or {}).get("lineage")
    run = None if lineage is None else find_run(home, str(lineage))
    if run is None:
        raise HeadgateError(
            "JOB_NEVER_RAN",
            f"cannot {doing} job {home.name!r}: it never got as far as to run",
            hint=f"headgate show {home.name}",
        )
    return run.flow


def can_open(topic: Topic) -> bool:
    """Tell whether a topic keeps its records where they can be read."""
    return isinstance(topic, Files | Kafka | Pulsar)


def open_places(topic: Topic) -> Places:
    """Return the records of a topic that keeps them; nothing is asked of its log yet."""
    match topic:
        case Kafka():
            # Kafka's client is a library that embedded topics do without.
            from headgate.connectors.kafka.places import KafkaPlaces

            return KafkaPlaces(topic.client, topic.name)
        case Pulsar():
            from headgate.connectors.pulsar.places import PulsarPlaces

            return PulsarPlaces(topic.client, topic.namespace, topic.name)
        case Files():
            return FilesPlaces(Path(topic.path))
        case _:
            raise AssertionError(f"{topic.describe()} keeps no records")


def where(topic: Topic) -> str:
    """Return the log of a topic as `--on` names it, without the options of its clients."""
    match topic:
        case Kafka():
            return f"kafka://{topic.servers}"
        case Pulsar():
            is_default = topic.namespace == DEFAULT_NAMESPACE
            return topic.service if is_default else f"{topic.service}/{topic.namespace}"
        case Files():
            path = Path(topic.path)
            return f"files:{path.parent if path.name == topic.name else path}"
        case _:
            return topic.kind


def is_missing(error: HeadgateError) -> bool:
    """Tell whether a topic could not be read because nobody has made it yet."""
    return error.code == "TOPIC_NOT_FOUND"
