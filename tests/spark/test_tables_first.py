"""Tables first: on a first start, no event is looked at before the tables are read."""

from __future__ import annotations

from typing import Any

from bench import Bench, bag

from headgate import Flow
from headgate.jobs.values import JobSnapshot

USERS = [{"id": n, "name": f"user {n}"} for n in range(40)]
EVENTS = [{"n": n, "user": n % 40} for n in range(40)]


def joining(*, load: str = "first") -> Flow:
    """Return a flow that looks users up."""
    flow = Flow("joining")
    users = flow.table("users", "id BIGINT NOT NULL, name STRING", key="id", load=load)
    enriched = flow.stream("events", "n BIGINT, user BIGINT").enrich(
        "with-user", users, on="user", into="found"
    )
    enriched.matched.select("n", "found.name").to("out")
    enriched.missing.select("n").to("missing")
    return flow


def named(events: list[Any]) -> list[Any]:
    """Return the rows that come of events whose user is known."""
    return [{"n": each["n"], "name": f"user {each['user']}"} for each in events]


def test_every_event_sees_the_tables_that_were_there_at_the_start(bench: Bench) -> None:
    bench.put("events", EVENTS)
    bench.put("users", USERS[20:])
    bench.put("users", USERS[:20])
    loading: list[tuple[bool, int]] = []

    def watch(now: JobSnapshot) -> None:
        loading.append((now.loading, now.totals.inputs.get("events", 0)))

    done = bench.run(joining(), max_batch=300, watch=watch)
    assert bench.bag("out") == bag(named(EVENTS))
    assert bench.read("missing") == []
    assert done.totals.batches > 5
    assert all(read == 0 for is_loading, read in loading if is_loading)
    assert not done.loading


def test_two_tables_are_both_read_before_the_first_event(bench: Bench) -> None:
    flow = Flow("two")
    users = flow.table("users", "id BIGINT NOT NULL, name STRING", key="id")
    items = flow.table("items", "id BIGINT NOT NULL", key="id")
    events = flow.stream("events", "n BIGINT, user BIGINT")
    with_user = events.enrich("with-user", users, on="user", into="u")
    with_item = with_user.matched.enrich("with-item", items, on="n", into="i")
    with_item.matched.select("n").to("out")
    bench.put("events", EVENTS)
    bench.put("users", USERS[:1] + USERS[1:])
    bench.put("items", [{"id": n} for n in range(40)])
    done = bench.run(flow, max_batch=400)
    assert bench.bag("out") == bag([{"n": n} for n in range(40)])
    assert done.totals.outputs["with-user.missing"] == 0
    assert done.totals.outputs["with-item.missing"] == 0


def test_together_admits_both_and_the_same_batch_matches(bench: Bench) -> None:
    bench.put("events", EVENTS)
    bench.put("users", USERS)
    done = bench.run(joining(load="together"))
    assert done.totals.batches == 1
    assert bench.bag("out") == bag(named(EVENTS))


def test_together_lets_events_pass_that_come_before_their_row(bench: Bench) -> None:
    bench.put("events", EVENTS)
    bench.put("users", USERS)
    bench.run(joining(load="together"), max_batch=200)
    missing = bench.read("missing")
    assert missing
    assert len(missing) + len(bench.read("out")) == len(EVENTS)


def test_a_table_without_a_row_lets_events_through(bench: Bench) -> None:
    bench.put("events", EVENTS)
    bench.put_bytes("users", b"")
    bench.run(joining())
    assert bench.bag("missing") == bag([{"n": each["n"]} for each in EVENTS])


def test_rows_and_events_that_come_in_one_batch_later_on_match(bench: Bench) -> None:
    bench.put("events", EVENTS[:10])
    bench.put("users", USERS[:10])
    bench.run(joining())
    bench.put("events", EVENTS[10:])
    bench.put("users", USERS[10:])
    done = bench.run(joining())
    assert done.totals.batches == 1
    assert bench.bag("out") == bag(named(EVENTS))
    assert bench.read("missing") == []
