"""Event time in whole jobs: the watermark of all streams, idle ones, restarts, and both ends."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, bag, refused

from headgate import Flow
from headgate.checkpoints import sparklog
from headgate.checkpoints.catalog import list_kept
from headgate.checkpoints.log_sums import render_sums
from headgate.engine.plan.clocks import read_times
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import write_intent
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.lifecycle.vocabulary import Verb
from headgate.jobs.startup import opening
from headgate.jobs.values import JobSnapshot
from headgate.windows import count, every_processing_time, tumbling

TEN = datetime(2025, 9, 4, 10, tzinfo=UTC)
END = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
SCHEMA = "id STRING, at STRING"
PATIENCE = 90.0


def at(second: float) -> str:
    return (TEN + timedelta(seconds=second)).isoformat()


def events(*seconds: float) -> list[dict[str, Any]]:
    return [{"id": "v", "at": at(second)} for second in seconds]


def visits(*, name: str = "visits", **options: Any) -> Flow:
    """Return a flow that counts visits by id in windows of 10 s; events are 5 s late at most."""
    flow = Flow(name)
    stream = flow.stream("visits", SCHEMA, event_time="at", out_of_orderness="5s")
    counts = stream.key_by("id").window("per-10s", tumbling("10s"), **options)
    counted = counts.aggregate(visits=count())
    counted.updates.to("counts")
    counted.late.to("late")
    return flow


def two_streams(*, idle_after: str | None = None) -> Flow:
    """Return a flow that counts the events of two streams; the second may be idle."""
    flow = Flow("pair")
    for topic, idle in (("a", None), ("b", idle_after)):
        stream = flow.stream(topic, SCHEMA, event_time="at", out_of_orderness="5s", idle_after=idle)
        counted = stream.key_by("id").window(f"per-10s-{topic}", tumbling("10s"))
        counted.aggregate(visits=count()).updates.to(f"counts-{topic}")
    return flow


def finals(bench: Bench, topic: str = "counts") -> list[tuple[str, float, int]]:
    """Return the final rows: id, seconds after ten at which the window begins, visits."""
    return sorted(
        (
            row["id"],
            (datetime.fromisoformat(row["window_start"]) - TEN).total_seconds(),
            row["visits"],
        )
        for row in bench.read(topic)
        if not row["partial"] and not row["correction"]
    )


def until(
    bench: Bench, job: str, done: Callable[[JobSnapshot], bool], *, drain: bool = False
) -> Callable[[JobSnapshot], None]:
    """Return a watcher that stops, or drains, a job once something is so, or patience is over."""
    asked: list[JobSnapshot] = []
    deadline = time.monotonic() + PATIENCE

    def watch(snapshot: JobSnapshot) -> None:
        if not asked and (done(snapshot) or time.monotonic() > deadline):
            asked.append(snapshot)
            write_intent(JobFolder(bench.home, job), Verb.STOP, {"drain": drain}, by="test")

    return watch


def checkpoint_of(bench: Bench, job: str) -> Path:
    home = JobFolder(bench.home, job)
    lineage = home.find_present_run()
    assert lineage is not None
    return home.run_folder(lineage) / "checkpoint"


def test_until_caught_up_ends_what_is_over_and_leaves_the_rest_open(bench: Bench) -> None:
    bench.put("visits", events(1, 2, 11, 24))
    ended = bench.run(visits())
    # The watermark is at 19 s: one window is over, and two are not.
    assert ended.totals.watermark == TEN + timedelta(seconds=19)
    assert finals(bench) == [("v", 0, 2)]
    bench.put("visits", events(9, 12, 40))
    bench.run(visits())
    assert finals(bench) == [("v", 0, 2), ("v", 10, 2), ("v", 20, 1)]
    assert bench.read("late") == events(9)


def test_what_is_no_time_is_a_dead_letter_and_moves_nothing(bench: Bench) -> None:
    bench.put("visits", [*events(1, 2), {"id": "v", "at": "never"}, {"id": "v", "at": None}])
    ended = bench.run(visits())
    assert sorted(letter["code"] for letter in bench.read("dead-letters")) == [
        "BAD_EVENT_TIME",
        "MISSING_FIELD",
    ]
    assert ended.totals.watermark == TEN - timedelta(seconds=3)


def test_clocks_are_seen_by_nobody_who_asks_for_sources(bench: Bench) -> None:
    bench.put("visits", events(1, 24))
    ended = bench.run(visits())
    assert list(ended.totals.inputs) == list(ended.totals.lag_bytes) == ["visits"]
    assert ended.totals.inputs == {"visits": 2}
    assert sum(ended.totals.outputs.values()) == 1
    (*_, newest) = list_kept(JobFolder(bench.home, "visits").checkpoints_folder(ended.lineage))
    assert list(newest.sources) == ["visits"]
    assert newest.watermark == TEN + timedelta(seconds=19)
    status = FolderHome(bench.home).details("visits").view.status
    assert status["watermark"] == at(19)


def test_the_slowest_stream_holds_the_watermark(bench: Bench) -> None:
    bench.put("a", events(1, 100))
    bench.put("b", events(1, 24))
    ended = bench.run(two_streams())
    assert ended.totals.watermark == TEN + timedelta(seconds=19)
    assert finals(bench, "counts-a") == [("v", 0, 1)]
    bench.put("b", events(60))
    # Of the first stream nothing new comes, and its time is still known.
    assert bench.run(two_streams()).totals.watermark == TEN + timedelta(seconds=55)
    assert finals(bench, "counts-b") == [("v", 0, 1), ("v", 20, 1)]


def test_an_idle_stream_does_not_hold_the_watermark_back(bench: Bench) -> None:
    bench.put("a", events(1, 100))
    bench.put("b", events(1, 24))
    wanted = TEN + timedelta(seconds=95)
    watch = until(bench, "pair", lambda each: each.totals.watermark == wanted)
    flow = two_streams(idle_after="1s")
    ended = bench.run(flow, watch=watch, until_caught_up=False)
    assert ended.totals.watermark == wanted
    assert finals(bench, "counts-b") == [("v", 0, 1), ("v", 20, 1)]


def test_a_restart_keeps_the_watermark_and_the_time_of_every_stream(bench: Bench) -> None:
    bench.put("a", events(1, 100))
    bench.put("b", events(1, 24))
    bench.run(two_streams())
    again = bench.run(two_streams())
    assert again.totals.inputs == {"a": 0, "b": 0}
    assert again.totals.watermark == TEN + timedelta(seconds=19)
    checkpoint = checkpoint_of(bench, "pair")
    last = sparklog.find_last_commit(checkpoint)
    assert last is not None
    reached = read_times(sparklog.read_offsets(checkpoint, last), two_streams().graph().streams())
    assert {name: ms / 1000 - TEN.timestamp() for name, ms in reached.items()} == {
        "a": 100,
        "b": 24,
    }


def test_a_restored_job_judges_lateness_as_it_was(bench: Bench) -> None:
    bench.put("visits", events(1, 24))
    bench.run(visits())
    bench.put("visits", events(9, 12, 40))
    bench.run(visits(), restore_from="latest")
    assert bench.read("late") == events(9)
    assert finals(bench) == [("v", 0, 1), ("v", 10, 1), ("v", 20, 1)]


def test_so_does_one_whose_state_is_spread_anew(bench: Bench) -> None:
    bench.put("visits", events(1, 24))
    bench.run(visits(), parallelism=2)
    bench.put("visits", events(9, 12, 40))
    bench.run(visits(), restore_from="latest", parallelism=3)
    assert bench.read("late") == events(9)
    assert finals(bench) == [("v", 0, 1), ("v", 10, 1), ("v", 20, 1)]


def test_what_dedupe_has_seen_is_spread_anew_and_forgotten_in_time(bench: Bench) -> None:
    flow = Flow("seen")
    stream = flow.stream("visits", "id INT, at STRING", event_time="at", out_of_orderness="5s")
    once = stream.dedupe("once", by="id", within="1m")
    for output in ("unique", "repeated", "late"):
        getattr(once, output).select("id").to(output)

    def seen(second: float, *ids: int) -> list[dict[str, Any]]:
        return [{"id": each, "at": at(second)} for each in ids]

    bench.put("visits", seen(1, *range(300)))
    assert bench.run(flow, parallelism=2).totals.state_rows == {"once": 300}
    bench.put("visits", seen(30, *range(200, 400)))
    done = bench.run(flow, restore_from="latest", parallelism=3)
    assert done.totals.state_rows == {"once": 400}
    assert sorted(row["id"] for row in bench.read("unique")) == [*range(400)]
    assert sorted(row["id"] for row in bench.read("repeated")) == [*range(200, 300)]
    # The watermark is past twice the span of the first ones, and a quarter more.
    bench.put("visits", seen(1 + 120 + 15 + 5, 500))
    assert bench.run(flow).totals.state_rows == {"once": 101}
    bench.put("visits", seen(145, 0) + seen(85, 399) + seen(70, 1))
    bench.run(flow)
    assert sorted(row["id"] for row in bench.read("unique"))[-2:] == [399, 500]
    assert [row["id"] for row in bench.read("unique")].count(0) == 2
    assert bench.bag("late") == bag([{"id": 1}])
    assert [row["id"] for row in bench.read("repeated")].count(399) == 1


def test_a_drain_ends_every_window_and_the_job_for_good(bench: Bench) -> None:
    bench.put("visits", events(1, 24))
    watch = until(bench, "visits", lambda each: each.totals.inputs.get("visits") == 2, drain=True)
    ended = bench.run(visits(), watch=watch, until_caught_up=False, checkpoint_every=timedelta(0))
    assert ended.state is JobState.STOPPED
    assert ended.totals.watermark == END
    assert finals(bench) == [("v", 0, 1), ("v", 20, 1)]
    with refused("JOB_DRAINED") as caught:
        bench.run(visits())
    assert "--fresh" in caught.value.hint
    with refused("JOB_DRAINED"):
        bench.run(visits(), restore_from="latest")


def test_a_bounded_run_with_a_drain_ends_every_window(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.put("visits", events(1, 24))
    ended = bench.run(visits(), until_caught_up=False, drain=True)
    assert ended.state is JobState.FINISHED
    assert ended.totals.watermark == END
    assert finals(bench) == [("v", 0, 1), ("v", 20, 1)]
    with refused("JOB_DRAINED"):
        bench.run(visits(), drain=True)
    # An attempt that is restarted in the middle of a drain reads nothing more: it would be late.
    monkeypatch.setattr(opening, "check_not_drained", lambda *_, **__: None)
    bench.put("visits", events(40))
    again = bench.run(visits(), until_caught_up=False, drain=True)
    assert (again.state, again.totals.inputs) == (JobState.FINISHED, {"visits": 0})
    assert bench.read("late") == []
    assert len(finals(bench)) == 2


def test_a_drained_job_goes_on_from_before_the_drain(bench: Bench) -> None:
    bench.put("visits", events(1, 24))
    before = bench.run(visits()).checkpoint
    watch = until(bench, "visits", lambda each: each.totals.batch is not None, drain=True)
    bench.run(visits(), watch=watch, until_caught_up=False, checkpoint_every=timedelta(0))
    bench.put("visits", events(40))
    ended = bench.run(visits(), restore_from=before)
    assert ended.totals.watermark == TEN + timedelta(seconds=35)
    # The window from 20 s on was ended by the drain, and by the run that knows nothing of it.
    assert finals(bench) == [("v", 0, 1), ("v", 20, 1), ("v", 20, 1)]


def test_a_quiet_flow_gives_results_that_are_due_by_the_wall_clock(bench: Bench) -> None:
    bench.put("visits", events(1, 2))
    flow = visits(early=every_processing_time("1s"))

    def is_told(_: JobSnapshot) -> bool:
        return any(row["partial"] for row in bench.read("counts"))

    bench.run(flow, watch=until(bench, "visits", is_told), until_caught_up=False)
    partial = [row["visits"] for row in bench.read("counts")]
    assert partial == [2]


def test_a_function_of_the_users_stands_behind_the_watermark(bench: Bench) -> None:
    (bench.root / "functions.py").write_text("def same(rows):\n    return rows\n")
    flow = Flow("visits")
    stream = flow.stream("visits", SCHEMA, event_time="at", out_of_orderness="5s")
    taken = stream.transform("functions:same").key_by("id")
    taken.window("per-10s", tumbling("10s")).aggregate(visits=count()).updates.to("counts")
    stream.to("copies")
    bench.put("visits", events(1, 2, 11, 24))
    ended = bench.run(flow)
    assert ended.totals.watermark == TEN + timedelta(seconds=19)
    assert ended.totals.inputs == {"visits": 4}
    assert finals(bench) == [("v", 0, 2)]
    assert len(bench.read("copies")) == 4


def test_the_clock_in_the_offset_log_is_json_with_a_format(bench: Bench) -> None:
    bench.put("visits", events(1, 24))
    bench.run(visits())
    checkpoint = checkpoint_of(bench, "visits")
    last = sparklog.find_last_commit(checkpoint)
    assert last is not None
    clock = sparklog.read_offsets(checkpoint, last)["__clockvisits"]
    assert clock is not None
    told = json.loads(clock)
    assert told["format"] == 2
    assert list(told["partitions"]) == ["visits"]


def test_a_run_whose_clocks_knew_no_partitions_goes_on_where_it_was(bench: Bench) -> None:
    bench.put("visits", events(1, 24))
    bench.run(visits())
    checkpoint = checkpoint_of(bench, "visits")
    for file in [each for each in (checkpoint / "offsets").iterdir() if each.name.isdigit()]:
        # As release 0.7 wrote it.
        text = re.sub(
            r'"format":2(,"max":[^{]*),"partitions":[{][^}]*[}]', r'"format":1\1', file.read_text()
        )
        file.write_text(text)
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        file.with_name(f"{file.name}.crc").write_text(render_sums(text.encode()))
    last = sparklog.find_last_commit(checkpoint)
    assert last is not None
    clock = sparklog.read_offsets(checkpoint, last)["__clockvisits"]
    assert set(json.loads(clock or "{}")) == {"format", "max", "nudged", "n"}
    bench.put("visits", events(9, 12, 22, 40))
    ended = bench.run(visits())
    assert ended.totals.watermark == TEN + timedelta(seconds=35)
    assert bench.read("late") == events(9)
    assert finals(bench) == [("v", 0, 1), ("v", 10, 1), ("v", 20, 2)]
