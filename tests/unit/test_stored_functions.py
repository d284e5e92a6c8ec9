"""Functions of a flow as values: declared, stored, and called with rows of Arrow."""

from __future__ import annotations

import base64
import functools
import inspect
import itertools
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from headgate import Flow, HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Call
from headgate.functions.calling.calls import FunctionFailed, Results, get_call, twice
from headgate.functions.code_text import read_code
from headgate.functions.stored import Callback, RowType, load


@dataclass
class Order:
    id: int
    price: float


@dataclass
class Total:
    id: int
    total: float


ROWS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("price", pa.float64())])
TOTALS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("total", pa.float64())])


def batch(*rows: tuple[Any, ...], schema: pa.Schema = ROWS) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema
    )


def call(
    kind: str,
    function: Any,
    rows: pa.RecordBatch,
    *,
    row: RowType | None = None,
    returned: pa.Schema | None = TOTALS,
    dead_letters: bool = False,
) -> Results:
    ready = get_call(
        kind,
        Callback(function, row or RowType()),
        name="map 'f'",
        given=rows.schema,
        returned=returned,
        dead_letters=dead_letters,
    )
    return ready(rows)


def streams(function: Any, **options: Any) -> Flow:
    flow = Flow("functions")
    flow.stream("in", Order).map("f", function, **options).to("out")
    return flow


def stored(flow: Flow) -> Callback:
    node = flow.graph().node("f")
    assert isinstance(node, Call)
    callback = load(base64.b64decode(node.function.code))
    assert isinstance(callback, Callback)
    return callback


_counted = itertools.count(1)


def total(order: Order) -> Total:
    return Total(order.id, order.price * 2)


# What a function is called with, and what it may return.


def test_a_function_gets_the_dataclass_of_its_annotation() -> None:
    made = call("MAP", total, batch((1, 2.0), (2, 3.5)), row=RowType(Order))
    assert made.batch is not None
    assert made.batch.to_pylist() == [{"id": 1, "total": 4.0}, {"id": 2, "total": 7.0}]
    assert made.origins is None


@pytest.mark.parametrize(
    ("function", "row"),
    [
        (lambda row: {"id": row.id, "total": row["price"]}, None),
        (lambda row: {"id": row["id"], "total": row["price"]}, RowType(dict)),
        (lambda row: Total(row.id, row.price), None),
    ],
)
def test_rows_have_columns_as_attributes_or_are_dicts(function: Any, row: RowType | None) -> None:
    made = call("MAP", function, batch((1, 2.0)), row=row)
    assert made.batch is not None
    assert made.batch.to_pylist() == [{"id": 1, "total": 2.0}]


def test_names_that_python_cannot_spell_are_items() -> None:
    schema = pa.schema([("my column", pa.int64()), ("class", pa.int64()), ("_x", pa.int64())])

    def swap(row: Any) -> dict[str, int]:
        return {"my column": row["class"], "class": row["my column"], "_x": row["_x"]}

    made = call("MAP", swap, batch((1, 2, 3), schema=schema), returned=schema)
    assert made.batch is not None
    assert made.batch.to_pylist() == [{"my column": 2, "class": 1, "_x": 3}]
    same = call("MAP", lambda row: row, batch((1, 2, 3), schema=schema), returned=schema)
    assert same.batch is not None
    assert same.batch.to_pylist() == [{"my column": 1, "class": 2, "_x": 3}]


@dataclass
class Part:
    name: str
    size: int | None = None


@dataclass
class Deep:
    part: Part | None
    parts: list[Part]
    by_name: dict[str, Part]
    at: datetime
    day: date
    cost: Decimal
    raw: bytes


