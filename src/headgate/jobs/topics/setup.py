"""Creation of a flow's topics before its first run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from headgate._codec import shaped
from headgate.connectors.contract.connector import Connector
from headgate.connectors.contract.setup import SetupOptions, TopicRole
from headgate.connectors.contract.topics import MadeTopic
from headgate.connectors.logs import bind, parse_log
from headgate.connectors.registry import find_connector, get_connector
from headgate.errors import HeadgateError
from headgate.flow.formats.plain import Json
from headgate.flow.graph.graph import Graph
from headgate.flow.schemas.schema import Schema, schema_of
from headgate.flow.topics import Topic
from headgate.jobs.flow_file import load_flow
from headgate.jobs.settings import flow_folder, read_settings

# As the kernel writes them.
DEAD_LETTER = schema_of(
    "source STRING NOT NULL, topic STRING, partition INT NOT NULL, offset BIGINT NOT NULL, "
    "timestamp BIGINT NOT NULL, code STRING NOT NULL, reason STRING, bytes BIGINT NOT NULL, "
    "raw BINARY"
)


@dataclass(frozen=True, slots=True)
class FlowTopic:
    """A created or existing topic of a flow; `warnings` are problems of an existing one."""

    role: TopicRole
    made: MadeTopic
    warnings: tuple[str, ...]

    __get_pydantic_core_schema__ = shaped(flatten="made", absent=lambda _: ("differences",))


@dataclass(frozen=True, slots=True)
class FlowSetup:
    """The topics of a flow.

    Attributes:
        left_out: Topics that cannot be created: patterns and consoles.
    """

    flow: str
    topics: tuple[FlowTopic, ...]
    left_out: tuple[str, ...]


def set_up(
    flow: str, on: str | None, options: SetupOptions, *, profile: str | None = None
) -> FlowSetup:
    """Create the missing topics of a flow; existing ones stay as they are.

    On Kafka, tables are compacted and kept without limit; streams, outputs and dead letters are
    kept for 7 days by default. A cluster with outputs gets the topic in which exactly-once stores
    its epochs. On Pulsar, tables are kept without limit, and outputs and dead letters get a JSON
    schema of their columns and deduplication; an existing one gets these two if it lacks them.

    Args:
        flow: As `load_flow` takes it.
        on: The log of topics without a location; None for that of headgate.toml.
        profile: A profile of headgate.toml.

    Raises:
        HeadgateError: TOPIC_OPTION_UNSUPPORTED for an option that no log of the flow has.
    """
    loaded = load_flow(flow)
    settings = read_settings(flow_folder(flow), flags={"on": on, "profile": profile})
    graph = bind(loaded.graph, parse_log(settings["on"]))
    topics = dict(_topics(graph))
    _check_options(options, topics)
    left_out = tuple(topic.describe() for topic in topics if not _can_make(topic))
    schemas, keys = _schemas(graph), _keys(graph)
    made = tuple(
        _make(topic, role, options, schemas.get(topic), keys.get(topic, ()))
        for topic, role in topics.items()
        if _can_make(topic)
    )
    return FlowSetup(graph.name, made, left_out)


def judge(
    connector: Connector[Any], role: TopicRole, made: MadeTopic, options: SetupOptions
) -> tuple[str, ...]:
    """Return the problems of an existing topic, in words.

    Its number of partitions and its retention are problems only if they were requested.
    """
    if not made.existed or (made.retention is None and options.partitions is None):
        return made.warnings
    return (*connector.setup.find_problems(role, made, options), *made.warnings)


def _schemas(graph: Graph) -> dict[Topic, Schema]:
    """Return the columns of each topic of JSON; those of a source win over those of an output."""
    ports = graph.schemas()
    outputs = (node for node in graph.outputs() if isinstance(node.format, Json))
    written = {node.topic: ports[node.input] for node in outputs}
    sources = (*graph.streams(), *graph.tables())
    read = {node.topic: node.schema for node in sources if isinstance(node.format, Json)}
    return {graph.dead_letters: DEAD_LETTER, **written, **read}


def _topics(graph: Graph) -> Iterator[tuple[Topic, TopicRole]]:
    """Yield each topic with its role: that of a table wins, then stream, then output."""
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


def _keys(graph: Graph) -> dict[Topic, tuple[str, ...]]:
    """Return the message key of each output that has one."""
    return {node.topic: (node.key,) for node in graph.outputs() if node.key is not None}


def _make(
    topic: Topic,
    role: TopicRole,
    options: SetupOptions,
    schema: Schema | None,
    key: tuple[str, ...],
) -> FlowTopic:
    connector = get_connector(topic)
    wanted = connector.setup.wanted(topic, role, options, schema)
    wanted = replace(wanted, key=wanted.key or key)
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
        raise _unsupported("--retention", "keep every file until it is deleted by hand")
    if options.replication is not None and "replication" not in known:
        raise _unsupported("--replication", "have no replicas")


def _unsupported(option: str, why: str) -> HeadgateError:
    return HeadgateError(
        "TOPIC_OPTION_UNSUPPORTED",
        f"cannot set up topics with {option}: all topics of the flow {why}",
        hint=f"omit {option}, or use Kafka: --on kafka://HOST:9092",
    )
