"""Keyed process functions at work: context, timers and one call of a worker. No Spark."""
