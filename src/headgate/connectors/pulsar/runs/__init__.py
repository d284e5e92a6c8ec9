"""What runs have read from Pulsar and written to it."""