DEEP = Deep(
    Part("a", None),
    [Part("b", 1), Part("c", 2)],
    {"x": Part("d", 3), "y": Part("e", None)},
    datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    date(2026, 1, 2),
    Decimal("1.500000000000000000"),
    b"\x00\xff",
)
PART = pa.struct([pa.field("name", pa.string(), nullable=False), ("size", pa.int64())])
DEEP_SCHEMA = pa.schema(
    [
        ("part", PART),
        ("parts", pa.list_(PART)),
        ("by_name", pa.map_(pa.string(), PART)),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("cost", pa.decimal128(38, 18)),
        ("raw", pa.binary()),
    ]
)


def test_nested_values_of_every_type_come_back_as_they_were() -> None:
    flow = Flow("deep")

    def same(deep: Deep) -> Deep:
        assert isinstance(deep.parts, list)
        assert all(isinstance(part, Part) for part in deep.parts)
        assert all(isinstance(part, Part) for part in deep.by_name.values())
        return deep

    flow.stream("in", Deep).map("f", same).to("out")
    callback = stored(flow)
    none = Deep(None, [], {}, DEEP.at, DEEP.day, DEEP.cost, b"")
    rows = call("MAP", lambda row: row, _deep_batch(DEEP, none, DEEP), returned=DEEP_SCHEMA)
    made = call("MAP", callback.function, _deep_batch(DEEP, none, DEEP),
                row=callback.argument, returned=DEEP_SCHEMA)  # fmt: skip
    assert made.batch is not None
    assert rows.batch is not None
    assert made.batch.equals(rows.batch)
    assert made.batch.to_pylist()[0]["parts"] == [
        {"name": "b", "size": 1},
        {"name": "c", "size": 2},
    ]


def _deep_batch(*rows: Deep) -> pa.RecordBatch:
    made = call(
        "MAP", lambda row: rows[row.i], batch(*((i,) for i in range(len(rows))),
        schema=pa.schema([("i", pa.int64())])), returned=DEEP_SCHEMA,
    )  # fmt: skip
    assert made.batch is not None
    return made.batch


def test_flat_map_says_which_row_each_result_comes_from() -> None:
    def copies(row: Any) -> Iterator[Total]:
        for n in range(row.id):
            yield Total(row.id, n)

    made = call("FLAT_MAP", copies, batch((2, 0.0), (0, 0.0), (1, 0.0)))
    assert made.batch is not None
    assert list(made.origins or ()) == [0, 0, 2]
    assert [row["total"] for row in made.batch.to_pylist()] == [0.0, 1.0, 0.0]


def test_filter_returns_rows_and_no_values() -> None:
    made = call(
        "FILTER", lambda row: row.id % 2, batch((1, 0.0), (2, 0.0), (3, 0.0)), returned=None
    )
    assert (made.rows, list(made.origins or ()), made.batch) == (2, [0, 2], None)


# What goes wrong.


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "must be a dataclass, a dict or a row, got NoneType"),
        ({"id": 1}, "the result has no 'total'"),
        ({"id": None, "total": 1.0}, "'id' must not be None"),
        ({"id": "one", "total": 1.0}, "'id' must be int64"),
        ({"id": 1.5, "total": 1.0}, "'id' must be int64"),
        ({"id": 2**63, "total": 1.0}, "'id' must be int64"),
        ({"id": True, "total": 1.0}, "'id' must be int64, got bool"),
        ({"id": 1, "total": "1"}, "'total' must be double"),
        (Order(1, 2.0), "the result has no 'total'"),
    ],
)
def test_a_wrong_result_is_named(result: Any, message: str) -> None:
    with pytest.raises(FunctionFailed) as failed:
        call("MAP", lambda _: result, batch((1, 2.0)))
    assert failed.value.code == "FUNCTION_BAD_RESULT"
    assert message in str(failed.value)


def test_a_failing_row_is_named_with_the_place_that_raised() -> None:
    with pytest.raises(FunctionFailed) as failed:
        call("MAP", lambda row: 1 / (row.id - 2), batch((1, 2.0), (2, 3.0)))
    text = str(failed.value)
    assert failed.value.code == "FUNCTION_FAILED"
    assert "Row(id=2, price=3.0)" in text
    assert "ZeroDivisionError: division by zero (test_stored_functions.py:" in text


