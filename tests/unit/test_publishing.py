"""Positions are published beside the job: newest first, and nobody waits for a broker."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping

import pytest

from headgate.connectors import Kafka
from headgate.connectors.contract.connector import Mark
from headgate.connectors.kafka.descriptor import KafkaLog
from headgate.connectors.kafka.runs.positions import GroupMark
from headgate.errors import HeadgateError
from headgate.jobs.runs.publishing import Publisher

MARK = GroupMark(Kafka("orders", servers="h:9092").log, "store")


def position(*following: int) -> str:
    return json.dumps({"format": 1, "topics": {"orders": {"id": "x", "next": following}}})


class Group:
    """A consumer group that answers when it is let, and refuses when it is told to."""

    def __init__(self) -> None:
        self.published: list[dict[tuple[str, int], int]] = []
        self.names: set[str] = set()
        self.answers = threading.Event()
        self.asked = threading.Event()
        self.refuses = False

    def publish(self, _log: KafkaLog, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        self.asked.set()
        assert self.answers.wait(180)
        if self.refuses:
            raise HeadgateError("BROKER_UNREACHABLE", "cannot publish", hint="wait")
        self.names.add(group)
        self.published.append(dict(offsets))


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Group:
    made = Group()
    monkeypatch.setattr("headgate.connectors.kafka.runs.positions.publish_positions", made.publish)
    return made


def test_a_broker_that_does_not_answer_gets_the_newest_position_once_it_does(group: Group) -> None:
    publisher = Publisher({"orders": MARK}, lambda _: None)
    publisher.offer({"orders": position(1), "files": "{}"})
    assert group.asked.wait(180)
    for following in range(2, 100):
        publisher.offer({"orders": position(following)})
    group.answers.set()
    publisher.close()
    assert group.published == [{("orders", 0): 1}, {("orders", 0): 99}]
    assert group.names == {"store"}


def test_a_row_of_failures_is_told_once(group: Group) -> None:
    told: list[str] = []
    group.answers.set()
    publisher = Publisher({"orders": MARK}, lambda error: told.append(error.code))

    def offer(following: int) -> None:
        group.asked.clear()
        publisher.offer({"orders": position(following)})
        assert group.asked.wait(180)

    group.refuses = True
    offer(1)
    offer(2)
    publisher.close()
    assert told == ["BROKER_UNREACHABLE"]
    assert group.published == []


def test_a_source_without_a_position_yet_is_left_out(group: Group) -> None:
    group.answers.set()
    publisher = Publisher({"orders": MARK}, lambda _: None)
    publisher.offer({"orders": None})
    publisher.close()
    assert group.published == []


def test_a_broker_that_refuses_does_not_keep_positions_from_the_others(group: Group) -> None:
    class Shown:
        def __init__(self) -> None:
            self.positions: list[str] = []

        def move(self, position: str) -> None:
            self.positions.append(position)

    told: list[str] = []
    shown = Shown()
    group.answers.set()
    group.refuses = True
    marks: dict[str, Mark] = {"orders": MARK, "users": shown}
    publisher = Publisher(marks, lambda error: told.append(error.code))
    publisher.offer({"orders": position(1), "users": "here"})
    publisher.close()
    assert told == ["BROKER_UNREACHABLE"]
    assert shown.positions == ["here"]
