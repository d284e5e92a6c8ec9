"""The counting of an audit: against plain Python, on any input."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.connectors.contract.audit import RowMark, find_row_mark
from headgate.jobs.audit.key_counts import KeyColumns, KeyCounts, hash_of
from headgate.jobs.audit.position_counts import PartitionCounts
from headgate.jobs.dead_letters.letter import parse_letter

OFFSETS = st.integers(0, 40)
ROWS = st.lists(st.tuples(OFFSETS, st.sampled_from(["a", "b", None])), max_size=60)


@given(
    st.sets(st.integers(10, 29), max_size=20),
    st.lists(ROWS, max_size=4),
)
def test_offsets_are_counted_as_a_plain_count_would(
    records: set[int], batches: list[list[tuple[int, str | None]]]
) -> None:
    counts = PartitionCounts(10, 30)
    counts.expect(records)
    for rows in batches:
        for group in ("a", "b", None):
            counts.take([offset for offset, each in rows if each == group], group)
    rows = [row for each in batches for row in each]
    inside = [row for row in rows if 10 <= row[0] < 30]
    seen = {offset for offset, _ in inside}
    times = Counter(row for row in inside if row[1] is not None and row[0] in records)
    found = counts.count()
    assert found.records == len(records)
    assert found.written == len(records & seen)
    assert found.doubled == sum(count - 1 for count in times.values())
    assert found.unknown == len(seen - records)
    assert found.ahead == sum(offset >= 30 for offset, _ in rows)
    assert counts.before == sum(offset < 10 for offset, _ in rows)
    assert counts.find_lost(3) == sorted(records - seen)[:3]
    doubled = {offset for (offset, _), count in times.items() if count > 1}
    assert counts.find_doubled(3) == sorted(doubled)[:3]
    assert counts.find_unknown(3) == sorted(seen - records)[:3]


def test_a_record_that_is_there_beyond_counting_stays_doubled() -> None:
    counts = PartitionCounts(0, 1)
    counts.expect([0])
    for _ in range(3):
        counts.take([0] * 40_000, "a")
    assert counts.count().doubled == 65_534


def test_an_empty_range_counts_nothing() -> None:
    counts = PartitionCounts(7, 7)
    counts.take([7, 8], "a")
    assert counts.count().ahead == 2
    assert counts.count().records == counts.count().doubled == 0


KEYS = st.integers(-4, 4)


@given(st.lists(st.tuples(KEYS, st.integers(0, 2)), max_size=40), st.lists(KEYS, max_size=40))
def test_keys_are_compared_as_a_plain_count_would(
    records: list[tuple[int, int]], rows: list[int]
) -> None:
    counts = KeyCounts()
    for key, partition in records:
        counts.expect(hash_of((str(key),)), partition)
    for key in rows:
        counts.take(hash_of((str(key),)))
    found = counts.compare(examples=100)
    wanted, written = Counter(key for key, _ in records), Counter(rows)
    assert sum(each.lost or 0 for each in found.partitions.values()) == (wanted - written).total()
    too_many = {key: written[key] - wanted[key] for key in wanted if written[key] > wanted[key]}
    assert sum(each.doubled for each in found.partitions.values()) == sum(too_many.values())
    assert found.unknown == sum(count for key, count in written.items() if key not in wanted)
    for partition, each in found.partitions.items():
        assert each.records == sum(partition == place for _, place in records)
        assert each.lost is not None
        assert 0 <= each.lost <= each.records
    assert found.lost_keys == {hash_of((str(key),)) for key in wanted - written}
    assert found.doubled_keys == {hash_of((str(key),)) for key in too_many}
    assert found.unknown_keys == {hash_of((str(key),)) for key in written if key not in wanted}


KEY = KeyColumns((("id",), ("place", "line")))


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"no json",
        b"[1]",
        b'"text"',
        b'{"id": 1}',
        b'{"id": 1, "place": 2}',
        b'{"id": null, "place": {"line": 2}}',
        b'{"id": 1, "place": {"line": null}}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_a_record_without_all_of_the_key_has_none(value: bytes | None) -> None:
    assert KEY.find(value) is None


JSON = st.one_of(
    st.integers(), st.text(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)
)


@given(JSON, JSON, JSON, JSON)
def test_keys_are_equal_if_and_only_if_their_values_are(
    one: object, two: object, three: object, four: object
) -> None:
    def key(left: object, right: object) -> tuple[str, ...] | None:
        return KEY.find(json.dumps({"id": left, "place": {"line": right}}).encode())

    def values(*each: object) -> list[object]:
        return [(isinstance(value, bool), value) for value in each]

    assert (key(one, two) == key(three, four)) == (values(one, two) == values(three, four))


def test_a_whole_number_is_one_key_with_a_point_or_without() -> None:
    assert KEY.find(b'{"id": 5, "place": {"line": 1}}') == KEY.find(
        b'{"place": {"line": 1}, "id": 5.0, "more": 2}'
    )


@given(st.text("abc-._", min_size=1), st.integers(0), st.integers(0))
def test_a_mark_is_read_as_it_was_written(source: str, partition: int, offset: int) -> None:
    value = f"20261115T101112-0a1b2c/{source}/{partition}/{offset}".encode()
    found = find_row_mark([("other", b"x"), ("headgate", value)])
    assert found == find_row_mark([("headgate", value + b"/1048576")])
    assert found == RowMark("20261115T101112-0a1b2c", source, partition, offset)


@pytest.mark.parametrize(
    "value", [None, b"", b"a/b/c/d", b"a/b/1", b"a/b/1/2/3/4", b"a/b/1/2/x", b"\xff/b/1/2"]
)
def test_a_mark_that_is_none_is_not_taken_for_one(value: bytes | None) -> None:
    assert find_row_mark([("headgate", value)]) is None


def test_a_dead_letter_gives_its_record_unless_it_was_cut() -> None:
    content = {
        "source": "orders",
        "topic": "orders",
        "partition": 3,
        "offset": 7,
        "timestamp": 1,
        "code": "BAD_JSON",
        "reason": "it is not JSON",
        "bytes": 3,
        "raw": "YWJj",
    }
    letter = parse_letter(json.dumps(content).encode())
    assert letter is not None
    assert (letter.source, letter.topic, letter.partition, letter.offset) == (*["orders"] * 2, 3, 7)
    assert (letter.raw, letter.cut) == (b"abc", False)
    cut = parse_letter(json.dumps({**content, "bytes": 4}).encode())
    assert cut is not None
    assert cut.cut
    assert parse_letter(b'{"source": "orders"}') is None
    assert parse_letter(b"no json") is None
    assert parse_letter(None) is None
