"""A folder on S3 as an output: a real server refuses what is there, and each row is there once."""

from __future__ import annotations

import io
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, bag
from pyarrow import parquet
from s3_server import S3Server

from headgate import Flow, Parquet
from headgate.connectors.contract.written import Answer, Batches, Writers
from headgate.connectors.folder.written import find_hidden, find_written
from headgate.jobs.job_folder import JobFolder

ROWS = [{"id": n, "day": f"2026-11-{n % 3 + 1:02}"} for n in range(2000)]
POINTS = ("folder-staged", "folder-decided", "folder-file-published")


def read(s3: S3Server, prefix: str) -> list[dict[str, Any]]:
    """Return the rows of all visible objects below a prefix."""
    rows = []
    for key in s3.list_keys(f"{prefix}/"):
        name = key.removeprefix(f"{prefix}/")
        if name.startswith("_"):
            continue
        content = s3.client().get_object(Bucket=s3.bucket, Key=key)["Body"].read()
        day = name.partition("/")[0].removeprefix("day=")
        found = parquet.ParquetFile(io.BytesIO(content)).read().to_pylist()
        rows += [{**row, "day": day} for row in found]
    return rows


def test_a_job_that_dies_while_it_publishes_on_s3_writes_each_row_once(
    tmp_path: Path, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)
    for start in range(0, len(ROWS), 250):
        bench.put("rows", ROWS[start : start + 250])
    dies = tmp_path / "dies"
    dies.mkdir()
    for point in POINTS:
        (dies / point).touch()
    monkeypatch.setenv("HEADGATE_CRASH_DIR", str(dies))
    monkeypatch.setenv("HEADGATE_MODULES", "s3a")
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    prefix = f"lake-{tmp_path.name}"
    folder = Parquet(s3.url(prefix), partition_by="day", roll_size="4KB")
    flow = Flow("lake")
    flow.stream("rows", "id BIGINT, day STRING").to(folder)
    job = bench.spawn_supervised(bench.flow_file(flow), max_batch=12_000, parallelism=2)
    said, _ = job.communicate(timeout=900)
    assert job.returncode == 0, said
    assert not list(dies.iterdir())
    assert bag(read(s3, prefix)) == bag(ROWS)
    # S3A marks folders that have become empty.
    hidden = [key for key in s3.list_keys(f"{prefix}/_headgate/") if not key.endswith("/")]
    assert [key for key in hidden if "/rolls/" not in key] == []
    lineage = JobFolder(bench.home, "lake").find_present_run()
    assert lineage is not None
    assert find_hidden(folder, lineage) is None
    batches = Batches(10_000, None, datetime.now(UTC))
    found = find_written({"out": folder}, Writers(lineage, "headgate.lake", ()), batches)
    assert found["out"].answer is Answer.NO
    names = Counter(Path(key).name[:22] for key in s3.list_keys(f"{prefix}/day"))
    assert set(names) == {lineage}
