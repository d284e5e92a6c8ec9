"""Timers of many keys, thousands of them due at the same time: each fires once."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from bench import Bench

from headgate import Context, Flow, KeyedProcess, Timer

BEGIN = 1_767_258_000_000
# All timers are at so many times.
MOMENTS = 20
FILE = 50_000
MIB = 1 << 20


@dataclass
class Fired:
    key: int
    at: int


class Once(KeyedProcess[Any, Fired]):
    """Sets one timer for each key."""

    def on_event(self, event: Any, ctx: Context[Fired]) -> None:
        ctx.timers.at(event.due)

    def on_timer(self, timer: Timer, ctx: Context[Fired]) -> None:
        ctx.emit(Fired(ctx.key, timer.ms))


def once() -> Flow:
    flow = Flow("once")
    events = flow.stream("events", "key BIGINT, at BIGINT, due BIGINT", event_time="at")
    events.key_by("key").process("once", Once()).out.to("fired")
    return flow


def due(key: int) -> int:
    return BEGIN + 3_600_000 * (1 + key % MOMENTS)


def put(bench: Bench, keys: int) -> None:
    for begin in range(0, keys, FILE):
        lines = (
            f'{{"key": {key}, "at": {BEGIN}, "due": {due(key)}}}'
            for key in range(begin, min(keys, begin + FILE))
        )
        bench.put("events", lines)


def check(bench: Bench, keys: int) -> None:
    """Each key's timer fired once, at its time."""
    fired = Counter((row["key"], row["at"]) for row in bench.read("fired"))
    assert fired == Counter((key, due(key)) for key in range(keys))


def test_timers_of_20_000_keys_fire_once(bench: Bench) -> None:
    keys = 20_000
    put(bench, keys)
    bench.run(once(), parallelism=2, drain=True)
    check(bench, keys)


@pytest.mark.long
def test_timers_of_a_million_keys_fire_once_in_little_memory(bench: Bench) -> None:
    keys = 1_000_000
    put(bench, keys)
    file = bench.flow_file(once())
    for options in ({}, {"drain": True}):
        begin = time.monotonic()
        job = bench.spawn(file, parallelism=2, driver_memory=1024 * MIB, **options)
        peak = 0
        while job.poll() is None:
            peak = max(peak, jvm_memory(job.pid))
            time.sleep(0.2)
        printed, _ = job.communicate()
        assert job.returncode == 0, printed
        what = "fire" if options else "set"
        print(f"{keys:,} timers {what}: {time.monotonic() - begin:.1f} s, {peak // MIB:,} MiB")
        # A heap of 1 GiB, and what the JVM and RocksDB have beside it.
        assert 0 < peak < 2000 * MIB
    check(bench, keys)


def jvm_memory(job: int) -> int:
    """Return the most memory that the JVM of a job has had, in bytes; 0 before it runs."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent != job or b"java" not in (folder / "cmdline").read_bytes():
                continue
            lines = dict(
                line.split(":", 1) for line in (folder / "status").read_text().splitlines()
            )
            return int(lines["VmHWM"].split()[0]) << 10
        except (FileNotFoundError, ProcessLookupError, KeyError):
            continue
    return 0
