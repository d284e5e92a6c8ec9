"""Spark's log as JSON: each line is an object with the job, the attempt and the batch."""

from __future__ import annotations

import json
from pathlib import Path

from bench import Bench

from headgate import Flow
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.views.log_search import LogFilter, LogLevel
from headgate.jobs.views.logs import Log


def test_every_entry_is_a_line_of_json_with_job_attempt_and_batch(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    flow = Flow("told")
    users = flow.table("users", "id BIGINT NOT NULL", key="id")
    found = flow.stream("events", "id BIGINT, n BIGINT").enrich("e", users, on="id", into="user")
    found.matched.select("id", "n").to("out")
    bench.put("users", [{"id": 1}])
    bench.put("events", [{"id": 1, "n": n} for n in range(2)])
    # A JVM keeps the form that its log began with, so this one has a JVM of its own.
    process = bench.spawn(bench.flow_file(flow), log_format="json", log_level="info", parallelism=1)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    lines = JobFolder(bench.home, "told").log_file.read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    assert len(entries) > 5
    assert {(each["job"], each["attempt"], each["executor"]) for each in entries} == {
        ("told", 1, "driver")
    }
    assert all(each["at"].endswith("Z") and each["level"] and each["logger"] for each in entries)
    assert {"0"} <= {each.get("batch") for each in entries}
    home = FolderHome(bench.home)
    infos = home.search_log("told", Log.SPARK, LogFilter(level=LogLevel.INFO)).total
    assert infos == sum(each["level"] in ("INFO", "WARN", "ERROR", "FATAL") for each in entries)
