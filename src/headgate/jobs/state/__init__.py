"""The state of a job's operators: read by a process of its own, on request."""