def test_rows_that_fail_or_give_wrong_results_are_returned_as_errors() -> None:
    def fail(row: Any) -> Any:
        if row.id == 2:
            raise ValueError(f"no {row.id}")
        return {"id": row.id if row.id != 3 else "three", "total": 0.0}

    rows = batch(*((n, 0.0) for n in range(1, 6)))
    made = call("MAP", fail, rows, dead_letters=True)
    assert made.batch is not None
    assert [row["id"] for row in made.batch.to_pylist()] == [1, 4, 5]
    assert list(made.origins or ()) == [0, 3, 4]
    assert [error.row for error in made.errors] == [1, 2]
    assert made.errors[0].text.startswith("ValueError: no 2 (test_stored_functions.py:")
    assert "'id' must be int64" in made.errors[1].text


def test_the_text_of_a_failure_is_the_same_in_every_process() -> None:
    def fail(_: Any) -> None:
        raise ValueError(object())

    made = call("MAP", fail, batch((1, 0.0)), dead_letters=True)
    assert made.errors[0].text.startswith("ValueError: <object object> (test_stored_functions")


def test_a_generator_that_fails_half_way_gives_none_of_its_rows() -> None:
    def fail(row: Any) -> Iterator[Total]:
        yield Total(row.id, 0.0)
        raise ValueError("later")

    made = call("FLAT_MAP", fail, batch((1, 0.0)), dead_letters=True)
    assert made.rows == 0
    assert [error.row for error in made.errors] == [0]


class Unshowable(Exception):  # noqa: N818 - an exception of a user
    def __str__(self) -> str:
        raise ValueError("no words")


def test_an_exception_that_cannot_be_shown_is_named_by_its_class() -> None:
    def fail(_: Any) -> None:
        raise Unshowable

    with pytest.raises(FunctionFailed, match="Unshowable"):
        call("MAP", fail, batch((1, 2.0)))


def test_a_table_without_origin_must_have_as_many_rows() -> None:
    made = call(
        "MAP_BATCHES", lambda table: table.slice(1), batch((1, 2.0), (2, 3.0)), returned=ROWS
    )
    assert list(made.origins or ()) == [1]
    with pytest.raises(FunctionFailed, match="was given 2 rows and returned 1 without"):
        call(
            "MAP_BATCHES",
            lambda table: table.select(["id", "price"]).slice(1),
            batch((1, 2.0), (2, 3.0)),
            returned=ROWS,
        )


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda table: table.to_pylist(), "must return a pyarrow.Table, got list"),
        (lambda table: table.drop_columns(["price"]), "without the column 'price'"),
        (
            lambda table: table.set_column(0, "id", pa.array(["x"])),
            "returned 'id' as string instead of int64",
        ),
        (lambda table: table.set_column(0, "id", pa.array([None], pa.int64())), "a null in 'id'"),
    ],
)
def test_a_wrong_table_is_named(function: Any, message: str) -> None:
    with pytest.raises(FunctionFailed, match="map 'f'") as failed:
        call("MAP_BATCHES", function, batch((1, 2.0)), returned=ROWS)
    assert message in str(failed.value)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("at", 5, "'at' must be timestamp[us, tz=UTC], got int"),
        ("day", datetime(2026, 1, 1), "'day' must be date32[day], got datetime"),
        ("cost", Decimal("1e-19"), "'cost' must be decimal128(38, 18)"),
        ("cost", 1.5, "'cost' must be decimal128(38, 18)"),
        ("raw", "text", "'raw' must be binary, got str"),
        ("parts", "ab", "'parts' must be a list, got str"),
        ("parts", [Part("a", cast("Any", 1.5))], "'parts.size' must be int64, got float"),
        ("parts", [None, {"name": None, "size": 1}], "'parts.name' must not be None"),
        ("by_name", [("a", 1)], "'by_name' must be a dict, got list"),
        ("by_name", {1: None}, "'by_name' must be string, got int"),
        ("part", {"size": 1}, "the result has no 'name'"),
        ("part", Part("\ud800"), "'part.name' must be string"),
    ],
)
def test_nothing_is_changed_to_fit(field: str, value: Any, message: str) -> None:
    good = {each.name: getattr(DEEP, each.name) for each in fields(Deep)}
    with pytest.raises(FunctionFailed) as failed:
        call("MAP", lambda _: {**good, field: value}, batch((1, 2.0)), returned=DEEP_SCHEMA)
    assert message in str(failed.value)


