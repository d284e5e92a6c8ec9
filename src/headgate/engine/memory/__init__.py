"""Flows in memory, without topics."""
