"""The page of processes: what it says of a driver and its executors, and what it marks."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

from console_job import NOW

from headgate.engine.attempt.executors import Executor, Executors
from headgate.engine.attempt.vitals import MemoryPool, Vitals
from headgate.engine.settings import MIB
from headgate.jobs.host.job_doctor import judge_executors, judge_vitals
from headgate.jobs.views.processes import ExecutorView, Processes
from headgate.server.console.parts.templates import render
from headgate.server.console.texts.processes import (
    ExecutorRow,
    tell_driver,
    tell_executors,
    tell_pools,
)

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
)
ALIVE = Executor(
    id="1",
    host="10.0.0.7",
    since=NOW - timedelta(minutes=5),
    slots=2,
    running=1,
    completed=1_200,
    failed=3,
    shuffle_read=3 * MIB,
    shuffle_written=4 * MIB,
    vitals=VITALS,
    log_links={"stdout": "http://w:8081/out", "stderr": "http://w:8081/err"},
)
LOST = replace(
    ALIVE, id="0", running=0, vitals=None, lost_at=NOW, lost_reason="<b>killed</b> by signal 9"
)


def test_a_driver_is_told_with_its_process_and_its_times() -> None:
    found = Processes(job="orders", attempt=3, driver=42, executors=views(ALIVE))
    facts = dict(tell_driver(found, VITALS, NOW))
    assert facts["Process"] == "42"
    assert (facts["Attempt"], facts["Threads"]) == ("3", "1,234")
    assert facts["Runs tasks"] == "on executors"
    assert (facts["Python workers"], facts["Measured"]) == ("2", "4 s ago")
    assert facts["Processor time"] == "3,600 s"


def views(*executors: Executor, has_log: bool = False) -> tuple[ExecutorView, ...]:
    place = "stderr somewhere"
    return tuple(
        ExecutorView(executor=each, has_log=has_log, log_place=place) for each in executors
    )


def rows(found: Processes) -> list[ExecutorRow]:
    executors = Executors(at=NOW, listed=tuple(view.executor for view in found.executors))
    return tell_executors(found, list(judge_executors(executors)), NOW)


def test_executors_that_are_there_lead_and_lost_ones_tell_why() -> None:
    there, lost = rows(Processes(job="orders", executors=views(LOST, ALIVE)))
    assert (there.id, there.is_near, there.heap) == ("1", True, "900MiB of 1000MiB")
    assert (there.share, there.garbage, there.measured) == (0.9, "1.2 s", "4 s ago")
    assert there.resident == "1.3GiB"
    assert dict(there.pools) == {
        "direct": "5MiB",
        "state": "128MiB of 512MiB",
        "JVM, resident": "1.2GiB",
        "Python worker 1": "40MiB",
        "Python worker 2": "50MiB",
    }
    assert (lost.id, lost.lost_at, lost.heap, lost.is_near) == ("0", NOW, "", False)
    page = str(render("executors", rows=[there, lost]))
    assert "1 of 2" in page
    assert "1,200" in page
    assert "&lt;b&gt;killed&lt;/b&gt; by signal 9" in page
    assert "not reported yet" in page
    # The address of the log for errors, which is the last one; no button, since it is elsewhere.
    assert page.count('href="http://w:8081/err"') == 2
    assert 'data-act="log"' not in page


def test_two_executors_of_one_id_have_a_row_each() -> None:
    earlier = replace(LOST, id="1", since=ALIVE.since - timedelta(minutes=1))
    found = rows(Processes(job="orders", executors=views(earlier, ALIVE)))
    assert [(row.id, row.is_near) for row in found] == [("1", True), ("1", False)]
    keys = re.findall('data-key="([^"]+)"', str(render("executors", rows=found)))
    assert len(set(keys)) == 2


def test_a_log_that_can_be_read_has_a_button_and_an_odd_address_is_no_link() -> None:
    found = Processes(job="orders", executors=views(ALIVE, has_log=True))
    assert 'data-act="log" data-value="1"' in str(render("executors", rows=rows(found)))
    odd = replace(ALIVE, log_links={"stderr": "javascript:alert(1)"})
    page = str(render("executors", rows=rows(Processes(job="orders", executors=views(odd)))))
    assert "javascript" not in page
    assert "stderr somewhere" in page


def test_a_driver_that_runs_the_tasks_is_the_only_row_with_its_own_memory() -> None:
    own = replace(ALIVE, id="driver", vitals=None, log_links={})
    local = (ExecutorView(executor=own),)
    found = Processes(job="orders", attempt=1, driver=42, vitals=VITALS, executors=local)
    assert dict(tell_driver(found, VITALS, NOW))["Runs tasks"] == "itself"
    (row,) = rows(found)
    assert (row.id, row.slots, row.heap, row.pools) == ("driver", 2, "900MiB of 1000MiB", ())
    page = str(render("executors", rows=[row]))
    assert "not reported yet" not in page
    assert "those of the job" in page


def test_pools_near_their_limit_are_marked_with_what_helps() -> None:
    executors = judge_executors(Executors(at=NOW, listed=(ALIVE,)))
    pools = tell_pools(VITALS, [*judge_vitals(VITALS, container=None), *executors])
    assert [pool.name for pool in pools] == [
        *("heap", "direct", "state", "python worker 1", "python worker 2")
    ]
    assert [pool.name for pool in pools if pool.is_near] == ["heap"]
    assert (pools[0].share, pools[1].share, pools[2].share) == (0.9, None, 0.25)
    page = str(render("pools", pools=pools))
    assert page.count("near its limit") == 1
    assert "--driver-memory 1500MiB" in page
