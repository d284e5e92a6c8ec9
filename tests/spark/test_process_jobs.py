"""Process functions in whole jobs: woken in time, their state read, and taken over by a run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, bag

from headgate import Context, Flow, KeyedProcess, ListOf, MapOf, Timer, Value
from headgate.checkpoints.sparklog import read_offsets
from headgate.engine.plan.wakes import WAKES
from headgate.jobs.checkpoints.listing import list_checkpoints
from headgate.jobs.checkpoints.state_check import open_state
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import write_intent
from headgate.jobs.lifecycle.vocabulary import Verb
from headgate.jobs.state.client import StateDesk
from headgate.jobs.values import JobSnapshot
from headgate.windows import count, tumbling

JOB = "counting"
KEYS = 40
ROUNDS = 24
PATIENCE = 90.0


@dataclass
class Row:
    user: int
    what: str
    n: int


class Counting(KeyedProcess[Any, Row]):
    """Counts events and words by user, and tells the count some time after the first event."""

    total: Value[int]
    words: ListOf[str]
    counts: MapOf[str, int]

    def __init__(self, after: str) -> None:
        self.after = after

    def on_event(self, row: Any, ctx: Context[Row]) -> None:
        total = self.total.get(0)
        if not total and self.after:
            ctx.timers.after(self.after)
        self.total.set(total + 1)
        self.words.append(row.word)
        self.counts[row.word] = self.counts.get(row.word, 0) + 1
        ctx.emit(Row(ctx.key, "event", total + 1))

    def on_timer(self, timer: Timer, ctx: Context[Row]) -> None:  # noqa: ARG002
        ctx.emit(Row(ctx.key, "timer", self.total.get(0)))


def counting(after: str = "") -> Flow:
    flow = Flow(JOB)
    events = flow.stream("events", "user BIGINT, word STRING")
    events.key_by("user").process("counts", Counting(after)).out.to("out")
    return flow


def events(*users: int, word: str = "a") -> list[dict[str, Any]]:
    return [{"user": user, "word": word} for user in users]


def until(bench: Bench, done: Callable[[JobSnapshot], bool]) -> Callable[[JobSnapshot], None]:
    """Return a watcher that stops the job once something is so, or patience is over."""
    asked: list[JobSnapshot] = []
    deadline = time.monotonic() + PATIENCE

    def watch(snapshot: JobSnapshot) -> None:
        if not asked and (done(snapshot) or time.monotonic() > deadline):
            asked.append(snapshot)
            write_intent(JobFolder(bench.home, JOB), Verb.STOP, {}, by="test")

    return watch


def settled(snapshots: list[JobSnapshot], seconds: float) -> Callable[[JobSnapshot], bool]:
    """Return whether no batch has come for so long."""
    since: list[tuple[int | None, float]] = []

    def done(snapshot: JobSnapshot) -> bool:
        snapshots.append(snapshot)
        batch = snapshot.totals.batches
        if not since or since[-1][0] != batch:
            since.append((batch, time.monotonic()))
        return bool(batch) and time.monotonic() - since[-1][1] > seconds

    return done


def checkpoint_of(bench: Bench) -> Path:
    home = JobFolder(bench.home, JOB)
    lineage = home.find_present_run()
    assert lineage is not None
    return home.run_folder(lineage) / "checkpoint"


def wakes(bench: Bench) -> list[int]:
    """Return how often the process was woken, by batch."""
    folder = checkpoint_of(bench)
    batches = sorted(
        int(each.name) for each in (folder / "offsets").iterdir() if each.name.isdigit()
    )
    found = (read_offsets(folder, batch)[WAKES] or '{"n":0' for batch in batches)
    return [int(each.partition('"n":')[2].partition(",")[0].rstrip("}")) for each in found]


def rows(what: str, n: int = 1, *, users: int = KEYS) -> list[dict[str, Any]]:
    return [{"user": user, "what": what, "n": n} for user in range(users)]


def test_a_timer_wakes_an_idle_job_in_time_and_nothing_runs_afterwards(bench: Bench) -> None:
    bench.put("events", events(*range(KEYS)))
    seen: list[JobSnapshot] = []
    bench.run(
        counting("2s"),
        until_caught_up=False,
        watch=until(bench, lambda _: len(bench.read("out")) == 2 * KEYS),
    )
    assert bench.bag("out") == bag([*rows("event"), *rows("timer")])
    # One batch of events, and a few of timers: those of one batch are due within moments.
    assert 2 <= len(wakes(bench)) <= 4
    woken = wakes(bench)[-1]
    # A run that goes on wakes once, since it does not know the timers; and is then idle.
    bench.run(counting("2s"), until_caught_up=False, watch=until(bench, settled(seen, 1.5)))
    assert wakes(bench)[-1] == woken + 1
    assert bench.bag("out") == bag([*rows("event"), *rows("timer")])


def test_timers_that_are_to_come_keep_no_job_from_ending(bench: Bench) -> None:
    bench.put("events", events(*range(KEYS)))
    bench.run(counting("1h"))
    assert bench.bag("out") == bag(rows("event"))
    bench.put("events", events(*range(KEYS)))
    bench.run(counting("1h"), drain=True)
    assert bench.bag("out") == bag([*rows("event"), *rows("event", 2)])


def test_timers_go_off_in_a_run_that_takes_them_over(bench: Bench) -> None:
    bench.put("events", events(*range(KEYS)))
    bench.run(counting("5s"), parallelism=2)
    assert bench.bag("out") == bag(rows("event"))
    bench.run(
        counting("5s"),
        until_caught_up=False,
        restore_from="latest",
        parallelism=3,
        watch=until(bench, lambda _: len(bench.read("out")) == 2 * KEYS),
    )
    assert bench.bag("out") == bag([*rows("event"), *rows("timer")])


class Repeating(KeyedProcess[Any, Row]):
    """Sets a timer at the time of each event."""

    def on_event(self, row: Any, ctx: Context[Row]) -> None:  # noqa: ARG002
        assert ctx.time is not None
        ctx.timers.at(ctx.time)

    def on_timer(self, timer: Timer, ctx: Context[Row]) -> None:
        ctx.emit(Row(ctx.key, "timer", timer.ms))


def test_a_drain_fires_timers_behind_a_window_and_behind_a_process(bench: Bench) -> None:
    flow = Flow(JOB)
    given = flow.stream("events", "user BIGINT, at BIGINT", event_time="at")
    first = given.key_by("user").process("first", Repeating()).out
    first.key_by("user").process("second", Repeating()).out.to("out")
    counted = first.key_by("user").window("w", tumbling("1h")).aggregate(n=count()).updates
    counted.key_by("user").process("third", Repeating()).out.to("windows")
    hour = 3_600_000
    begin = 1_767_258_000_000 - 1_767_258_000_000 % hour
    bench.put("events", [{"user": n % 5, "at": begin + n * hour // 10} for n in range(40)])
    bench.run(flow, max_batch=300, drain=True)
    fired = [{"user": n % 5, "what": "timer", "n": begin + n * hour // 10} for n in range(40)]
    assert bench.bag("out") == bag(fired)
    # Each of the five users has events in each of four hours.
    assert len(bench.read("windows")) == 20


@pytest.mark.long
def test_state_goes_on_with_another_parallelism(bench: Bench) -> None:
    for word in ("a", "b"):
        bench.put("events", events(*range(KEYS), word=word))
    bench.run(counting(), parallelism=2)
    bench.put("events", events(*range(KEYS), word="a"))
    bench.run(counting(), restore_from="latest", parallelism=3)
    assert bench.bag("out") == bag([*rows("event", 1), *rows("event", 2), *rows("event", 3)])
    kept = list_checkpoints(JobFolder(bench.home, JOB))[-1]
    counted, problems = open_state(kept)  # type: ignore[arg-type]
    assert problems == []
    # A record, a page of the list and at least one of the map of each key.
    assert counted["counts"] >= 3 * KEYS


@pytest.fixture
def desk(bench: Bench) -> Iterator[StateDesk]:
    """Give a reader of the state of the bench's jobs."""
    made = StateDesk(bench.home)
    yield made
    made.close()


