"""Connectors: topics bound to one place, used instead of a name.

Descriptors are plain values; importing this package registers them for the JSON of flows. Code that
needs Spark is in each connector's `_spark.py`, which only the engine imports.
"""

from headgate.connectors.console import Console
from headgate.connectors.files import Files
from headgate.connectors.kafka import Kafka
from headgate.connectors.pulsar import Pulsar

__all__ = ["Console", "Files", "Kafka", "Pulsar"]
