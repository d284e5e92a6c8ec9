"""Declare: a user's flow as inert values. Standard library only; nothing here runs.

`Flow` and `Stream` build a `Graph`. The rest of Headgate reads the graph, and stores it as JSON.
"""

from headgate.flow.connecting import ConnectedStreams
from headgate.flow.exchange import Edge, Exchange, edges_of
from headgate.flow.flow import Flow
from headgate.flow.graph import Graph
from headgate.flow.operators import Port
from headgate.flow.outputs import Deduped, Enriched, Joined, Labelled, Processed, Windowed
from headgate.flow.schema import Schema, schema_of
from headgate.flow.schema_changes import difference, only_adds
from headgate.flow.state_shape import find_state_change
from headgate.flow.stream import Broadcast, KeyedStream, Stream, Table
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
