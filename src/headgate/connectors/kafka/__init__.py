"""Topics on Kafka."""

from headgate.connectors.kafka.descriptor import Kafka

__all__ = ["Kafka"]
