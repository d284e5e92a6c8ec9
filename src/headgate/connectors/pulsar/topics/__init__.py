"""Topics on Pulsar and their records."""
