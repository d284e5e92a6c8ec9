"""Enrich does what a dictionary would: property tests against a model in plain Python."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest
from bench import bag
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_flow import MemoryFlow, keys_of_one_bucket
from pyspark.sql import SparkSession

from examples import examples
from headgate import Flow
from headgate._kernel.memory_query import MemoryRecord

Key = tuple[Any, ...]

SEEDS = st.integers(0, 2**31)
# Few lanes, sequences and times, so that ties and stale changes are common.
LANES = st.integers(0, 2)
SEQUENCES = st.integers(-2, 4)
TIMES = st.integers(0, 3)
INTEGERS = st.sampled_from([0, 1, -1, 7, 2**63 - 1, -(2**63)])
TEXTS = st.text(max_size=6) | st.sampled_from(["", "1", "null", '"', "[1]", "\0", "😀", "é", "é"])


@dataclass(frozen=True)
class Change:
    """A row of a table, or its end."""

    table: str
    key: Key
    value: int
    deleted: bool
    lane: int
    sequence: int
    timestamp: int


@dataclass(frozen=True)
class Event:
    """A row of the stream, by the key it looks for in each operator's table."""

    number: int
    keys: tuple[Key, ...]


@dataclass
class Model:
    """What an operator holds: by key, the change that counts."""

    held: dict[Key, Change] = field(default_factory=dict)

    def apply(self, changes: list[Change], *, versioned: bool) -> None:
        """Fold a batch of changes in; places decide, and for equal ones the order they came in."""
        for change in sorted(changes, key=lambda each: _place(each, versioned)):
            held = self.held.get(change.key)
            if held is None or _replaces(change, held, versioned=versioned):
                self.held[change.key] = change

    def find(self, key: Key) -> Change | None:
        """Return the row an event of this key meets."""
        held = self.held.get(key)
        return None if held is None or held.deleted or None in key else held


def _place(change: Change, versioned: bool) -> tuple[int, int]:
    return (-1 if versioned else change.lane, change.sequence)


def _replaces(change: Change, held: Change, *, versioned: bool) -> bool:
    if versioned or change.lane == held.lane:
        return change.sequence >= held.sequence
    return (change.timestamp, change.lane) > (held.timestamp, held.lane)


@dataclass(frozen=True)
class Shape:
    """A flow under test: how keys are spelled, and by what changes are ordered."""

    types: tuple[str, ...]
    tables: tuple[str, ...]
    versioned: bool = False
    version_type: str = "BIGINT"

    def flow(self) -> Flow:
        """Return a flow with one operator a table, each behind the one before it."""
        flow = Flow("model")
        columns = [f"{table}_k{i} {type_}" for table in self.tables for i, type_ in self._types()]
        rows = flow.stream("events", ", ".join(["n BIGINT NOT NULL", *columns]))
        for table in self.tables:
            keys = ", ".join(f"k{i} {type_}" for i, type_ in self._types())
            declared = flow.table(
                table,
                f"{keys}, v BIGINT, at {self.version_type}",
                key=[f"k{i}" for i, _ in self._types()],
                version="at" if self.versioned else None,
            )
            on = [f"{table}_k{i}" for i, _ in self._types()]
            enriched = rows.enrich(f"with-{table}", declared, on=on, into=table)
            enriched.missing.select("n").to(f"missing-{table}")
            rows = enriched.matched
        values = (f"{table}.v AS {table}_v" for table in self.tables)
        rows.select("n", *values).to("matched")
        return flow

    def _types(self) -> list[tuple[int, str]]:
        return list(enumerate(self.types))

    def record(self, given: Change | Event, offset: int) -> MemoryRecord:
        """Return what stands in the topic."""
        if isinstance(given, Event):
            keys = {
                f"{table}_k{i}": part
                for table, key in zip(self.tables, given.keys, strict=True)
                for i, part in enumerate(key)
            }
            value = {"n": given.number, **keys}
            return MemoryRecord("events", _json(value), offset=offset)
        row: dict[str, Any] = {f"k{i}": part for i, part in enumerate(given.key)}
        row |= {"v": given.value, "at": given.sequence}
        if given.deleted:
            row["$deleted"] = True
        return MemoryRecord(
            given.table,
            _json(row),
            sequence=given.sequence,
            lane=given.lane,
            timestamp=given.timestamp,
            offset=offset,
        )


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def expected(
    shape: Shape, models: dict[str, Model], batch: list[Change | Event]
) -> dict[str, Counter[str]]:
    """Return the rows a batch makes, by output."""
    out: dict[str, list[Any]] = defaultdict(list)
    for table, model in models.items():
        mine = [each for each in batch if isinstance(each, Change) and each.table == table]
        out["dead-letters"] += ["NO_KEY" for each in mine if None in each.key]
        model.apply([each for each in mine if None not in each.key], versioned=shape.versioned)
    for event in (each for each in batch if isinstance(each, Event)):
        row: dict[str, Any] = {"n": event.number}
        for table, key in zip(shape.tables, event.keys, strict=True):
            found = models[table].find(key)
            if found is None:
                out[f"missing-{table}"].append({"n": event.number})
                break
            row[f"{table}_v"] = found.value
        else:
            out["matched"].append(row)
    return {name: bag(rows) for name, rows in out.items() if rows}


