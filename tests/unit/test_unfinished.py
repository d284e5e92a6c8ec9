"""A batch that was begun and not committed: since when it waits."""

from __future__ import annotations

import json
from pathlib import Path

from headgate.jobs.startup.attempt_settings import unfinished_since_ms


def begin(checkpoint: Path, batch: int, timestamp_ms: int) -> None:
    head = {"batchWatermarkMs": 0, "batchTimestampMs": timestamp_ms, "conf": {}}
    file = checkpoint / "offsets" / str(batch)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"v2\n{json.dumps(head)}\norders:{{}}")


def commit(checkpoint: Path, batch: int) -> None:
    (checkpoint / "commits").mkdir(exist_ok=True)
    (checkpoint / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')


def test_only_a_batch_that_was_begun_and_not_committed_waits(tmp_path: Path) -> None:
    assert unfinished_since_ms(tmp_path) == 0
    begin(tmp_path, 0, 1000)
    assert unfinished_since_ms(tmp_path) == 1000
    commit(tmp_path, 0)
    assert unfinished_since_ms(tmp_path) == 0
    begin(tmp_path, 1, 2000)
    assert unfinished_since_ms(tmp_path) == 2000


def test_a_batch_that_cannot_be_read_is_left_to_spark(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text("v9\n")
    assert unfinished_since_ms(tmp_path) == 0
