"""Making the topics of a flow before its first run."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from headgate.connectors import Files, Kafka, Pulsar
from headgate.connectors.kafka.log import KafkaLog
from headgate.connectors.logs import FilesLog, bind, parse_log
from headgate.connectors.pulsar.log import PulsarLog
from headgate.connectors.topics import (
    FOREVER,
    MadeTopic,
    Retention,
    WantedTopic,
    parse_retention,
)
from headgate.errors import HeadgateError
from headgate.flow.graph import Graph
from headgate.flow.schema import Field, Primitive, Schema
from headgate.flow.topics import Topic
from headgate.jobs.flow_file import load_flow
from headgate.jobs.options import flow_folder
from headgate.jobs.settings import read_settings
from headgate.jobs.topics.listing import open_topics

# Where exactly-once keeps which epoch of a task was committed; the kernel knows it by this name.
EPOCHS = "headgate-epochs"
# As many as the cores of a small machine: tasks can share partitions, never the other way round.
PARTITIONS = 4
RETENTION = Retention(timedelta(days=7))
# As the kernel writes them.
DEAD_LETTER = Schema(
    (
        Field("source", Primitive("string"), nullable=False),
        Field("topic", Primitive("string"), nullable=True),
        Field("partition", Primitive("int"), nullable=False),
        Field("offset", Primitive("bigint"), nullable=False),
        Field("timestamp", Primitive("bigint"), nullable=False),
        Field("code", Primitive("string"), nullable=False),
        Field("reason", Primitive("string"), nullable=True),
        Field("bytes", Primitive("bigint"), nullable=False),
        Field("raw", Primitive("binary"), nullable=True),
    )
)


class TopicRole(enum.StrEnum):
    """What a topic is to a flow."""

    TABLE = "table"
    STREAM = "stream"
    OUTPUT = "output"
    DEAD_LETTERS = "dead letters"
    EPOCHS = "epochs"

    @property
    def is_written(self) -> bool:
        """Whether the flow writes it."""
        return self in (TopicRole.OUTPUT, TopicRole.DEAD_LETTERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupOptions:
    """How topics are made; what is None was not asked for, and has a default.

    Attributes:
        retention: Of streams, outputs and dead letters: a duration, or `infinite`.
        replication: How many brokers keep a copy.
    """

    partitions: int | None = None
    retention: str | None = None
    replication: int | None = None


@dataclass(frozen=True, slots=True)
class FlowTopic:
    """A topic of a flow that is there now.

    Attributes:
        warnings: In what one that was there will not do, or is not as it was asked for.
    """

    role: TopicRole
    made: MadeTopic
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the topic as JSON values."""
        told = self.made.to_json()
        told.pop("differences", None)
        return {"role": self.role.value, **told, "warnings": [*self.warnings]}


