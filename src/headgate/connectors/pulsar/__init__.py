"""Topics on Pulsar."""

from headgate.connectors.pulsar.descriptor import Pulsar

__all__ = ["Pulsar"]
