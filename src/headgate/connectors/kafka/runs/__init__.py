"""What runs have read from Kafka and written to it."""