@dataclass(frozen=True, slots=True)
class FlowSetup:
    """The topics of a flow, and those that nobody can make.

    Attributes:
        left_out: Topics that are no one topic, in words.
    """

    flow: str
    topics: tuple[FlowTopic, ...]
    left_out: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the topics as JSON values."""
        return {
            "flow": self.flow,
            "topics": [topic.to_json() for topic in self.topics],
            "left_out": [*self.left_out],
        }


def set_up(
    flow: str, on: str | None, options: SetupOptions, *, profile: str | None = None
) -> FlowSetup:
    """Make the topics of a flow that are missing; those that are there stay as they are.

    On Kafka, tables are compacted and kept for ever; streams, outputs and dead letters are kept
    for 7 days unless it is said otherwise. A cluster that is written to gets the topic that
    exactly-once keeps its epochs in. On Pulsar tables are kept for ever, and topics get a JSON
    schema of their columns and, where they are written, deduplication; a topic that is there gets
    these two where it lacks them.

    Args:
        flow: As `load_flow` takes it.
        on: The log of topics that are known by name alone; None is what headgate.toml says.
        profile: Of headgate.toml.

    Raises:
        HeadgateError: TOPIC_OPTION_UNSUPPORTED: an option that no log of the flow has.
    """
    loaded = load_flow(flow)
    settings = read_settings(flow_folder(flow), flags={"on": on, "profile": profile})
    graph = bind(loaded.graph, parse_log(settings["on"]))
    topics = dict(_topics(graph))
    _check_options(options, topics)
    left_out = tuple(topic.describe() for topic in topics if not _can_make(topic))
    schemas = _schemas(graph)
    made = tuple(
        _make(topic, role, options, schemas.get(topic))
        for topic, role in topics.items()
        if _can_make(topic)
    )
    return FlowSetup(graph.name, made, left_out)


def wanted_topic(name: str, role: TopicRole, options: SetupOptions) -> WantedTopic:
    """Return what a topic on Kafka is to be like."""
    keeps = role in (TopicRole.TABLE, TopicRole.EPOCHS)
    asked = RETENTION if options.retention is None else parse_retention(options.retention)
    one = role is TopicRole.EPOCHS
    return WantedTopic(
        name=name,
        partitions=1 if one else options.partitions or PARTITIONS,
        retention=FOREVER if keeps else asked,
        compact=keeps,
        replication=options.replication,
    )


def wanted_on_pulsar(
    name: str, role: TopicRole, options: SetupOptions, schema: Schema | None = None
) -> WantedTopic:
    """Return what a topic on Pulsar is to be like.

    Jobs read all there is, so that compaction, which is for readers that ask for it, is left out.
    """
    wanted = wanted_topic(name, role, options)
    return replace(
        wanted,
        compact=False,
        replication=None,
        deduplicate=role.is_written,
        schema=schema,
        # What records of a topic are like that is only read is its owner's matter.
        amend=role.is_written,
    )


def judge(role: TopicRole, made: MadeTopic, options: SetupOptions) -> tuple[str, ...]:
    """Return what is wrong with a topic that was there before, in words.

    Its number of partitions and its retention are its owner's matter, unless they were asked for.
    """
    if not made.existed or (made.retention is None and options.partitions is None):
        return made.warnings
    on_pulsar = made.deduplicated is not None
    found = _pulsar_problems if on_pulsar else _problems
    return (*found(role, made, options), *made.warnings)


def _problems(role: TopicRole, made: MadeTopic, options: SetupOptions) -> Iterator[str]:
    wanted = wanted_topic(made.name, role, options)
    asked = options.partitions is not None or role is TopicRole.EPOCHS
    if asked and made.partitions != wanted.partitions:
        yield f"it has {made.partitions} partitions and not {wanted.partitions}"
    if made.retention is None:
        return
    if options.replication is not None and made.replication != options.replication:
        yield f"it has {made.replication} replicas and not {options.replication}"
    if wanted.compact and not made.compacted:
        yield "it is not compacted, so that rows are lost or old ones pile up"
    elif made.compacted and not wanted.compact:
        yield "it is compacted, so that records with the same key are lost"
    if wanted.compact and made.retention != FOREVER:
        yield f"its rows are lost after {made.retention}"
    elif options.retention is not None and made.retention != wanted.retention:
        yield f"its retention is {made.retention} and not {wanted.retention}"


def _pulsar_problems(role: TopicRole, made: MadeTopic, options: SetupOptions) -> Iterator[str]:
    wanted = wanted_on_pulsar(made.name, role, options)
    if options.partitions is not None and made.partitions != wanted.partitions:
        yield f"it has {made.partitions} partitions and not {wanted.partitions}"
    kept = made.retention
    assert kept is not None, "Pulsar tells what it keeps"
    if kept.duration == timedelta(0):
        yield "it has no retention, so that records may be gone before they are read"
    elif role is TopicRole.TABLE and kept != FOREVER:
        yield f"its rows are lost after {kept}"
    elif options.retention is not None and kept != wanted.retention:
        yield f"its retention is {kept} and not {wanted.retention}"
    if wanted.deduplicate and not made.deduplicated:
        yield "its deduplication is off, so that exactly-once does not start"


def _schemas(graph: Graph) -> dict[Topic, Schema]:
    """Return the columns of each topic; what is read counts more than what is written."""
    ports = graph.schemas()
    written = {node.topic: ports[node.input] for node in graph.outputs()}
    read = {node.topic: node.schema for node in (*graph.streams(), *graph.tables())}
    return {graph.dead_letters: DEAD_LETTER, **written, **read}


def _topics(graph: Graph) -> Iterator[tuple[Topic, TopicRole]]:
    """Yield each topic with what it is, what counts most last."""
    written = [*(node.topic for node in graph.outputs()), graph.dead_letters]
    ordered: dict[Topic, TopicRole] = {}
    for topic in (node.topic for node in graph.streams()):
        ordered[topic] = TopicRole.STREAM
    for topic in (node.topic for node in graph.tables()):
        ordered[topic] = TopicRole.TABLE
    for topic in written:
        is_last = topic == graph.dead_letters
        ordered.setdefault(topic, TopicRole.DEAD_LETTERS if is_last else TopicRole.OUTPUT)
    for topic in written:
        if isinstance(topic, Kafka):
            ordered.setdefault(KafkaLog(topic.client).bind(EPOCHS), TopicRole.EPOCHS)
    yield from ordered.items()


def _can_make(topic: Topic) -> bool:
    one = isinstance(topic, Kafka | Pulsar) and topic.pattern is None
    return isinstance(topic, Files) or one


def _make(topic: Topic, role: TopicRole, options: SetupOptions, schema: Schema | None) -> FlowTopic:
    wanted = wanted_topic(topic.name, role, options)
    match topic:
        case Kafka():
            made = open_topics(KafkaLog(topic.client)).make(wanted)
        case Pulsar():
            wanted = wanted_on_pulsar(topic.name, role, options, schema)
            made = open_topics(PulsarLog(topic.client, topic.namespace)).make(wanted)
        case Files(path=path):
            folder = Path(path)
            # Embedded topics keep everything, and there is nothing to say about it.
            plain = WantedTopic(name=folder.name, partitions=wanted.partitions)
            made = open_topics(FilesLog(folder.parent)).make(plain)
        case _:
            raise AssertionError(f"{topic} cannot be made")
    return FlowTopic(role, made, judge(role, made, options))


def _check_options(options: SetupOptions, topics: dict[Topic, TopicRole]) -> None:
    kafka = any(isinstance(topic, Kafka) for topic in topics)
    pulsar = any(isinstance(topic, Pulsar) for topic in topics)
    if options.retention is not None and not (kafka or pulsar):
        raise _unsupported("--retention", "keep every file, once, until somebody deletes it")
    if options.replication is not None and not kafka:
        raise _unsupported("--replication", "have no copies that a topic could say anything of")


def _unsupported(option: str, found: str) -> HeadgateError:
    return HeadgateError(
        "TOPIC_OPTION_UNSUPPORTED",
        f"cannot set up topics with {option}: all of them {found}",
        hint=f"leave {option} out, or use Kafka: --on kafka://HOST:9092",
    )