@pytest.mark.parametrize(
    ("kind", "function", "differs"),
    [
        ("MAP", lambda row: {"id": row.id, "total": float("nan")}, False),
        ("MAP", lambda row: {"id": row.id, "total": random.random()}, True),
        ("FLAT_MAP", lambda row: [Total(row.id, 0.0)] * next(_counted), True),
        ("FILTER", lambda _: next(_counted) % 2, True),
        ("FILTER", lambda row: row.id > 1, False),
    ],
)
def test_a_function_that_differs_when_it_is_called_again_is_found(
    kind: str, function: Any, differs: bool
) -> None:
    ready = get_call(
        kind,
        Callback(function),
        name="map 'f'",
        given=ROWS,
        returned=None if kind == "FILTER" else TOTALS,
        dead_letters=False,
    )
    checked = twice(ready, "map 'f'")
    if not differs:
        assert checked(batch((1, 2.0), (2, 3.0))).rows == ready(batch((1, 2.0), (2, 3.0))).rows
        return
    with pytest.raises(FunctionFailed, match="gave other results") as failed:
        checked(batch((1, 2.0)))
    assert failed.value.code == "FUNCTION_NOT_DETERMINISTIC"


# What is stored.


def test_the_graph_with_its_function_survives_json() -> None:
    graph = streams(total).graph()
    again = Graph.from_json(graph.to_json())
    assert again == graph
    node = again.node("f")
    assert isinstance(node, Call)
    assert node.function.name.endswith("test_stored_functions:total")
    callback = load(base64.b64decode(node.function.code))
    assert isinstance(callback, Callback)
    assert callback.function(Order(1, 2.0)) == Total(1, 4.0)


def test_a_changed_function_is_another_one() -> None:
    assert streams(total).graph() == streams(total).graph()
    changed = streams(lambda row: Total(row.id, row.price * 3), schema=Total).graph()
    assert streams(total).graph() != changed


MODULE = """
from dataclasses import dataclass
import beside

@dataclass
class Row:
    id: int

LIMIT = 3

def clean(row: Row) -> Row:
    return Row(beside.add(row.id) + LIMIT)
"""
READ = """
import base64, sys
from headgate.functions.stored import load
made = load(base64.b64decode(sys.stdin.read()))
print(made.function(made.argument.make(4)).id)
"""


