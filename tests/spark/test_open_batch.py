"""A batch that was begun and cannot be finished: a changed flow goes on before it, or behind it."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, bag, refused
from stored_run import local

from headgate import Flow
from headgate.checkpoints.catalog import list_kept
from headgate.connectors.logs import bind, parse_log
from headgate.jobs.checkpoints.restore_plan import plan_restore
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.values import Consent, JobSnapshot, OpenBatch, RunOptions
from headgate.jobs.views.exceptions import list_exceptions

REPEAT, SKIP = Consent(open_batch=OpenBatch.REPEAT), Consent(open_batch=OpenBatch.SKIP)
FUNCTIONS = """
from pyspark.sql import functions as F

def broken(df):
    return df.withColumn("n", F.when(F.col("n") < 13, F.col("n")).otherwise(
        F.raise_error(F.lit("a bug")).cast("bigint")))

def fixed(df):
    return df
"""
_numbers = itertools.count()


class Desk:
    """A bench with the job of one test."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.module = f"open_batch_functions_{next(_numbers)}"
        (bench.root / f"{self.module}.py").write_text(FUNCTIONS)

    def flow(self, function: str = "fixed", tag: str = "new", *, friends: bool = False) -> Flow:
        """Return a flow that looks users up; a tag tells which flow wrote a row."""
        flow = Flow("joining")
        users = flow.table(
            "users", "id BIGINT NOT NULL, name STRING NOT NULL", key="id", load="together"
        )
        events = flow.stream("events", "n BIGINT NOT NULL, user BIGINT NOT NULL")
        looked = events.transform(f"{self.module}:{function}")
        if friends:
            befriended = looked.enrich("with-friend", users, on="n", into="friend")
            befriended.matched.select("n").to("friends")
            looked = befriended.missing
        enriched = looked.enrich("with-user", users, on="user", into="found")
        enriched.matched.select("n", "found.name", f"'{tag}' AS tag").to("out")
        enriched.missing.select("n").to("missing")
        return flow

    def plain(self, function: str = "fixed") -> Flow:
        """Return a flow without state."""
        flow = Flow("joining")
        flow.stream("events", "n BIGINT NOT NULL").transform(f"{self.module}:{function}").to("out")
        return flow

    def run(self, flow: Flow, **options: Any) -> JobSnapshot:
        return self.bench.run(flow, parallelism=2, **options)

    @property
    def home(self) -> JobFolder:
        return JobFolder(self.bench.home, "joining")

    def open_last_batch(self) -> int:
        """Make the last batch one that was written and never committed; return its number."""
        lineage = self.home.find_present_run()
        assert lineage is not None
        commits = self.home.run_folder(lineage) / "checkpoint" / "commits"
        last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
        (commits / str(last)).unlink()
        (commits / f".{last}.crc").unlink(missing_ok=True)
        # As if the run had kept no checkpoint of it.
        shutil.rmtree(
            local(self.home.checkpoints_folder(lineage)) / f"chk-{last}", ignore_errors=True
        )
        return last

    def files_of(self, batch: int) -> Iterator[Path]:
        """Yield the output files of a batch."""
        for topic in ("out", "missing", "dead-letters"):
            yield from (self.bench.topics / topic).rglob(f"*-{batch:010d}-*.jsonl")


@pytest.fixture
def desk(bench: Bench) -> Desk:
    return Desk(bench)


def event(n: int, user: int = 1) -> dict[str, int]:
    return {"n": n, "user": user}


def row(n: int, tag: str, name: str = "Ann") -> dict[str, Any]:
    return {"n": n, "name": name, "tag": tag}


def begin(desk: Desk) -> str:
    """Run the flow with its bug over records that it can stand; return the run."""
    desk.bench.put("users", [{"id": 1, "name": "Ann"}])
    desk.bench.put("events", [event(1), event(2)])
    return desk.run(desk.flow("broken", "old")).lineage


@pytest.mark.parametrize("friends", [False, True])
def test_a_corrected_flow_goes_on_before_a_batch_that_fails_and_wrote_nothing(
    desk: Desk, friends: bool
) -> None:
    first = begin(desk)
    desk.bench.put("users", [{"id": 2, "name": "Bob"}])
    desk.bench.put("events", [event(13), event(14, user=2)])
    with refused("QUERY_FAILED"):
        desk.run(desk.flow("broken", "old"))
    (failure,) = list_exceptions(desk.home).failures
    assert "\tat org.apache.spark." in failure.trace
    assert "Logical Plan" not in failure.trace
    assert failure.trace.rstrip().splitlines()[-1].startswith("headgate.errors.HeadgateError: ")
    # State answers alone for what was read before the batch, whatever checkpoints were kept.
    shutil.rmtree(local(desk.home.checkpoints_folder(first)))
    done = desk.run(desk.flow(friends=friends))
    assert done.lineage != first
    assert "wrote nothing" in done.notice
    assert "2 records of 'events'" in done.notice
    assert desk.bench.bag("out") == bag(
        [row(1, "old"), row(2, "old"), row(13, "new"), row(14, "new", "Bob")]
    )
    assert done.totals.inputs == {"events": 2, "users": 1}
    desk.bench.put("events", [event(15)])
    again = desk.run(desk.flow(friends=friends))
    assert (again.lineage, again.notice) == (done.lineage, "")
    assert row(15, "new") in desk.bench.read("out")


