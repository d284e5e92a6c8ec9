"""Declare: a user's flow as inert values. Standard library only; nothing here runs.

`Flow` and `Stream` build a `Graph`. The rest of Headgate reads the graph, and stores it as JSON.
"""

from headgate.flow.flow import Flow
from headgate.flow.graph.edges import Edge, Exchange, edges_of
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Port
from headgate.flow.schemas.changes import difference, only_adds
from headgate.flow.schemas.schema import Schema, schema_of
from headgate.flow.state.changes import find_state_change
from headgate.flow.streams.connecting import ConnectedStreams
from headgate.flow.streams.keyed import KeyedStream
from headgate.flow.streams.outputs import Deduped, Enriched, Joined, Labelled, Processed, Windowed
from headgate.flow.streams.stream import Stream
from headgate.flow.streams.tables import Broadcast, Table
from headgate.flow.topics import LogicalTopic, Topic, register_topic

__all__ = [
    "Broadcast",
    "ConnectedStreams",
    "Deduped",
    "Edge",
    "Enriched",
    "Exchange",
    "Flow",
    "Graph",
    "Joined",
    "KeyedStream",
    "Labelled",
    "LogicalTopic",
    "Port",
    "Processed",
    "Schema",
    "Stream",
    "Table",
    "Topic",
    "Windowed",
    "difference",
    "edges_of",
    "find_state_change",
    "only_adds",
    "register_topic",
    "schema_of",
]
