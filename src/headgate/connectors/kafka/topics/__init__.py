"""Topics on Kafka and their records."""
