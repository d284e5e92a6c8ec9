"""Positions on Pulsar, measured from outside."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import HeadgateError, Pulsar
from headgate.connectors.contract.connector import RecordCount
from headgate.connectors.pulsar.names import BEGINNING, EntryId, find_entry_id
from headgate.connectors.pulsar.runs.positions import count_between, has_reached, parse_position


def position(**topics: list[str]) -> str:
    told = {
        f"persistent://public/default/{name}": {"partitioned": True, "next": following}
        for name, following in topics.items()
    }
    return json.dumps({"format": 1, "topics": told})


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_an_entry_reads_back_from_its_text(ledger: int, entry: int) -> None:
    assert find_entry_id(f"{ledger}:{entry}") == EntryId(ledger, entry)
    assert str(EntryId(ledger, entry)) == f"{ledger}:{entry}"
    assert EntryId(ledger, entry) > BEGINNING


@pytest.mark.parametrize("text", ["", "5", "5:", ":5", "-2:0", "1:-1", f"{2**63}:0", 5, None])
def test_anything_else_is_no_entry(text: object) -> None:
    assert find_entry_id(text) is None


def test_a_position_is_the_next_entry_of_every_partition() -> None:
    found = parse_position(position(b=["7:1"], a=["5:0", "-1:0"]))
    assert [name.rpartition("/")[2] for name in found] == ["a", "b"]
    assert [each.next for each in found.values()] == [
        (EntryId(5, 0), BEGINNING),
        (EntryId(7, 1),),
    ]


@pytest.mark.parametrize(
    ("start", "end", "count"),
    [
        (position(a=["6:0"]), position(a=["5:4"]), RecordCount(0)),
        (position(a=["5:1"]), position(a=["5:1", "-1:0"]), RecordCount(0)),
        (None, position(a=["-1:0"]), RecordCount(0)),
        (None, position(a=["5:4"]), None),
        (position(a=["5:1"]), None, None),
    ],
)
def test_a_count_that_needs_no_broker_asks_none(
    start: str | None, end: str | None, count: RecordCount | None
) -> None:
    assert count_between(Pulsar("a", service="pulsar://h"), start, end) == count


@pytest.mark.parametrize(
    ("at", "target", "reached"),
    [
        (position(a=["5:4", "6:2"]), position(a=["5:4", "6:2"]), True),
        (position(a=["5:4", "7:0"]), position(a=["5:4", "6:2"]), True),
        (position(a=["7:0", "6:1"]), position(a=["5:4", "6:2"]), False),
        (position(a=["5:4"]), position(a=["5:4", "6:2"]), False),
        (position(a=["5:4"]), position(a=["5:4", "-1:0"]), True),
        (position(a=["5:4", "6:2"]), position(a=["5:4"]), True),
        (position(b=["5:4"]), position(a=["5:4"]), False),
        (position(b=["5:4"]), position(a=["-1:0"]), True),
        (position(a=["-1:0"]), None, True),
    ],
)
def test_a_target_is_reached_when_every_partition_is(
    at: str, target: str | None, reached: bool
) -> None:
    assert has_reached(at, target) is reached


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format":2,"topics":{}}',
        '{"format":1}',
        '{"format":1,"topics":{"a":{"partitioned":true,"next":[5]}}}',
        '{"format":1,"topics":{"a":{"next":["5:1"]}}}',
    ],
)
def test_a_damaged_position_is_told(text: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        parse_position(text)
    assert (caught.value.code, caught.value.exit_code) == ("POSITION_UNREADABLE", 3)