def test_the_users_files_are_stored_by_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "beside.py").write_text("def add(n):\n    return n + 10\n")
    (tmp_path / "own_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    import own_module  # type: ignore[import-not-found]

    flow = Flow("stored")
    flow.stream("in", "id BIGINT NOT NULL").map("f", own_module.clean).to("out")
    node = flow.graph().node("f")
    assert isinstance(node, Call)
    for name in ("own_module", "beside"):
        sys.modules.pop(name)
    ran = subprocess.run(
        [sys.executable, "-c", READ], input=node.function.code, capture_output=True, text=True,
        cwd="/", check=True,
    )  # fmt: skip
    assert ran.stdout == "17\n"


def test_what_cannot_be_stored_is_refused_by_name() -> None:
    lock = threading.Lock()

    def locked(order: Order) -> Order:
        with lock:
            return order

    with pytest.raises(HeadgateError) as refused:
        streams(locked).graph()
    assert refused.value.code == "FUNCTION_NOT_STORED"
    assert "cannot add map 'f' to flow 'functions'" in refused.value.message


def test_a_function_with_too_large_values_is_refused() -> None:
    data = bytes(__import__("random").Random(1).randbytes(5 * 1024 * 1024))
    with pytest.raises(HeadgateError) as refused:
        streams(lambda row: Total(row.id, len(data)), schema=Total).graph()
    assert refused.value.code == "FUNCTION_NOT_STORED"
    assert "the limit is 4194304" in refused.value.message


# What is refused when a flow is declared.


def two(a: Any, b: Any) -> Any: ...


async def asynchronous(order: Order) -> Order:
    return order


@pytest.mark.parametrize(
    ("declare", "code", "message"),
    [
        (lambda s: s.map("f", "name"), "BAD_FUNCTION", "it needs a function, got 'name'"),
        (lambda s: s.map("f", asynchronous), "BAD_FUNCTION", "is async"),
        (lambda s: s.map(total, total), "BAD_FUNCTION", "its first argument is its uid"),
        (lambda s: s.map("f", lambda row: row), "BAD_FUNCTION", "results are not known"),
        (lambda s: s.map("f", lambda: 1, schema="a INT"), "BAD_FUNCTION", "must take one argument"),
        (lambda s: s.map("f", two, schema="a INT"), "BAD_FUNCTION", "one argument"),
        (lambda s: s.map("f", needs_missing), "UNKNOWN_COLUMN", "the rows have no such column"),
        (lambda s: s.map("f", needs_text), "BAD_FUNCTION", "and the column is BIGINT"),
        (lambda s: s.map("f", total, on_error="skip"), "BAD_FUNCTION", "on_error"),
        (lambda s: s.map("no uid", total), "BAD_NAME", "no uid"),
        (lambda s: s.filter("price > 1"), "BAD_FUNCTION", "it needs a function"),
    ],
)
def test_a_function_that_does_not_fit_is_refused(declare: Any, code: str, message: str) -> None:
    stream = Flow("functions").stream("in", Order)
    with pytest.raises(HeadgateError) as refused:
        declare(stream)
    assert refused.value.code == code
    assert message in refused.value.message
    assert refused.value.hint


@dataclass
class Missing:
    id: int
    prize: float


@dataclass
class Text:
    id: str


@dataclass
class Defaulted:
    id: int
    note: str = "none"
    tags: list[str] = field(default_factory=list)


def needs_missing(row: Missing) -> Total:
    return Total(row.id, row.prize)


def needs_text(row: Text) -> Total:
    return Total(int(row.id), 0.0)


def needs_default(row: Defaulted) -> Defaulted:
    return row


def test_fields_with_a_default_need_no_column() -> None:
    flow = streams(needs_default)
    node = flow.graph().node("f")
    assert isinstance(node, Call)
    assert node.columns == ("id",)


class Adder:
    def __init__(self, by: float) -> None:
        self.by = by

    def __call__(self, order: Order) -> Total:
        return Total(order.id, order.price + self.by)


def test_objects_and_partial_functions_are_functions() -> None:
    def add(order: Order, by: float) -> Total:
        return Total(order.id, order.price + by)

    for function in (Adder(2.0), functools.partial(add, by=2.0)):
        assert stored(streams(function)).function(Order(1, 1.0)) == Total(1, 3.0)


def test_three_functions_may_multiply_rows_behind_each_other() -> None:
    def twice(row: Order) -> list[Order]:
        return [row, row]

    stream = Flow("many").stream("in", Order)
    for n in range(3):
        stream = stream.flat_map(f"f{n}", twice)
    with pytest.raises(HeadgateError, match="fourth flat_map"):
        stream.flat_map("f4", twice)


def test_source_is_read_although_another_thread_parses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11.7 fails if two threads parse at the same time."""
    source, failures = inspect.getsource, [SystemError("AST constructor recursion depth mismatch")]

    def getsource(code: Any) -> str:
        if failures:
            raise failures.pop()
        return source(code)

    monkeypatch.setattr(inspect, "getsource", getsource)
    assert read_code(read_code) == source(read_code)
