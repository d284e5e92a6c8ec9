"""The checkpoints and savepoints of a job: kept, listed, verified, restored."""
