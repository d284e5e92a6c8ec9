"""Connectors: topics bound to one place, used instead of a name.

Descriptors are plain values; importing this package registers them for the JSON of flows.
"""

from headgate.connectors.console import Console
from headgate.connectors.files import Files
from headgate.connectors.folder import Folder, Parquet
from headgate.connectors.kafka import Kafka
from headgate.connectors.postgres import Postgres
from headgate.connectors.pulsar import Pulsar

__all__ = ["Console", "Files", "Folder", "Kafka", "Parquet", "Postgres", "Pulsar"]
