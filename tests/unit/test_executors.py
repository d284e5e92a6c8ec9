"""The executors of an attempt: from the kernel's JSON to files, views, advice and metrics."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cli_runs import run, run_json
from fake_clock import FakeClock

from headgate._codec import decode, encode
from headgate.engine.attempt.executors import Executor, Executors, parse_executors
from headgate.engine.attempt.vitals import MemoryPool, Vitals
from headgate.engine.settings import MIB, SparkSettings
from headgate.errors import HeadgateError
from headgate.jobs.attempts.wire import Measured, decode_news, encode_news
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.host.doctor import Finding, Status
from headgate.jobs.host.job_doctor import diagnose_job, judge_executors
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.metrics.counters import Counters
from headgate.jobs.metrics.executor_file import find_executors, write_executors
from headgate.jobs.supervision.meter import Meter
from headgate.jobs.views.executor_logs import find_executor_log, get_executor_log
from headgate.jobs.views.job import JobView
from headgate.jobs.views.log_search import LogFilter
from headgate.jobs.views.logs import Log
from headgate.jobs.views.processes import Processes, view_processes
from headgate.server.metrics.metric import JobFigures
from headgate.server.metrics.table import JOB_METRICS

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
NOON_MS = round(NOON.timestamp() * 1000)
SETTINGS = SparkSettings(parallelism=2, log_file=Path("spark.log"), state_memory=64 * MIB)
REPORT = {
    "executor": "1",
    "pid": 4711,
    "logs": "/opt/spark/work/app-1/1",
    "pools": {"heap": {"used": 700, "max": 1000, "live": 300}, "state": {"used": 50}},
    "threads": 40,
    "gc_ms": 1500,
    "gc_count": 3,
    "cpu_ns": 2_500_000_000,
    "resident": 2000,
    "workers": [100, 0, 200],
}
LOST: dict[str, Any] = {
    "id": "0",
    "host": "10.0.0.6",
    "since": NOON_MS - 90_000,
    "slots": 2,
    "running": 0,
    "completed": 7,
    "failed": 2,
    "shuffle_read": 10,
    "shuffle_written": 20,
    "links": {},
    "lost_at": NOON_MS,
    "reason": "Command exited with code 137\nof its worker",
}
ALIVE: dict[str, Any] = {
    **{name: value for name, value in LOST.items() if name not in ("lost_at", "reason")},
    "id": "1",
    "running": 1,
    "at": NOON_MS + 1_000,
    "vitals": REPORT,
}


def parse(*executors: dict[str, Any], lost: int = 1) -> Executors:
    return parse_executors({"executors": list(executors), "lost": lost}, SETTINGS, at=NOON)


def test_the_kernels_executors_get_limits_and_the_meaning_of_their_end() -> None:
    found = parse(LOST, ALIVE)
    lost, alive = found.listed
    assert (lost.is_alive, lost.lost_at, lost.vitals, lost.process) == (False, NOON, None, None)
    assert lost.lost_reason == (
        "Command exited with code 137 of its worker "
        "(it was killed by signal 9, usually for its memory)"
    )
    assert (alive.is_alive, alive.process, alive.log_folder) == (
        True,
        4711,
        "/opt/spark/work/app-1/1",
    )
    assert alive.since == NOON - timedelta(seconds=90)
    assert alive.vitals is not None
    assert alive.vitals.at == NOON + timedelta(seconds=1)
    assert alive.vitals.pools["state"] == MemoryPool(50, 64 * MIB)
    assert alive.vitals.workers == (100, 200)
    assert (found.alive, found.registered, found.lost) == ((alive,), 1, 1)


def test_a_driver_that_runs_the_tasks_is_no_registered_executor() -> None:
    own = {**ALIVE, "id": "driver", "vitals": None}
    assert parse(own, lost=0).registered == 0


def test_an_id_that_is_given_again_is_the_executor_that_is_there(worker: Path) -> None:
    report = {**REPORT, "logs": str(worker)}
    again = parse({**LOST, "id": "1"}, {**ALIVE, "vitals": report})
    assert [executor.id for executor in again.alive] == ["1"]
    assert get_executor_log("shop", again, "1") == worker / "stderr"


def test_a_reason_is_bounded() -> None:
    lost = parse({**LOST, "reason": "x" * 5_000}).listed[0]
    assert len(lost.lost_reason) == 1_001


def test_executors_keep_their_values_on_the_way_to_files_and_readers(tmp_path: Path) -> None:
    found, home = parse(LOST, ALIVE), JobFolder(tmp_path, "shop")
    news = Measured(Vitals(at=NOON), found)
    assert decode_news(json.loads(json.dumps(encode_news(news)))) == news
    meter = Meter(home, FakeClock(NOON))
    meter.measured(Vitals(at=NOON), found)
    assert find_executors(home) == found
    content = json.loads((home.path / "executors.json").read_text())
    assert content["format"] == 1
    assert [each["id"] for each in content["executors"]] == ["0", "1"]
    # Those of the next attempt are others.
    meter.attempt_launched()
    assert find_executors(home) is None


def test_a_file_that_cannot_be_read_is_no_executors(tmp_path: Path) -> None:
    home = JobFolder(tmp_path, "shop")
    home.write_json("executors.json", {"executors": [{"id": "1"}]})
    assert find_executors(home) is None
    (home.path / "executors.json").write_text("{")
    assert find_executors(home) is None


@pytest.fixture
def worker(tmp_path: Path) -> Path:
    """Return the folder in which a worker on this machine started executor 1."""
    folder = tmp_path / "work" / "app-1" / "1"
    folder.mkdir(parents=True)
    (folder / "stderr").write_text("one\ntwo\nthree\n")
    return folder


@pytest.fixture
def home(tmp_path: Path, worker: Path) -> JobFolder:
    """Return a job with a lost executor and one on this machine."""
    made = JobFolder(tmp_path / "home", "shop")
    made.write_status({"state": "RUNNING", "attempt": 2, "child": 42})
    report = {**REPORT, "logs": str(worker)}
    Meter(made, FakeClock(NOON)).measured(
        Vitals(at=NOON, pools={"heap": MemoryPool(1)}), parse(LOST, {**ALIVE, "vitals": report})
    )
    return made


def test_a_running_job_shows_its_processes_and_where_logs_are(
    home: JobFolder, worker: Path
) -> None:
    # Figures of a driver that is gone.
    assert view_processes(home) == Processes(job="shop")
    with home.locked():
        found = view_processes(home)
    assert (found.attempt, found.driver, found.lost, found.is_local) == (2, 42, 1, False)
    lost, alive = found.executors
    assert (lost.has_log, lost.log_place) == (False, "the output of its process on 10.0.0.6")
    assert (alive.has_log, alive.log_place) == (True, f"{worker}/stderr on 10.0.0.6")
    content = encode(found)
    assert content["executors"][1]["id"] == "1"
    assert content["executors"][1]["has_log"] is True
    assert decode(Processes, json.loads(json.dumps(content))) == found


def test_the_log_of_an_executor_is_read_like_those_of_the_job(home: JobFolder) -> None:
    jobs = FolderHome(home.root)
    assert jobs.tail_log("shop", Log.EXECUTOR, last=2, executor="1") == [b"two", b"three"]
    assert jobs.page_log("shop", Log.EXECUTOR, last=1, executor="1").lines == ("three",)
    wanted = LogFilter(text="T")
    assert jobs.search_log("shop", Log.EXECUTOR, wanted, last=9, executor="1").total == 2


@pytest.mark.parametrize(
    ("executor", "problem"),
    [
        (None, "no executor is named"),
        ("7", "there is no executor '7'; logs can be read of: 1"),
        ("0", "not on this machine but here: the output of its process on 10.0.0.6"),
    ],
)
def test_a_log_that_is_elsewhere_is_named(
    home: JobFolder, executor: str | None, problem: str
) -> None:
    with pytest.raises(HeadgateError, match=problem) as caught:
        FolderHome(home.root).tail_log("shop", Log.EXECUTOR, last=2, executor=executor)
    assert caught.value.code == "LOG_NOT_FOUND"


def test_an_executor_cannot_make_a_server_read_another_file(home: JobFolder, worker: Path) -> None:
    (executor,) = parse({**ALIVE, "vitals": {**REPORT, "logs": str(worker)}}).listed
    assert find_executor_log(executor) == worker / "stderr"
    for folder in (worker.parent, "", "relative/1", worker.parent / "other" / "1"):
        assert find_executor_log(replace(executor, log_folder=str(folder))) is None
    secret = worker.parent / "secret"
    secret.write_text("key")
    for name in ("stderr.1", "events.old.jsonl"):
        (worker / name).symlink_to(secret)
    found = FolderHome(home.root).filter_log("shop", Log.EXECUTOR, LogFilter(), executor="1")
    assert b"key" not in list(found)
    (worker / "stderr").unlink()
    (worker / "stderr").symlink_to(secret)
    assert find_executor_log(executor) is None


def warned(*executors: Executor) -> list[Finding]:
    findings = judge_executors(Executors(at=NOON, listed=executors))
    return [each for each in findings if each.status is Status.WARN]


def test_pools_of_executors_near_their_limit_are_named_with_the_setting_that_helps() -> None:
    lost, alive = parse(LOST, ALIVE).listed
    assert warned(lost, alive) == []
    heap = MemoryPool(990 * MIB, 1000 * MIB, 800 * MIB)
    full = Vitals(at=NOON, pools={"heap": heap}, workers=(95 * MIB,), worker_limit=100 * MIB)
    near_heap, near_worker = warned(replace(alive, vitals=full))
    assert near_heap.name == "executor 1: heap"
    assert near_heap.advice == "headgate run FLOW --executor-memory 1500MiB"
    assert near_worker.name == "executor 1: python worker 1"
    assert "worker-memory" in near_worker.advice
    # The memory of a lost executor is free.
    assert warned(replace(alive, vitals=full, lost_at=NOON)) == []


def test_the_doctor_of_a_job_has_its_executors(home: JobFolder) -> None:
    with home.locked():
        names = [each.name for each in diagnose_job(home.root, "shop")]
    assert {"heap", "executor 1: heap", "executor 1: python worker 2"} <= set(names)
    assert not [name for name in names if name.startswith("executor 0")]


def samples(executors: Executors | None) -> dict[str, dict[tuple[str, ...], float]]:
    view = JobView(name="shop", state="RUNNING", is_alive=True)
    figures = JobFigures(view, Counters(), None, None, executors, NOON)
    return {
        metric.full_name: dict(metric.read(figures))  # type: ignore[arg-type]
        for metric in JOB_METRICS
        if metric.name.startswith("executor")
    }


def test_metrics_are_of_the_executors_that_are_there() -> None:
    found = samples(parse(LOST, ALIVE))
    assert found["headgate_executors"] == {(): 1}
    assert found["headgate_executors_lost"] == {(): 1}
    assert found["headgate_executor_slots"] == {("1",): 2}
    assert found["headgate_executor_tasks_running"] == {("1",): 1}
    assert found["headgate_executor_tasks_total"] == {("1", "completed"): 7, ("1", "failed"): 2}
    assert found["headgate_executor_shuffle_read_bytes_total"] == {("1",): 10}
    assert found["headgate_executor_memory_used_bytes"] == {("1", "heap"): 700, ("1", "state"): 50}
    assert found["headgate_executor_memory_live_bytes"] == {("1", "heap"): 300}
    assert found["headgate_executor_memory_limit_bytes"] == {
        ("1", "heap"): 1000,
        ("1", "state"): 64 * MIB,
    }
    assert found["headgate_executor_resident_memory_bytes"] == {
        ("1", "executor"): 2000,
        ("1", "python"): 300,
    }
    assert found["headgate_executor_gc_seconds_total"] == {("1",): 1.5}
    assert not any(samples(None).values())


def test_the_command_lists_processes_and_why_executors_were_lost(home: JobFolder) -> None:
    with home.locked():
        shown = run("processes", "shop", "--home", str(home.root)).stdout
        content = run_json("processes", "shop", "--home", str(home.root))
    assert "1 of 2" in shown
    assert "killed by signal 9" in shown
    assert [each["id"] for each in content["executors"]] == ["0", "1"]
    assert "not running" in run("processes", "shop", "--home", str(home.root)).stdout


def test_the_command_of_a_local_job_has_the_driver_alone(tmp_path: Path) -> None:
    home = JobFolder(tmp_path, "shop")
    home.write_status({"state": "RUNNING", "attempt": 1, "child": 42})
    own = {**ALIVE, "id": "driver", "vitals": None}
    driver = Vitals(at=NOON, pools={"heap": MemoryPool(MIB, 2 * MIB)}, resident=9 * MIB)
    Meter(home, FakeClock(NOON)).measured(driver, parse(own, lost=0))
    write_executors(home, parse(own, lost=0))
    with home.locked():
        lines = run("processes", "shop", "--home", str(tmp_path)).stdout.splitlines()
    assert len([line for line in lines if "driver" in line]) == 1
    assert any("1MiB of 2MiB" in line and "9MiB" in line for line in lines)