def _batches(
    shape: Shape, keys: list[Key], sequences: st.SearchStrategy[int] = SEQUENCES
) -> st.SearchStrategy[list[list[Change | Event]]]:
    known = st.sampled_from(keys)
    change = st.builds(
        Change,
        table=st.sampled_from(shape.tables),
        key=known,
        value=st.integers(0, 99),
        deleted=st.sampled_from([False, False, True]),
        lane=LANES,
        sequence=sequences,
        timestamp=TIMES,
    )
    event = st.builds(
        Event, number=st.integers(0, 99), keys=st.tuples(*(known for _ in shape.tables))
    )
    return st.lists(st.lists(change | event, max_size=12), min_size=1, max_size=4)


def check(
    spark: SparkSession,
    shape: Shape,
    batches: list[list[Change | Event]],
    seeds: tuple[int, int],
    *,
    restart: int | None = None,
) -> None:
    """Run the batches twice, rows shuffled otherwise each time; both times as the model says.

    Args:
        restart: The first flow goes on from its state in a new query before this batch.
    """
    models = {table: Model() for table in shape.tables}
    flows = [MemoryFlow(spark, shape.flow()) for _ in seeds]
    for number, batch in enumerate(batches):
        wanted = expected(shape, models, batch)
        records = [shape.record(each, offset) for offset, each in enumerate(batch)]
        if number == restart:
            flows[0].restart()
        for flow, seed in zip(flows, seeds, strict=True):
            made = flow.batch(records, seed=seed)
            if "dead-letters" in made:
                made["dead-letters"] = [letter["code"] for letter in made["dead-letters"]]
            found = {name: bag(rows) for name, rows in made.items()}
            assert found == wanted, f"batch {number}, seeds {seeds}"


def _keys(*parts: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Key]]:
    key = st.tuples(*(part | st.none() for part in parts))
    return st.lists(key, min_size=1, max_size=4)


@given(st.data())
@settings(max_examples=examples(200))
def test_enrich_by_an_integer_key_is_a_dictionary(spark: SparkSession, data: st.DataObject) -> None:
    shape = Shape(("BIGINT",), ("users",))
    batches = data.draw(_batches(shape, data.draw(_keys(INTEGERS))))
    check(spark, shape, batches, data.draw(st.tuples(SEEDS, SEEDS)))


@given(st.data())
@settings(max_examples=examples(150))
def test_two_enrichments_in_a_row_are_two_dictionaries(
    spark: SparkSession, data: st.DataObject
) -> None:
    shape = Shape(("INT",), ("users", "items"))
    batches = data.draw(_batches(shape, data.draw(_keys(st.integers(0, 2)))))
    check(spark, shape, batches, data.draw(st.tuples(SEEDS, SEEDS)))


@pytest.fixture(scope="module")
def shared(spark: SparkSession) -> list[Key]:
    """Give keys of one bucket, one of another, and one that rows without a key have."""
    found = keys_of_one_bucket(spark, 5)
    return [(each,) for each in (*found[:4], found[0] + 1, None)]


@pytest.mark.parametrize("tables", [("users",), ("users", "items")])
@given(st.data())
@settings(max_examples=examples(150))
def test_keys_of_one_bucket_are_told_apart(
    spark: SparkSession, shared: list[Key], tables: tuple[str, ...], data: st.DataObject
) -> None:
    shape = Shape(("BIGINT",), tables, versioned=data.draw(st.booleans()))
    batches = data.draw(_batches(shape, shared))
    seeds = data.draw(st.tuples(SEEDS, SEEDS))
    check(spark, shape, batches, seeds, restart=data.draw(st.integers(0, 3)))


def test_more_keys_than_buckets_are_a_dictionary(spark: SparkSession) -> None:
    draw = random.Random(11)
    shape, keys = Shape(("BIGINT",), ("users",)), range(12_000)
    batches: list[list[Change | Event]] = []
    for number in range(4):
        changed, asked = draw.sample(keys, 6_000), draw.choices(keys, k=4_000)
        batch: list[Change | Event] = [
            Change("users", (key,), value, draw.random() < 0.3, 0, number, number)
            for value, key in enumerate(changed)
        ]
        batch += [Event(n, ((key if n % 50 else None,),)) for n, key in enumerate(asked)]
        draw.shuffle(batch)
        batches.append(batch)
    check(spark, shape, batches, (1, 2), restart=2)


@given(st.data())
@settings(max_examples=examples(150))
def test_keys_of_any_text_are_told_apart(spark: SparkSession, data: st.DataObject) -> None:
    shape = Shape(("STRING",), ("users",))
    batches = data.draw(_batches(shape, data.draw(_keys(TEXTS))))
    check(spark, shape, batches, data.draw(st.tuples(SEEDS, SEEDS)))


