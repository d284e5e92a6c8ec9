"""Folders on S3: files of other programs, read once by a job with its checkpoints there, too."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet
from s3_server import S3Server
from upath import UPath

FLOW = """
from headgate import Flow, Folder, Parquet

flow = Flow("from-s3")
schema = "n BIGINT NOT NULL, text STRING"
flow.stream(Parquet("{place}/wide", partition_by="day"), schema + ", day DATE").to("wide-out")
flow.stream(Folder("{place}/lines", format="json"), schema).to("lines-out")
"""


def put_wide(place: UPath, name: str, day: str, first: int, count: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = [
        {"n": n, "text": f"text {n}"} for n in range(first, first + count)
    ]
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_pylist(rows), sink, row_group_size=500)
    (place / "wide" / f"day={day}" / name).write_bytes(sink.getvalue().to_pybytes())
    return [{**row, "day": day} for row in rows]


def put_lines(place: UPath, name: str, first: int, count: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = [
        {"n": n, "text": f"line {n}"} for n in range(first, first + count)
    ]
    content = "".join(json.dumps(row) + "\n" for row in rows)
    (place / "lines" / name).write_bytes(content.encode())
    return rows


def read(topics: Path, name: str) -> list[str]:
    files = (topics / name).glob("part-*/*.jsonl")
    return sorted(
        json.dumps(json.loads(line), sort_keys=True)
        for file in files
        for line in file.read_text().splitlines()
    )


def plain(rows: list[dict[str, object]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def test_folders_on_a_store_are_read_once_across_a_kill_and_another_home(
    tmp_path: Path, s3: S3Server, s3_place: UPath
) -> None:
    wide, lines = [], []
    for number in range(4):
        wide += put_wide(s3_place, f"{number}.parquet", f"2026-11-1{number}", number * 5000, 3000)
        lines += put_lines(s3_place, f"{number}.jsonl", number * 5000, 3000)
    flow = tmp_path / "flow.py"
    flow.write_text(FLOW.format(place=s3_place))
    (tmp_path / "headgate.toml").write_text('[profiles.default]\nlease-expires = "5s"\n')
    topics = tmp_path / "topics"

    def command(home: str) -> list[str]:
        words = [sys.executable, "-m", "headgate", "run", str(flow), "--until-caught-up"]
        words += ["--on", f"files:{topics}", "--home", str(tmp_path / home)]
        words += ["--checkpoints", f"{s3_place}/checkpoints", "--batch-every", "0s"]
        return [*words, "--max-batch", "60KiB"]

    environment = {**os.environ, **s3.environment, "HEADGATE_MODULES": "s3a"}

    def run(home: str) -> None:
        done = subprocess.run(
            command(home), capture_output=True, text=True, check=False, env=environment, timeout=240
        )
        assert done.returncode == 0, done.stdout + done.stderr

    with subprocess.Popen(
        command("home"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    ) as first:
        deadline = time.monotonic() + 240
        while not read(topics, "lines-out"):
            assert first.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert first.poll() is None
        os.killpg(first.pid, signal.SIGKILL)
    wide += put_wide(s3_place, "a.parquet", "2026-11-10", 90_000, 100)
    run("home")
    assert read(topics, "wide-out") == plain(wide)
    assert read(topics, "lines-out") == plain(lines)
    lines += put_lines(s3_place, "a.jsonl", 90_000, 10)
    run("other-home")
    assert read(topics, "wide-out") == plain(wide)
    assert read(topics, "lines-out") == plain(lines)
    assert read(topics, "dead-letters") == []
