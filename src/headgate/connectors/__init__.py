"""Connectors: topics that are bound on their own, in place of a name.

Descriptors are plain values, made known to the JSON of flows by this import; what needs Spark
lies in each connector's `_spark.py`, which only the engine reads.
"""

from headgate.connectors.console import Console
from headgate.connectors.files import Files
from headgate.connectors.kafka import Kafka
from headgate.connectors.pulsar import Pulsar

__all__ = ["Console", "Files", "Kafka", "Pulsar"]
