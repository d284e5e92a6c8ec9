"""Positions on Kafka, measured from outside."""

from __future__ import annotations

import json

import pytest

from headgate import HeadgateError
from headgate.connectors import Kafka
from headgate.connectors.kafka.runs.positions import (
    count_between,
    has_reached,
    offsets,
    parse_position,
)


def position(**topics: tuple[str, list[int]]) -> str:
    told = {name: {"id": uid, "next": following} for name, (uid, following) in topics.items()}
    return json.dumps({"format": 1, "topics": told})


def test_a_position_is_the_next_offset_of_every_partition() -> None:
    text = position(b=("x", [7]), a=("y", [5, 0]))
    assert offsets(text) == {("a", 0): 5, ("a", 1): 0, ("b", 0): 7}
    assert list(parse_position(text)) == ["a", "b"]


@pytest.mark.parametrize(
    ("start", "end", "count"),
    [
        (position(a=("x", [1, 2])), position(a=("x", [4, 2])), 3),
        (position(a=("x", [1])), position(a=("x", [4, 10])), 13),
        (position(a=("x", [1])), position(a=("x", [1]), b=("y", [5])), 5),
        (position(a=("x", [100])), position(a=("new", [4])), 4),
        (position(a=("x", [9])), position(a=("x", [4])), 0),
        (None, position(a=("x", [4, 2])), 6),
    ],
)
def test_offsets_between_are_counted_over_partitions_that_grew_and_topics_made_anew(
    start: str | None, end: str, count: int
) -> None:
    found = count_between(Kafka("a", servers="h"), start, end)
    assert (found and found.records) == count


@pytest.mark.parametrize(
    ("at", "target", "reached"),
    [
        (position(a=("x", [4, 2])), position(a=("x", [4, 2])), True),
        (position(a=("x", [4, 3])), position(a=("x", [4, 2])), True),
        (position(a=("x", [5, 1])), position(a=("x", [4, 2])), False),
        (position(a=("x", [5])), position(a=("x", [4, 2])), False),
        (position(a=("x", [5])), position(a=("x", [4, 0])), True),
        (position(a=("new", [0])), position(a=("x", [4])), True),
        (position(b=("y", [0])), position(a=("x", [4])), False),
        (position(b=("y", [0])), position(a=("x", [0])), True),
        (position(a=("x", [0])), None, True),
    ],
)
def test_a_target_is_reached_when_every_partition_is(
    at: str, target: str | None, reached: bool
) -> None:
    assert has_reached(at, target) is reached


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format":2,"topics":{}}', '{"format":1}'])
def test_a_damaged_position_is_told(text: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        offsets(text)
    assert (caught.value.code, caught.value.exit_code) == ("POSITION_UNREADABLE", 3)
