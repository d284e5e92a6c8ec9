"""The commands that start, stop and delete jobs."""
