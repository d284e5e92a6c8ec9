"""Deleting jobs, and the files of old runs."""
