"""Connected streams in memory: a batch that is run again gives the same rows."""

from __future__ import annotations

import random

from connected_reference import chained, drawn, value_of

from headgate.testing import CrashAt, run_flow


def test_a_crashed_batch_gives_the_same_rows_again(seed: int) -> None:
    sequences = drawn(random.Random(seed), 60)
    inputs = {
        "left": [value_of(row) for row in sequences[0]],
        "right": [value_of(row) for row in sequences[2]],
    }
    plain = run_flow(chained(timed=True), inputs, batches=3)
    assert run_flow(chained(timed=True), inputs, batches=3, faults=[CrashAt(2)]) == plain
    assert plain["out"]
