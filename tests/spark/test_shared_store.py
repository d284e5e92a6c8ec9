"""A job with its checkpoints in a folder that hosts share goes on in an empty home."""

from __future__ import annotations

from bench import Bench, bag
from upath import UPath

from headgate import Flow
from headgate.checkpoints.stores.objects import list_objects
from headgate.jobs.checkpoints.listing import list_checkpoints
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.states import JobState


def counting() -> Flow:
    """Return a flow with state: how many events each key has had."""
    flow = Flow("counting")
    users = flow.table("users", "id BIGINT NOT NULL, name STRING", key="id")
    events = flow.stream("events", "n BIGINT, user BIGINT")
    joined = events.enrich("with-user", users, on="user", into="found")
    joined.matched.select("n", "found.name AS name").to("out")
    joined.missing.select("n").to("missing")
    return flow


def test_an_empty_home_goes_on_with_the_state_and_misses_no_row(
    bench: Bench, shared_place: UPath
) -> None:
    bench.put("users", [{"id": 1, "name": "Ann"}])
    bench.put("events", [{"n": 1, "user": 1}, {"n": 2, "user": 9}])
    first = bench.run(counting(), parallelism=2, checkpoints=shared_place)
    assert first.state is JobState.FINISHED
    names = set(list_objects(shared_place))
    assert "jobs/counting.json" in names
    assert f"{first.lineage}/checkpoint/commits/0" in names
    assert not [name for name in names if name.endswith(".making")]
    (kept,) = list_checkpoints(JobFolder(bench.home, "counting"))[-1:]
    assert (str(kept.folder).startswith(f"{shared_place}/"), kept.problems) == (True, ())

    bench.put("events", [{"n": 3, "user": 1}])
    empty = bench.root / "another-host"
    done = bench.run(counting(), home=empty, checkpoints=shared_place)
    assert (done.lineage, done.totals.inputs) == (first.lineage, {"events": 1, "users": 0})
    assert bench.bag("out") == bag([{"n": 1, "name": "Ann"}, {"n": 3, "name": "Ann"}])
    assert bench.bag("missing") == bag([{"n": 2}])
    # The first home is brought up to date.
    bench.put("events", [{"n": 4, "user": 1}])
    again = bench.run(counting(), checkpoints=shared_place)
    assert again.lineage == first.lineage
    assert bench.bag("out").total() == 3
