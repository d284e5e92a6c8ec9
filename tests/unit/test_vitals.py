"""What a driver uses: from the kernel's JSON to counters that only grow, and to advice."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fake_clock import FakeClock

from headgate.engine.attempt.executors import Executors
from headgate.engine.attempt.vitals import MemoryPool, Vitals, parse_vitals
from headgate.engine.settings import MIB, SparkSettings
from headgate.errors import HeadgateError
from headgate.jobs.attempts.wire import Measured, decode_news, encode_news
from headgate.jobs.host.doctor import Finding, Status
from headgate.jobs.host.job_doctor import diagnose_job, judge_vitals
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.metrics.counter_file import read_counters
from headgate.jobs.metrics.vitals_file import find_vitals
from headgate.jobs.supervision.meter import Meter

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
KERNEL = {
    "pools": {
        "heap": {"used": 700, "max": 1000, "live": 300},
        "metaspace": {"used": 120},
        "compiled-code": {"used": 80},
        "direct": {"used": 20},
        "state": {"used": 50},
    },
    "threads": 40,
    "gc_ms": 1500,
    "gc_count": 3,
    "cpu_ns": 2_500_000_000,
    "resident": 2000,
    "workers": [100, 0, 200],
}


NOTHING = MemoryPool(0)


def vitals(*, heap: MemoryPool = NOTHING, state: MemoryPool = NOTHING, **more: object) -> Vitals:
    return Vitals(at=NOON, pools={"heap": heap, "state": state}, **more)  # type: ignore[arg-type]


def test_the_kernels_figures_get_the_limits_of_the_settings() -> None:
    settings = SparkSettings(parallelism=1, log_file=Path("spark.log"), state_memory=64 * MIB)
    found = parse_vitals(KERNEL, settings, at=NOON)
    assert found.pools == {
        "heap": MemoryPool(700, 1000, 300),
        "metaspace": MemoryPool(120),
        "compiled-code": MemoryPool(80, 512 * MIB),
        "direct": MemoryPool(20, 1000),
        "state": MemoryPool(50, 64 * MIB),
    }
    # A process that has ended meanwhile has no memory.
    assert found.workers == (100, 200)
    assert (found.cpu_seconds, found.gc_seconds, found.gc_count) == (2.5, 1.5, 3)
    assert found.worker_limit == 1024 * MIB
    news = Measured(found, Executors(at=NOON))
    assert decode_news(json.loads(json.dumps(encode_news(news)))) == news


@pytest.mark.parametrize("seed", range(3))
def test_times_of_drivers_add_up_over_attempts_and_starts(tmp_path: Path, seed: int) -> None:
    dice, home = random.Random(seed), JobFolder(tmp_path, "shop")
    cpu = gc = 0
    for _ in range(3):
        meter = Meter(home, FakeClock(NOON))
        for _ in range(dice.randrange(1, 4)):
            meter.attempt_launched()
            assert find_vitals(home) is None
            own_cpu = own_gc = 0
            for _ in range(dice.randrange(4)):
                own_cpu += dice.randrange(5)
                own_gc += dice.randrange(2)
                now = vitals(cpu_seconds=own_cpu, gc_seconds=own_gc, gc_count=own_gc)
                meter.measured(now, Executors(at=NOON))
                assert find_vitals(home) == now
            cpu += own_cpu
            gc += own_gc
        meter.flush()
    found = read_counters(home)
    assert (found.cpu_seconds, found.gc_seconds, found.gc_count) == (cpu, gc, gc)


def warned(of: Vitals, container: int | None = None) -> list[Finding]:
    return [each for each in judge_vitals(of, container=container) if each.status is Status.WARN]


def test_garbage_in_a_heap_is_no_reason_to_warn() -> None:
    assert warned(vitals(heap=MemoryPool(990, 1000))) == []
    assert warned(vitals(heap=MemoryPool(990, 1000, 700))) == []


def test_pools_near_their_limit_are_named_with_the_setting_that_helps() -> None:
    (heap,) = warned(vitals(heap=MemoryPool(990 * MIB, 1000 * MIB, 800 * MIB)))
    assert heap.name == "heap"
    assert heap.advice == "headgate run FLOW --driver-memory 1500MiB"
    (state,) = warned(vitals(state=MemoryPool(500 * MIB, 512 * MIB)))
    assert "state-memory = '768MiB'" in state.advice
    (worker,) = warned(vitals(workers=(10 * MIB, 95 * MIB), worker_limit=100 * MIB))
    assert worker.name == "python worker 2"
    assert "worker-memory" in worker.advice


@pytest.mark.parametrize(
    ("pool", "setting"),
    [("metaspace", "metaspace"), ("compiled-code", "code-cache"), ("direct", "direct-memory")],
)
def test_pools_beside_the_heap_have_settings_too(pool: str, setting: str) -> None:
    full = Vitals(at=NOON, pools={pool: MemoryPool(95 * MIB, 100 * MIB)})
    (warning,) = warned(full)
    assert warning.advice.startswith(f"set {setting} = '150MiB' in a profile")


def test_all_processes_together_are_held_against_the_container() -> None:
    busy = vitals(resident=80 * MIB, workers=(15 * MIB,), worker_limit=MIB * 1000)
    assert [each.name for each in warned(busy, container=100 * MIB)] == ["container"]
    assert warned(busy, container=200 * MIB) == []
    assert warned(busy, container=None) == []


def test_a_job_that_does_not_run_has_no_memory_to_check(tmp_path: Path) -> None:
    home = JobFolder(tmp_path, "shop")
    home.write_status({"state": "STOPPED"})
    Meter(home, FakeClock(NOON)).measured(vitals(), Executors(at=NOON))
    with pytest.raises(HeadgateError) as caught:
        diagnose_job(tmp_path, "shop")
    assert caught.value.code == "JOB_NOT_RUNNING"
    with home.locked():
        assert [each.name for each in diagnose_job(tmp_path, "shop")] == ["heap", "state"]