def test_state_is_read_by_key_and_as_rows(bench: Bench, desk: StateDesk) -> None:
    for n in range(ROUNDS):
        bench.put("events", events(*range(KEYS), word="ab"[n % 2]))
    # A batch for each round: so that state has snapshots, and changes after them.
    bench.run(counting("1h"), max_batch=1024, checkpoint_every=timedelta(0))
    assert list((checkpoint_of(bench) / "state" / "0").rglob("*.zip"))
    half = ROUNDS // 2
    value = {
        "user": 7,
        "total": ROUNDS,
        "words": ["a", "b"] * half,
        "words_size": ROUNDS,
        "counts": [{"key": "a", "value": half}, {"key": "b", "value": half}],
        "counts_size": 2,
    }
    assert _sorted(desk.look_up(JOB, "counts", "7").value) == value
    assert not desk.look_up(JOB, "counts", "99").found
    history = [each.value for each in desk.history(JOB, "counts", "7").entries if each.value]
    assert [each["words"] for each in history] == [
        (["a", "b"] * half)[: each["total"]] for each in history
    ]
    assert history[-1]["total"] == ROUNDS
    first = desk.first_rows(JOB, "counts", limit=2 * KEYS)
    assert first.columns == tuple(value)
    rows = {row[0]: dict(zip(first.columns, row, strict=True)) for row in first.rows}
    for user in range(KEYS):
        assert _sorted(rows[user]) == {**value, "user": user}
    for user in range(0, KEYS, 5):
        assert desk.look_up(JOB, "counts", str(user)).value == rows[user]
    summed = desk.query(JOB, "select sum(total), sum(words_size), max(size(counts)) from counts")
    assert summed.rows == ((ROUNDS * KEYS, ROUNDS * KEYS, 2),)


def _sorted(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the entries of its map in order: state has them in another."""
    return {**row, "counts": sorted(row["counts"], key=lambda each: each["key"])}
