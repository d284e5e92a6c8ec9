"""Keyed process functions at work: state, timers and one call of a worker. No Spark."""
