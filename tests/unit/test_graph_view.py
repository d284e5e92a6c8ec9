"""A job's graph shows what goes through it, and leaves out what nobody knows."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headgate import Flow, HeadgateError
from headgate._codec import decode, encode
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import new_run, write_run
from headgate.jobs.views.graph import GraphEdge, GraphNode, GraphView, build_view
from headgate.windows import count, tumbling

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
STATUS: dict[str, Any] = {
    "inputs": {"orders": 101, "users": 4},
    "outputs": {"enriched": 60, "unknown-users": 30, "dead-letters": 2},
    "ports": {
        "orders": 100,
        "orders!": 1,
        "orders.where-1": 90,
        "orders.where-1!": 1,
        "users": 4,
        "users!": 0,
        "with-user.matched": 60,
        "with-user.missing": 30,
    },
    "ports_per_s": {"orders": 10.0, "orders!": 0.1, "orders.where-1": 9.0, "users": 0.4}
    | {"with-user.matched": 6.0, "with-user.missing": 3.0},
    "busy": {"with-user": 0.25},
    "state_rows": {"with-user": 4},
    "state_bytes": {"with-user": 2048},
    "lag_records": {"orders": 7},
    "lag_s": {"orders": 1.5},
}


def store() -> Flow:
    flow = Flow("store")
    users = flow.table("users", "id BIGINT NOT NULL, name STRING", key="id")
    orders = flow.stream("orders", "id BIGINT, userId BIGINT, price DOUBLE")
    found = orders.where("price > 0").enrich("with-user", users, on="userId", into="user")
    found.matched.select("id", "user").to("enriched")
    found.missing.to("unknown-users")
    return flow


def seen(status: dict[str, Any], flow: Flow | None = None) -> GraphView:
    return build_view("store", (flow or store()).graph(), status)


def node(view: GraphView, node_id: str) -> GraphNode:
    return next(each for each in view.nodes if each.id == node_id)


def edge(view: GraphView, source: str, target: str) -> GraphEdge:
    return next(each for each in view.edges if (each.source, each.target) == (source, target))


def test_every_part_of_a_flow_is_a_node_of_its_kind() -> None:
    view = seen(STATUS)
    kinds = {each.id: each.kind for each in view.nodes}
    assert kinds == {
        "users": "table",
        "orders": "source",
        "orders.where-1": "operator",
        "with-user": "operator",
        "with-user.matched.select-1": "operator",
        "enriched": "output",
        "unknown-users": "output",
        "dead-letters": "dead-letters",
    }
    assert {each.id for each in view.nodes if each.side} == {"unknown-users", "dead-letters"}
    assert node(view, "with-user").detail == "enrich from users into user"
    assert node(view, "with-user").operator == "enrich"


def test_edges_tell_how_rows_move_and_how_many_did() -> None:
    view = seen(STATUS)
    to_user = edge(view, "orders.where-1", "with-user")
    assert (to_user.exchange, to_user.records, to_user.per_s) == ("key_by userId", 90, 9.0)
    changes = edge(view, "users", "with-user")
    assert (changes.label, changes.exchange, changes.records) == ("changes", "key_by id", 4)
    missing = edge(view, "with-user", "unknown-users")
    assert (missing.label, missing.exchange, missing.records) == ("missing", "forward", 30)
    # Columns that are picked as rows are written pass all of them on.
    assert edge(view, "with-user.matched.select-1", "enriched").records == 60


def test_dead_letters_are_told_by_the_node_they_arose_at() -> None:
    view = seen(STATUS)
    letters = {each.source: each.records for each in view.edges if each.target == "dead-letters"}
    assert letters == {"orders": 1, "users": 0, "orders.where-1": 1}
    assert node(view, "dead-letters").facts.records_in == 2


def test_nodes_tell_what_goes_through_them_and_what_they_hold() -> None:
    view = seen(STATUS)
    source, operator = node(view, "orders").facts, node(view, "with-user").facts
    assert (source.records_in, source.records_out, source.in_per_s) == (101, 100, 10.1)
    assert (source.lag_records, source.lag_bytes, source.lag_s) == (7, None, 1.5)
    assert (operator.records_in, operator.records_out) == (94, 90)
    assert (operator.in_per_s, operator.out_per_s) == (9.4, 9.0)
    assert (operator.state_rows, operator.state_bytes, operator.busy) == (4, 2048, 0.25)
    assert node(view, "enriched").facts.records_in == 60
    assert node(view, "orders.where-1").facts.busy is None


def test_an_older_job_tells_what_left_it_and_nothing_made_up() -> None:
    ends = ("inputs", "outputs", "state_rows", "state_bytes")
    view = seen({name: STATUS[name] for name in ends})
    assert edge(view, "orders", "orders.where-1").records is None
    assert edge(view, "with-user", "unknown-users").records == 30
    assert edge(view, "with-user.matched.select-1", "enriched").records == 60
    operator = node(view, "with-user").facts
    assert (operator.records_in, operator.records_out, operator.busy) == (None, None, None)
    assert node(view, "orders").facts.records_in == 101


def test_a_side_output_that_nobody_uses_is_there_and_says_so() -> None:
    flow = Flow("visits")
    visits = flow.stream("visits", "site STRING, at BIGINT", event_time="at")
    counted = visits.key_by("site").window("per-site", tumbling("1m")).aggregate(n=count())
    counted.updates.to("counts")
    told = {"ports": {"visits": 9, "per-site.updates": 2, "per-site.late": 1}}
    view = seen({**told, "watermark": "2026-11-15T11:59:00+00:00"}, flow)
    late = node(view, "per-site.late")
    assert (late.kind, late.side, late.facts.records_in) == ("output", True, 1)
    assert "counted, not written" in late.detail
    assert edge(view, "visits", "per-site").exchange == "key_by site"
    assert node(view, "per-site").facts.watermark == "2026-11-15T11:59:00+00:00"
    assert node(view, "visits").facts.watermark == "2026-11-15T11:59:00+00:00"
    assert node(view, "counts").facts.watermark is None


@pytest.fixture
def home(tmp_path: Path) -> JobFolder:
    made = JobFolder(tmp_path, "store")
    run = new_run(made, store().graph(), parallelism=2, checkpoints=None, now=NOW)
    write_run(made, run)
    made.write_job(run.lineage, flow="flow.py", options={})
    return made


def test_a_job_that_ended_shows_counts_and_no_speed(home: JobFolder) -> None:
    home.write_status({"state": "STOPPED", **STATUS})
    view = FolderHome(home.root).graph("store")
    assert edge(view, "orders", "orders.where-1").records == 100
    assert edge(view, "orders", "orders.where-1").per_s is None
    assert node(view, "with-user").facts.busy is None


def test_a_job_that_never_ran_has_no_graph_and_no_job_is_refused(tmp_path: Path) -> None:
    JobFolder(tmp_path, "new").write_status({"state": "STARTING"})
    assert FolderHome(tmp_path).graph("new").nodes == ()
    with pytest.raises(HeadgateError) as caught:
        FolderHome(tmp_path).graph("none")
    assert caught.value.code == "JOB_NOT_FOUND"


def test_a_graph_is_plain_json(home: JobFolder) -> None:
    home.write_status({"state": "STOPPED", **STATUS})
    view = FolderHome(home.root).graph("store")
    told = json.loads(json.dumps(encode(view)))
    assert decode(GraphView, told) == view
    assert set(told) == {"job", "nodes", "edges"}
    assert told["nodes"][0]["facts"]["records_in"] == 4
