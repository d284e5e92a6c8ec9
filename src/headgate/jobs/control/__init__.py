"""The verbs on a job: each asks its supervisor, and waits for the outcome."""