@given(st.data())
@settings(max_examples=examples(150))
def test_keys_of_several_columns_are_told_apart(spark: SparkSession, data: st.DataObject) -> None:
    shape = Shape(("BIGINT", "STRING"), ("users",))
    batches = data.draw(_batches(shape, data.draw(_keys(st.integers(0, 1), TEXTS))))
    check(spark, shape, batches, data.draw(st.tuples(SEEDS, SEEDS)))


@given(st.data())
@settings(max_examples=examples(150))
def test_a_version_column_orders_changes_whatever_their_place(
    spark: SparkSession, data: st.DataObject
) -> None:
    kind, least = data.draw(
        st.sampled_from(
            [("BIGINT", -(2**63)), ("INT", -(2**31)), ("SMALLINT", -1), ("TINYINT", -1)]
        )
    )
    shape = Shape(("BIGINT",), ("users",), versioned=True, version_type=kind)
    sequences = st.integers(-2, 2) | st.just(least)
    batches = data.draw(_batches(shape, data.draw(_keys(st.integers(0, 1))), sequences))
    check(spark, shape, batches, data.draw(st.tuples(SEEDS, SEEDS)))


def _versioned(spark: SparkSession) -> MemoryFlow:
    return MemoryFlow(spark, Shape(("BIGINT",), ("users",), versioned=True).flow())


def test_a_change_without_its_version_is_a_dead_letter(spark: SparkSession) -> None:
    made = _versioned(spark).feed(
        "users", {"k0": 1, "v": 1, "at": None}, {"k0": 1, "$deleted": True}
    )
    assert [letter["code"] for letter in made["dead-letters"]] == ["MISSING_FIELD"] * 2


def test_a_timestamp_may_be_the_version(spark: SparkSession) -> None:
    shape = Shape(("BIGINT",), ("users",), versioned=True, version_type="TIMESTAMP")
    flow = MemoryFlow(spark, shape.flow())
    flow.feed(
        "users",
        {"k0": 1, "v": 2, "at": "2026-01-02T00:00:00Z"},
        {"k0": 1, "v": 1, "at": "2026-01-01T23:59:59.999999Z"},
    )
    assert flow.feed("events", {"n": 1, "users_k0": 1})["matched"] == [{"n": 1, "users_v": 2}]


def test_one_table_may_serve_two_operators(spark: SparkSession) -> None:
    flow = Flow("twice")
    people = flow.table("people", "id BIGINT NOT NULL, name STRING", key="id")
    sent = flow.stream("mail", "sender BIGINT, receiver BIGINT")
    first = sent.enrich("with-sender", people, on="sender", into="s")
    second = first.matched.enrich("with-receiver", people, on="receiver", into="r")
    second.matched.select("s.name AS a", "r.name AS b").to("named")
    memory = MemoryFlow(spark, flow)
    memory.feed("people", {"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"})
    made = memory.feed(
        "mail",
        {"sender": 1, "receiver": 2},
        {"sender": 9, "receiver": 2},
        {"sender": 1, "receiver": 9},
    )
    assert made["named"] == [{"a": "Ann", "b": "Bob"}]
    assert made["with-sender.missing"] == [None]
    assert made["with-receiver.missing"] == [None]


def test_keys_of_different_integer_types_meet(spark: SparkSession) -> None:
    flow = Flow("widths")
    table = flow.table("users", "id TINYINT NOT NULL, name STRING", key="id")
    flow.stream("events", "u BIGINT").enrich("e", table, on="u", into="user").matched.to("out")
    memory = MemoryFlow(spark, flow)
    memory.feed("users", {"id": -5, "name": "a"})
    assert memory.feed("events", {"u": -5})["out"] == [{"u": -5, "user": {"id": -5, "name": "a"}}]


def _one(spark: SparkSession, key_type: str, in_table: Any, in_event: Any) -> list[Any]:
    flow = Flow("kinds")
    table = flow.table("users", f"id {key_type} NOT NULL", key="id")
    flow.stream("events", f"u {key_type}").enrich("e", table, on="u", into="user").matched.to("o")
    memory = MemoryFlow(spark, flow)
    memory.feed("users", {"id": in_table})
    return memory.feed("events", {"u": in_event})["o"]


def test_every_kind_of_key_finds_its_row(spark: SparkSession) -> None:
    assert _one(spark, "BOOLEAN", True, True)
    assert not _one(spark, "BOOLEAN", True, False)
    assert _one(spark, "DATE", "2026-11-15", "2026-11-15")
    assert _one(spark, "TIMESTAMP", "2026-11-15T10:00:00Z", "2026-11-15T12:00:00+02:00")
    assert _one(spark, "DECIMAL(10,2)", 1.5, "1.50")
    assert not _one(spark, "DECIMAL(10,2)", 1.5, 1.51)