def test_a_job_whose_very_first_batch_fails_begins_again_with_the_corrected_flow(
    desk: Desk,
) -> None:
    desk.bench.put("events", [event(n) for n in (12, 13, 14)])
    with refused("QUERY_FAILED"):
        desk.run(desk.plain("broken"))
    # Another change, which begins where the first flow did and fails in its first batch too.
    flow = desk.plain("broken")
    flow.stream("more", "n BIGINT NOT NULL").to("more-out")
    with refused("QUERY_FAILED"):
        desk.run(flow)
    done = desk.run(desk.plain())
    assert "batch 0 (3 records of 'events') was begun and wrote nothing" in done.notice
    assert desk.bench.bag("out") == bag([{"n": n} for n in (12, 13, 14)])
    desk.bench.put("events", [event(15)])
    assert desk.run(desk.plain()).totals.inputs == {"events": 1}


def test_skip_goes_on_behind_a_first_batch_with_nothing_in_state(desk: Desk) -> None:
    desk.bench.put("events", [event(n) for n in (12, 13, 14)])
    with refused("QUERY_FAILED"):
        desk.run(desk.plain("broken"))
    desk.bench.put("events", [event(15), event(16)])
    done = desk.run(desk.plain(), consent=SKIP)
    assert "is skipped" in done.notice
    assert desk.bench.bag("out") == bag([{"n": 15}, {"n": 16}])


def written(desk: Desk) -> tuple[str, int]:
    """Leave a batch open that wrote two rows and took one change of a table."""
    first = begin(desk)
    desk.bench.put("users", [{"id": 2, "name": "Bob"}])
    desk.bench.put("events", [event(3), event(4)])
    desk.run(desk.flow("broken", "old"))
    return first, desk.open_last_batch()


def test_a_changed_flow_is_refused_where_the_open_batch_has_written_and_told_the_choices(
    desk: Desk,
) -> None:
    first, batch = written(desk)
    before = desk.bench.bag("out")
    with refused("BATCH_OPEN") as told:
        desk.run(desk.flow())
    assert f"batch {batch} (1 record of 'users', 2 records of 'events')" in told.value.message
    assert "output 'out' holds 2 rows of it" in told.value.message
    assert "missing" not in told.value.message
    assert "--open-batch repeat" in told.value.hint
    assert "--open-batch skip" in told.value.hint
    assert desk.home.find_present_run() == first
    assert desk.bench.bag("out") == before
    # The flow as it was finishes the batch in its own run, as ever, and writes nothing again.
    assert desk.run(desk.flow("broken", "old")).lineage == first
    assert desk.bench.bag("out") == before


def test_repeat_writes_an_open_batch_again_in_a_new_run(desk: Desk) -> None:
    first, batch = written(desk)
    done = desk.run(desk.flow(), consent=REPEAT)
    assert done.lineage != first
    assert f"batch {batch} " in done.notice
    assert "is repeated" in done.notice
    assert "'out' holds 2 rows" in done.notice
    old = [row(n, "old") for n in (1, 2, 3, 4)]
    assert desk.bench.bag("out") == bag([*old, row(3, "new"), row(4, "new")])
    # The choice was for that start alone.
    desk.bench.put("events", [event(5, user=2)])
    assert desk.run(desk.flow()).lineage == done.lineage
    assert row(5, "new", "Bob") in desk.bench.read("out")


def test_skip_goes_on_behind_an_open_batch_with_the_state_of_before_it(desk: Desk) -> None:
    first, batch = written(desk)
    half = next(iter(desk.files_of(batch)))
    lost = [line for line in half.read_text().splitlines() if line]
    half.unlink()
    left = desk.bench.bag("out")
    assert sum(left.values()) == 4 - len(lost)
    desk.bench.put("events", [event(5), event(6, user=2)])
    done = desk.run(desk.flow(), consent=SKIP)
    assert done.lineage != first
    assert "state misses its records" in done.notice
    assert done.totals.inputs == {"events": 2, "users": 0}
    # What was missing of the batch stays missing, and so does the user that it read.
    assert desk.bench.bag("out") == left + bag([row(5, "new")])
    assert desk.bench.bag("missing") == bag([{"n": 6}])


def test_a_restored_run_that_fails_in_its_first_batch_keeps_what_it_took_over(
    desk: Desk,
) -> None:
    begin(desk)
    shutil.rmtree(desk.bench.topics / "users")
    desk.bench.put("events", [event(13)])
    with refused("QUERY_FAILED"):
        # Another operator in front: those that were there take their state by uid.
        desk.run(desk.flow("broken", "old", friends=True), restore_from="latest")
    failed = desk.home.find_present_run()
    done = desk.run(desk.flow(friends=True))
    assert done.lineage != failed
    assert "batch 0 (1 record of 'events')" in done.notice
    assert desk.bench.bag("out") == bag([row(1, "old"), row(2, "old"), row(13, "new")])


