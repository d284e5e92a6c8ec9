"""The batch that a run has to finish before it goes on: since when it waits."""

from __future__ import annotations

from pathlib import Path

from headgate.checkpoints.sparklog import find_open_batch, read_batch
from headgate.errors import HeadgateError


def unfinished_since_ms(checkpoint: Path) -> int:
    """Return when the batch was begun that was not committed, in epoch milliseconds; 0 for none.

    Args:
        checkpoint: Spark's folder of the run.
    """
    try:
        begun = find_open_batch(checkpoint)
        return 0 if begun is None else read_batch(checkpoint, begun).timestamp_ms
    except HeadgateError:
        # A batch that cannot be read fails when Spark repeats it, and says more then.
        return 0
