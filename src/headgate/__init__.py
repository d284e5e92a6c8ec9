"""Headgate: long-lived stateful streaming jobs on Apache Spark, from Python.

The rooms, from the door down; imports only go down:

    control     cli/  server/  client/   parse, ask a Home, print or render
    from Python interactive/             flows that run themselves, handles on jobs, notebooks
    lifecycle   jobs/                    intent, state machine, restarts, operations
    run         engine/                  one attempt of one flow on Spark
    disk        checkpoints/             what a checkpoint is on disk
    edges       connectors/              topics as plain values, one connector for each kind
                brokers/  producers/     a broker on this machine; example data
    declare     flow/                    what you write, the graph, its JSON
                windows.py               the words for windows of event time
    floor       errors.py  _clock.py  _units.py  _codec.py  _disk.py  _artifacts.py
                and _kernel/, which alone meets the JVM

Large rooms have inner rooms, whose imports go down as well: docs/internals/rooms.md.
"""

from headgate.connectors import Console, Files, Folder, Kafka, Parquet, Postgres, Pulsar
from headgate.errors import Domain, HeadgateError
from headgate.flow import (
    Broadcast,
    Deduped,
    Enriched,
    Graph,
    Joined,
    Labelled,
    LogicalTopic,
    Processed,
    Schema,
    Stream,
    Table,
    Topic,
    Windowed,
    schema_of,
)
from headgate.functions.broadcast import BroadcastContext, BroadcastProcess
from headgate.functions.keyed import (
    Context,
    KeyedCoProcess,
    KeyedProcess,
    ListOf,
    MapOf,
    Timer,
    Value,
)
from headgate.interactive.flow import Flow
from headgate.interactive.places import connect

__version__ = "0.14.0"

__all__ = [
    "Broadcast",
    "BroadcastContext",
    "BroadcastProcess",
    "Console",
    "Context",
    "Deduped",
    "Domain",
    "Enriched",
    "Files",
    "Flow",
    "Folder",
    "Graph",
    "HeadgateError",
    "Joined",
    "Kafka",
    "KeyedCoProcess",
    "KeyedProcess",
    "Labelled",
    "ListOf",
    "LogicalTopic",
    "MapOf",
    "Parquet",
    "Postgres",
    "Processed",
    "Pulsar",
    "Schema",
    "Stream",
    "Table",
    "Timer",
    "Topic",
    "Value",
    "Windowed",
    "__version__",
    "connect",
    "schema_of",
]
