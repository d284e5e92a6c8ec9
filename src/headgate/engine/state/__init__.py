"""The state of operators, read from a checkpoint."""
