"""Clients of Pulsar and its admin API."""
