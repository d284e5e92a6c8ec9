"""Clients of Kafka, and requests to a cluster."""
