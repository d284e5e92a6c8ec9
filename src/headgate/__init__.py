"""Headgate: long-lived stateful streaming jobs on Apache Spark, from Python.

The rooms, from the door down; imports only go down:

    control     cli/  server/            parse, call jobs.service, print or render
    lifecycle   jobs/                    intent, state machine, restarts, operations
    run         engine/                  one attempt of one flow on Spark
    disk        checkpoints/             what a checkpoint is on disk
    edges       connectors/  formats/    descriptors are plain values, Spark is kept apart
                brokers/  producers/     a broker on this machine; example data
    declare     flow/                    what you write, the graph, its JSON
    floor       errors.py  _clock.py  _units.py  _artifacts.py  and _kernel/, which alone meets
                the JVM
"""

from headgate.connectors import Console, Files, Kafka
from headgate.errors import Domain, HeadgateError
from headgate.flow import (
    Enriched,
    Flow,
    Graph,
    LogicalTopic,
    Schema,
    Stream,
    Table,
    Topic,
    schema_of,
)

__version__ = "0.3.0"

__all__ = [
    "Console",
    "Domain",
    "Enriched",
    "Files",
    "Flow",
    "Graph",
    "HeadgateError",
    "Kafka",
    "LogicalTopic",
    "Schema",
    "Stream",
    "Table",
    "Topic",
    "__version__",
    "schema_of",
]
