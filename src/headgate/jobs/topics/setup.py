"""Making the topics of a flow before its first run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from headgate._codec import shaped
from headgate.connectors.connector import Connector
from headgate.connectors.logs import bind, parse_log
from headgate.connectors.registry import find_connector, get_connector
from headgate.connectors.setup import SetupOptions, TopicRole
from headgate.connectors.topics import MadeTopic
from headgate.errors import HeadgateError
from headgate.flow.graph import Graph
from headgate.flow.schema import Field, Primitive, Schema
from headgate.flow.topics import Topic
from headgate.jobs.flow_file import load_flow
from headgate.jobs.options import flow_folder
from headgate.jobs.settings import read_settings

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


@dataclass(frozen=True, slots=True)
class FlowTopic:
    """A topic of a flow that is there now.

    Attributes:
        warnings: In what one that was there will not do, or is not as it was asked for.
    """

    role: TopicRole
    made: MadeTopic
    warnings: tuple[str, ...]

    __get_pydantic_core_schema__ = shaped(flatten="made", absent=lambda _: ("differences",))


@dataclass(frozen=True, slots=True)
class FlowSetup:
    """The topics of a flow, and those that nobody can make.

    Attributes:
        left_out: Topics that are no one topic, in words.
    """

    flow: str
    topics: tuple[FlowTopic, ...]
    left_out: tuple[str, ...]


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


def judge(
    connector: Connector[Any], role: TopicRole, made: MadeTopic, options: SetupOptions
) -> tuple[str, ...]:
    """Return what is wrong with a topic that was there before, in words.

    Its number of partitions and its retention are its owner's matter, unless they were asked for.
    """
    if not made.existed or (made.retention is None and options.partitions is None):
        return made.warnings
    return (*connector.setup.find_problems(role, made, options), *made.warnings)


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
        connector = find_connector(topic)
        for companion, role in () if connector is None else connector.setup.find_companions(topic):
            ordered.setdefault(companion, role)
    yield from ordered.items()


def _can_make(topic: Topic) -> bool:
    return find_connector(topic) is not None and topic.pattern is None


def _make(topic: Topic, role: TopicRole, options: SetupOptions, schema: Schema | None) -> FlowTopic:
    connector = get_connector(topic)
    wanted = connector.setup.wanted(topic, role, options, schema)
    made = connector.log_of(topic).open_topics().make(wanted)
    return FlowTopic(role, made, judge(connector, role, made, options))


def _check_options(options: SetupOptions, topics: Iterable[Topic]) -> None:
    known = {
        option
        for topic in topics
        if (connector := find_connector(topic)) is not None
        for option in connector.setup.options
    }
    if options.retention is not None and "retention" not in known:
        raise _unsupported("--retention", "keep every file, once, until somebody deletes it")
    if options.replication is not None and "replication" not in known:
        raise _unsupported("--replication", "have no copies that a topic could say anything of")


def _unsupported(option: str, found: str) -> HeadgateError:
    return HeadgateError(
        "TOPIC_OPTION_UNSUPPORTED",
        f"cannot set up topics with {option}: all of them {found}",
        hint=f"omit {option}, or use Kafka: --on kafka://HOST:9092",
    )
