"""A source in another place goes on from its position if it is the same topic, and is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from headgate import Flow, Folder, Graph, HeadgateError, Postgres
from headgate.connectors.files.folder.topic import TopicFolder
from headgate.connectors.logs import bind, parse_log
from headgate.connectors.registry import CONNECTORS, get_connector
from headgate.jobs.runs.moved_sources import check_places

KAFKA = json.dumps({"format": 1, "topics": {"orders": {"id": "x", "next": [5]}}})


def flow(on: str, *, topic: str = "orders", uid: str = "orders") -> Graph:
    """Return a flow with a stream and a table, their topics bound."""
    made = Flow("shop")
    orders = made.stream(topic, "id BIGINT, user BIGINT", uid=uid)
    users = made.table("users", "id BIGINT NOT NULL", key="id")
    orders.enrich("with-user", users, on="user", into="u").matched.select("id").to("out")
    return bind(made.graph(), parse_log(on))


def position_in(topics: Path, name: str) -> str:
    """Make an embedded topic, and return a position in it."""
    folder = TopicFolder(topics / name)
    folder.create()
    return json.dumps({"format": 1, "topic": folder.get_meta().id, "file": 0, "byte": 7})


def check(before: Graph, now: Graph, **positions: str | None) -> None:
    check_places(before, now, positions, what="cannot resume job 'shop'", job="shop")


def refusal(before: Graph, now: Graph, **positions: str | None) -> HeadgateError:
    with pytest.raises(HeadgateError) as caught:
        check(before, now, **positions)
    return caught.value


def test_another_kind_of_log_is_refused_with_both_places(tmp_path: Path) -> None:
    before, now = flow(f"files:{tmp_path}"), flow("kafka://h:9092")
    error = refusal(before, now, orders=position_in(tmp_path, "orders"))
    assert error.code == "SOURCE_MOVED"
    assert error.message.startswith("cannot resume job 'shop': source 'orders' was read from ")
    assert f"files orders in {tmp_path}/orders, and the flow reads kafka orders at h:9092" in (
        error.message
    )
    assert "--fresh" in error.hint
    assert "uid='orders-2'" in error.hint
    assert not error.retryable


def test_the_uid_of_a_table_cannot_be_changed_with_its_state(tmp_path: Path) -> None:
    before, now = flow(f"files:{tmp_path}"), flow("kafka://h:9092")
    error = refusal(before, now, users=position_in(tmp_path, "users"))
    assert "source 'users'" in error.message
    assert "uid" not in error.hint


def test_a_source_that_was_not_read_may_be_anywhere(tmp_path: Path) -> None:
    before, now = flow(f"files:{tmp_path}"), flow("kafka://h:9092")
    check(before, now)
    check(before, now, orders=None)


def test_a_stream_with_another_uid_is_another_source(tmp_path: Path) -> None:
    position = position_in(tmp_path, "orders")
    check(flow(f"files:{tmp_path}"), flow("kafka://h:9092", uid="orders-2"), orders=position)


def test_a_topic_that_was_never_bound_says_nothing_of_its_place(tmp_path: Path) -> None:
    before = Flow("shop")
    before.stream("orders", "id BIGINT").to("out")
    check(before.graph(), flow(f"files:{tmp_path}"), orders=position_in(tmp_path, "orders"))


def test_the_same_place_is_not_asked_for(tmp_path: Path) -> None:
    # No broker listens there, and a folder that was made anew is for the source to judge.
    check(flow("kafka://h:1"), flow("kafka://h:1?client.id=other"), orders=KAFKA)
    check(flow(f"files:{tmp_path}"), flow(f"files:{tmp_path}"), orders="anything")


def test_a_moved_folder_is_the_same_topic_and_another_one_is_not(tmp_path: Path) -> None:
    position = position_in(tmp_path / "old", "orders")
    before, now = flow(f"files:{tmp_path / 'old'}"), flow(f"files:{tmp_path / 'new'}")
    assert "not a topic that was ever read" in refusal(before, now, orders=position).message
    position_in(tmp_path / "new", "orders")
    assert "has another id" in refusal(before, now, orders=position).message
    shutil.rmtree(tmp_path / "new")
    (tmp_path / "old").rename(tmp_path / "new")
    check(before, now, orders=position)


def test_another_name_under_one_uid_is_another_topic(tmp_path: Path) -> None:
    on, position = f"files:{tmp_path}", position_in(tmp_path, "orders")
    position_in(tmp_path, "other")
    error = refusal(flow(on), flow(on, topic="other"), orders=position)
    assert f"the topic in folder {tmp_path}/other has another id" in error.message
    on = "kafka://h:9092"
    error = refusal(flow(on), flow(on, topic="other"), orders=KAFKA)
    assert error.message.endswith("kafka other at h:9092: the job had read orders")


@pytest.mark.parametrize("kind", CONNECTORS)
@pytest.mark.parametrize(
    "position",
    [
        json.dumps({"format": 1, "topic": "x", "file": 0}),
        json.dumps({"format": 1, "topics": {"orders": {}}}),
        json.dumps({"format": 7}),
        "[]",
        "{",
    ],
)
def test_a_position_of_another_kind_is_refused_by_name(kind: str, position: str) -> None:
    topics = {
        "files": parse_log("files:t").bind("orders"),
        "folder": Folder("t", format="json"),
        "kafka": parse_log("kafka://h:1").bind("orders"),
        "postgres": Postgres("orders", url="postgresql://h/db", table="orders"),
        "pulsar": parse_log("pulsar://h:1").bind("orders"),
    }
    topic = topics[kind]
    positions = get_connector(topic).positions
    for look in (
        lambda: positions.has_reached(position, position),
        lambda: positions.count_between(topic, position, position),
    ):
        with pytest.raises(HeadgateError) as caught:
            look()
        assert caught.value.code == "POSITION_UNREADABLE"
