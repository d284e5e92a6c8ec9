"""The page of processes: what it says of a driver, and which pools it marks."""

from __future__ import annotations

from datetime import timedelta

from console_job import NOW, make_job

from headgate.engine.attempt.vitals import MemoryPool, Vitals
from headgate.engine.settings import MIB
from headgate.jobs.host.job_doctor import judge_vitals
from headgate.server.console.parts.templates import render
from headgate.server.console.texts.processes import tell_driver, tell_pools

VITALS = Vitals(
    at=NOW - timedelta(seconds=4),
    pools={
        "heap": MemoryPool(900 * MIB, 1000 * MIB, 800 * MIB),
        "direct": MemoryPool(5 * MIB),
        "state": MemoryPool(128 * MIB, 512 * MIB),
    },
    resident=1200 * MIB,
    workers=(40 * MIB, 50 * MIB),
    worker_limit=1024 * MIB,
    threads=1234,
    cpu_seconds=3600.4,
    gc_seconds=1.25,
    gc_count=7,
    executors=2,
)


def test_a_driver_is_told_with_its_process_and_its_times() -> None:
    facts = dict(tell_driver(make_job(status={"child": 42}, attempt=3), VITALS, NOW))
    assert facts["Process"] == "42"
    assert (facts["Attempt"], facts["Threads"], facts["Executors"]) == ("3", "1,234", "2")
    assert (facts["Python workers"], facts["Measured"]) == ("2", "4 s ago")
    assert facts["Processor time"] == "3,600 s"


def test_pools_near_their_limit_are_marked_with_what_helps() -> None:
    pools = tell_pools(VITALS, list(judge_vitals(VITALS, container=None)))
    assert [pool.name for pool in pools] == [
        *("heap", "direct", "state", "python worker 1", "python worker 2")
    ]
    assert [pool.name for pool in pools if pool.is_near] == ["heap"]
    assert (pools[0].share, pools[1].share, pools[2].share) == (0.9, None, 0.25)
    page = str(render("pools", pools=pools))
    assert page.count("near its limit") == 1
    assert "--driver-memory 1500MiB" in page
