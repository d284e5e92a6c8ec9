"""A job that exists goes on where it was, with its state, or says why it cannot."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, bag, refused

from headgate import Files, Flow
from headgate.flow.schemas.schema import Field, ListOf, Primitive, Schema, schema_of
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.states import JobState

USER = "id BIGINT NOT NULL, name STRING NOT NULL"


def joining(
    user: Any = USER, *, uid: str = "with-user", key: str = "id", table: str = "users"
) -> Flow:
    """Return a flow that looks users up."""
    flow = Flow("joining")
    users = flow.table(table, user, key=key)
    events = flow.stream("events", "n BIGINT, user BIGINT")
    enriched = events.enrich(uid, users, on="user", into="found")
    enriched.matched.select("n", "found").to("out")
    enriched.missing.select("n").to("missing")
    return flow


def event(n: int, user: int = 1) -> dict[str, int]:
    """Return an event of a user."""
    return {"n": n, "user": user}


def found(n: int, **columns: Any) -> dict[str, Any]:
    """Return an event with the row it met."""
    return {"n": n, "found": {"id": 1, "name": "Ann", **columns}}


@pytest.fixture
def begun(bench: Bench) -> Bench:
    """Give a bench on which the job has run once, and holds one user."""
    bench.put("users", [{"id": 1, "name": "Ann"}])
    bench.put("events", [event(1), event(2, user=9)])
    first = bench.run(joining(), parallelism=2)
    assert (first.state, first.resumed_from) == (JobState.FINISHED, None)
    return bench


def test_a_second_start_reads_what_is_new_and_no_more(begun: Bench) -> None:
    begun.put("events", [event(3)])
    done = begun.run(joining())
    assert done.resumed_from is not None
    assert (done.totals.inputs, done.totals.outputs["out"]) == ({"events": 1, "users": 0}, 1)
    assert begun.bag("out") == bag([found(1), found(3)])
    assert begun.bag("missing") == bag([{"n": 2}])
    again = begun.run(joining())
    assert (again.totals.batches, again.lineage) == (0, done.lineage)


def test_state_alone_answers_when_the_tables_topic_is_emptied(begun: Bench) -> None:
    shutil.rmtree(begun.topics / "users")
    begun.put("events", [event(3)])
    begun.run(joining())
    assert begun.bag("out") == bag([found(1), found(3)])


def test_a_deleted_row_stays_deleted(begun: Bench) -> None:
    begun.put("users", [{"id": 1, "$deleted": True}])
    begun.run(joining())
    begun.put("events", [event(3)])
    begun.run(joining())
    assert begun.bag("missing") == bag([{"n": 2}, {"n": 3}])


def test_a_table_may_gain_columns_and_old_state_still_reads(begun: Bench) -> None:
    wider = Schema(
        (
            *schema_of(USER).fields,
            Field("mail", Primitive("string"), True),
            Field("level", Primitive("bigint"), False, 7),
            Field("tags", ListOf(Primitive("string"), False), False, ["new"]),
        )
    )
    begun.put("events", [event(3)])
    begun.run(joining(wider))
    old = {"mail": None, "level": 7, "tags": ["new"]}
    assert begun.bag("out") == bag([found(1), found(3, **old)])
    begun.put("users", [{"id": 2, "name": "Bob", "mail": "b@x", "level": 1, "tags": []}])
    begun.put("users", [{"id": 3, "name": "Cy"}])
    begun.run(joining(wider))
    begun.put("events", [event(4), event(5, user=2), event(6, user=3)])
    widest = wider.with_fields(Field("late", Primitive("double"), True))
    begun.run(joining(widest))
    bob = {"id": 2, "name": "Bob", "mail": "b@x", "level": 1, "tags": [], "late": None}
    cy = {"id": 3, "name": "Cy", **old, "late": None}
    assert begun.bag("out") == bag(
        [
            found(1),
            found(3, **old),
            found(4, **old, late=None),
            {"n": 5, "found": bob},
            {"n": 6, "found": cy},
        ]
    )


@pytest.mark.parametrize(
    ("flow", "code", "told"),
    [
        (joining("id BIGINT NOT NULL"), "SCHEMA_CHANGED", "name was removed"),
        (joining("id INT NOT NULL, name STRING NOT NULL"), "SCHEMA_CHANGED", "id changed its type"),
        (joining(f"{USER}, x INT NOT NULL"), "SCHEMA_CHANGED", "x was added"),
        (joining("name STRING NOT NULL, id BIGINT NOT NULL"), "SCHEMA_CHANGED", "the order"),
        (joining(uid="renamed"), "STATE_INCOMPATIBLE", "with-user, and the flow has renamed"),
        (joining(table="people"), "STATE_INCOMPATIBLE", "users"),
    ],
)
def test_a_flow_that_does_not_fit_the_state_is_refused(
    begun: Bench, flow: Flow, code: str, told: str
) -> None:
    begun.put("events", [event(3)])
    with refused(code) as caught:
        begun.run(flow)
    assert told in caught.value.message
    assert "--fresh" in caught.value.hint
    begun.run(joining())
    assert begun.bag("out") == bag([found(1), found(3)])


def test_another_parallelism_is_refused_and_the_same_is_not(begun: Bench) -> None:
    with refused("PARALLELISM_FIXED"):
        begun.run(joining(), parallelism=3)
    assert begun.run(joining(), parallelism=2).state is JobState.FINISHED


def test_fresh_starts_a_lineage_of_its_own_and_writes_all_again(begun: Bench) -> None:
    before = JobFolder(begun.home, "joining").find_present_run()
    done = begun.run(joining(uid="renamed"), fresh=True, parallelism=3)
    assert done.lineage != before
    assert (done.resumed_from, done.totals.inputs) == (None, {"events": 2, "users": 1})
    assert begun.bag("out") == bag([found(1), found(1)])
    begun.put("events", [event(3)])
    assert begun.run(joining(uid="renamed")).lineage == done.lineage
    assert begun.bag("out") == bag([found(1), found(1), found(3)])


def test_a_job_that_runs_cannot_be_started_again(begun: Bench) -> None:
    with JobFolder(begun.home, "joining").locked(), refused("JOB_RUNNING") as caught:
        begun.run(joining())
    assert f"process {os.getpid()}" in caught.value.message
    assert begun.run(joining()).state is JobState.FINISHED


def test_a_job_is_found_again_from_another_folder(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.put("users", [{"id": 1, "name": "Ann"}])
    bench.put("events", [event(1)])
    bench.home.mkdir()
    monkeypatch.chdir(bench.home)
    bench.run(joining(), home=Path())
    monkeypatch.chdir(bench.root)
    bench.put("events", [event(2)])
    done = bench.run(joining(), home=Path("home"))
    assert done.resumed_from is not None
    assert bench.bag("out") == bag([found(1), found(2)])


def test_checkpoints_lie_where_they_were_asked_for(bench: Bench) -> None:
    bench.put("users", [{"id": 1, "name": "Ann"}])
    bench.put("events", [event(1)])
    elsewhere = bench.root / "elsewhere"
    done = bench.run(joining(), checkpoints=elsewhere)
    assert (elsewhere / done.lineage / "checkpoint" / "commits" / "0").exists()
    bench.put("events", [event(2)])
    assert bench.run(joining()).resumed_from is not None
    assert bench.bag("out") == bag([found(1), found(2)])


def test_a_source_in_another_place_is_refused_unless_it_is_the_same_topic(begun: Bench) -> None:
    begun.put("events", [event(3)])
    for elsewhere in ("kafka://127.0.0.1:1", f"files:{begun.root / 'none'}"):
        for latest in (None, "latest"):
            with refused("SOURCE_MOVED") as caught:
                begun.run(joining(), on=elsewhere, restore_from=latest)
            assert "--fresh" in caught.value.hint
    moved = begun.topics.rename(begun.root / "moved")
    begun.topics_name = moved.name
    assert begun.run(joining()).resumed_from is not None
    assert begun.bag("out") == bag([found(1), found(3)])


def test_a_stream_moves_with_the_state_under_another_uid(begun: Bench) -> None:
    flow = Flow("joining")
    users = flow.table("users", USER, key="id")
    other = Files("events", dir=begun.topics / "other")
    events = flow.stream(other, "n BIGINT, user BIGINT", uid="events-2")
    enriched = events.enrich("with-user", users, on="user", into="found")
    enriched.matched.select("n", "found").to("out")
    enriched.missing.select("n").to("missing")
    begun.put("other", [event(7), event(8, user=9)])
    begun.run(flow)
    assert begun.bag("out") == bag([found(1), found(7)])
    assert begun.bag("missing") == bag([{"n": 2}, {"n": 8}])