def test_an_unchanged_flow_may_skip_a_batch_that_nothing_can_finish(desk: Desk) -> None:
    first = begin(desk)
    desk.bench.put("events", [event(13), event(3)])
    with refused("QUERY_FAILED"):
        desk.run(desk.flow("broken", "old"))
    desk.bench.put("events", [event(4)])
    done = desk.run(desk.flow("broken", "old"), consent=SKIP)
    assert done.lineage != first
    assert desk.bench.bag("out") == bag([row(n, "old") for n in (1, 2, 4)])
    # Where no batch is open there is nothing to skip.
    assert desk.run(desk.flow("broken", "old"), consent=SKIP).lineage == done.lineage


def forget_checkpoint(desk: Desk, run: str) -> str:
    """Remove the newest checkpoint, as a kill after a commit leaves it; return its id."""
    folder = local(desk.home.checkpoints_folder(run))
    kept = sorted(folder.glob("chk-*"), key=lambda f: int(f.name[4:]))
    shutil.rmtree(kept[-1])
    return kept[-1].name


def test_latest_is_the_last_commit_even_if_it_was_not_kept(desk: Desk) -> None:
    first = begin(desk)
    desk.bench.put("events", [event(3), event(4)])
    desk.run(desk.flow("broken", "old"))
    lost = forget_checkpoint(desk, first)
    desk.bench.put("events", [event(5)])
    done = desk.run(desk.flow("broken", "old", friends=True), restore_from="latest")
    assert done.lineage != first
    assert done.totals.inputs == {"events": 1, "users": 0}
    assert desk.bench.bag("out") == bag([row(n, "old") for n in (1, 2, 3, 4, 5)])
    # What the restore went back to is a checkpoint of the old run, as any other.
    assert (desk.home.checkpoints_folder(first) / lost).is_dir()


def test_latest_of_a_corrupted_run_is_its_newest_checkpoint(desk: Desk) -> None:
    first = begin(desk)
    desk.bench.put("events", [event(3), event(4)])
    desk.run(desk.flow("broken", "old"))
    forget_checkpoint(desk, first)
    commits = desk.home.run_folder(first) / "checkpoint" / "commits"
    last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
    (commits / str(last)).write_text("not a commit")
    done = desk.run(desk.flow("broken", "new"), restore_from="latest")
    assert done.lineage != first
    assert desk.bench.bag("out") == bag(
        [*(row(n, "old") for n in (1, 2, 3, 4)), row(3, "new"), row(4, "new")]
    )


def test_latest_is_refused_while_a_batch_is_open_that_has_written(desk: Desk) -> None:
    first, batch = written(desk)
    before = desk.bench.bag("out")
    with refused("BATCH_OPEN") as told:
        desk.run(desk.flow("broken", "old", friends=True), restore_from="latest")
    assert f"from latest: batch {batch} (1 record of 'users', 2 records" in told.value.message
    assert "output 'out' holds 2 rows of it" in told.value.message
    assert "without --from" in told.value.hint
    assert desk.home.find_present_run() == first
    # As the hint says: the unchanged flow finishes the batch, and then latest is exact.
    desk.run(desk.flow("broken", "old"))
    desk.bench.put("events", [event(5)])
    done = desk.run(desk.flow("broken", "old", friends=True), restore_from="latest")
    assert done.lineage != first
    assert desk.bench.bag("out") == before + bag([row(5, "old")])


@pytest.mark.parametrize("consent", [REPEAT, SKIP])
def test_latest_leaves_an_open_batch_as_the_user_says(desk: Desk, consent: Consent) -> None:
    written(desk)
    before = desk.bench.bag("out")
    desk.bench.put("events", [event(5)])
    flow = desk.flow("broken", "new", friends=True)
    desk.run(flow, restore_from="latest", consent=consent)
    again = [row(3, "new"), row(4, "new")] if consent is REPEAT else []
    assert desk.bench.bag("out") == before + bag([*again, row(5, "new")])


def test_latest_reads_an_open_batch_again_that_has_written_nothing(desk: Desk) -> None:
    first = begin(desk)
    desk.bench.put("events", [event(13)])
    with refused("QUERY_FAILED"):
        desk.run(desk.flow("broken", "old"))
    shutil.rmtree(local(desk.home.checkpoints_folder(first)))
    done = desk.run(desk.flow(friends=True), restore_from="latest")
    assert "wrote nothing" in done.notice
    assert desk.bench.bag("out") == bag([row(1, "old"), row(2, "old"), row(13, "new")])


def test_the_plan_of_a_restore_counts_the_records_of_an_open_batch(desk: Desk) -> None:
    first, batch = written(desk)
    graph = bind(desk.flow().graph(), parse_log(f"files:{desk.bench.topics}"))
    checkpoint = list_kept(desk.home.checkpoints_folder(first))[-1]
    assert checkpoint.batch < batch
    again = plan_restore(desk.home, graph, checkpoint, RunOptions()).records_again
    assert again == {"users": 1, "events": 2}
