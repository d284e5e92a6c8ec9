"""A keyed process in a flow: declared, checked, shown, planned, and compared with older state."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from headgate import Flow, Graph, HeadgateError
from headgate.engine.plan.plan import plan_flow
from headgate.engine.portable.process_form import ProcessForm
from headgate.flow.operators.nodes import Process
from headgate.flow.state.changes import find_state_change, warn_of_lost_state
from headgate.flow.state.processes import state_schema
from headgate.flow.streams.outputs import Processed
from headgate.functions.keyed import Context, KeyedProcess, ListOf, MapOf, Timer, Value
from headgate.functions.stored import ProcessCallback, load
from headgate.jobs.dead_letters.letter import DeadLetter
from headgate.jobs.dead_letters.way_back import find_way_back, topics_of_operators
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import (
    continue_run,
    extend_history,
    find_run,
    forget_processes,
    new_run,
    write_run,
)
from headgate.jobs.views.graph import build_view

NOW = datetime(2026, 11, 15, 12, 30, 1, tzinfo=UTC)
ORDERS = "id BIGINT, user STRING, price DOUBLE, at BIGINT, pair STRUCT<user: STRING>"


@dataclass
class Order:
    id: int
    price: float


@dataclass
class WithNote(Order):
    note: str | None = None
    size: int = 1


@dataclass
class WithSize(Order):
    size: int


@dataclass
class Alert:
    id: int
    text: str


@dataclass
class Slow:
    user: str


class Fraud(KeyedProcess[Order, Alert]):
    last: Value[float]
    recent: ListOf[Order] = ListOf(ttl="1h")
    seen: MapOf[str, int]

    def __init__(self, limit: float = 10.0) -> None:
        self.limit = limit

    def on_event(self, order: Order, ctx: Context[Alert]) -> None:
        ctx.emit(Alert(order.id, "high"))


class Timed(Fraud):
    def on_timer(self, timer: Timer, ctx: Context[Alert]) -> None:
        pass


class Unnamed(KeyedProcess[Any, Any]):
    def on_event(self, order: Any, ctx: Context[Any]) -> None:
        pass


class OfNumbers(KeyedProcess[int, Alert]):
    def on_event(self, order: int, ctx: Context[Alert]) -> None:
        pass


@dataclass
class Elsewhere:
    shop: str


class OfShops(KeyedProcess[Elsewhere, Alert]):
    def on_event(self, row: Elsewhere, ctx: Context[Alert]) -> None:
        pass


def keeping(**states: Any) -> KeyedProcess[Any, Any]:
    """Return a process with these states."""
    body = {"on_event": Fraud.on_event, "__annotations__": states}
    return cast("KeyedProcess[Any, Any]", type("Keeping", (KeyedProcess,), body)())


def add(flow: Flow, function: Any, *key: str, **options: Any) -> Processed:
    keyed = flow.stream("orders", ORDERS).key_by(*(key or ("user",)))
    return keyed.process("fraud", function, **options)


def graph(function: Any, *key: str, **options: Any) -> Graph:
    flow = Flow("shop")
    options.setdefault("schema", Alert)
    add(flow, function, *key, **options).out.to("alerts")
    return flow.graph()


def process(of: Graph) -> Process:
    node = of.node("fraud")
    assert isinstance(node, Process)
    return node


def spec(of: Graph) -> dict[str, Any]:
    return plan_flow(of, history={}, max_record=1).spec


class OnlyTimers(KeyedProcess[Order, Alert]):
    def on_event(self, order: Order, ctx: Context[Alert]) -> None:
        pass

    def on_timer(self, timer: Timer, ctx: Context[Alert]) -> None:
        pass


# How it is declared.


def test_a_process_has_the_columns_state_and_timers_of_its_class() -> None:
    node = process(graph(Timed()))
    assert node.key == ("user",)
    assert node.columns == ("id", "price")
    assert node.timers
    assert [(state.name, state.kind.value) for state in node.state] == [
        ("last", "value"),
        ("recent", "list"),
        ("seen", "map"),
    ]
    assert [state.ttl for state in node.state] == [None, timedelta(hours=1), None]
    assert not process(graph(Fraud())).timers
    assert process(graph(Unnamed())).columns is None


def test_a_side_output_is_declared_once_and_has_the_rows_of_out_by_default() -> None:
    flow = Flow("shop")
    made = add(flow, Fraud())
    made.out.to("alerts")
    assert made.side("late").port == made.side("late").port
    assert made.side("late").schema == made.out.schema
    assert made.side("slow", Slow).schema.names == ("user",)
    assert made.side("slow").schema.names == ("user",)
    with pytest.raises(HeadgateError, match="declared with other columns"):
        made.side("slow", Alert)
    made.side("slow").to("slow-ones")
    node = process(flow.graph())
    assert node.outputs == ("out", "late", "slow")
    assert [str(port) for port in flow.graph().unused_outputs()] == ["fraud.late"]


def test_a_process_may_write_to_side_outputs_only() -> None:
    flow = Flow("shop")
    made = add(flow, Fraud())
    late = made.side("late")
    with pytest.raises(
        HeadgateError, match="output 'out' of process 'fraud' is not used"
    ) as caught:
        flow.graph()
    assert caught.value.code == "OUTPUT_NOWHERE"
    late.to("late-ones")
    graph = flow.graph()
    assert Graph.from_json(graph.to_json()) == graph
    assert [str(port) for port in graph.unused_outputs()] == ["fraud"]
    assert "└─: counted, not written" in flow.explain() or "├─: counted" in flow.explain()
    view = build_view("shop", graph, {"ports": {"fraud": 7, "fraud.late": 2}})
    unused = next(node for node in view.nodes if node.operator == "count")
    assert (unused.id, unused.facts.records_in) == ("fraud.out", 7)
    assert len({node.id for node in view.nodes}) == len(view.nodes)


@pytest.mark.parametrize("name", ["out", "a.b", "", "ä"])
def test_a_side_output_needs_a_name_of_its_own(name: str) -> None:
    made = add(Flow("shop"), Fraud())
    with pytest.raises(HeadgateError) as caught:
        made.side(name)
    assert caught.value.code == "BAD_NAME"
    assert made.side("other").port.output == "other"


def test_a_key_may_be_an_expression_which_is_computed_first() -> None:
    node = process(graph(Fraud(), "id % 10", "pair.user"))
    assert node.key == ("id_10", "pair.user")
    assert node.input.node == "orders.with-columns-1"


def test_a_process_is_stored_with_its_object_and_its_state() -> None:
    node = process(graph(Fraud(7.0)))
    callback = load(base64.b64decode(node.function.code))
    assert isinstance(callback, ProcessCallback)
    assert callback.function.limit == 7.0  # type: ignore[attr-defined]
    assert callback.argument.make is not None
    assert [state.name for state in callback.states] == ["last", "recent", "seen"]


@pytest.mark.parametrize(
    ("act", "code", "message", "hint"),
    [
        (lambda s: s.key_by("user").process("f", Fraud), "BAD_FUNCTION", "class Fraud", "Fraud()"),
        (lambda s: s.key_by("user").process("f", print), "BAD_FUNCTION", "a function", ".map('f'"),
        (lambda s: s.key_by("user").process("f", 3), "BAD_FUNCTION", "got 3", "KeyedProcess"),
        (lambda s: s.key_by("user").process(Fraud(), "f"), "BAD_FUNCTION", "uid", "'fraud'"),
        (lambda s: s.key_by("user").process("f", Unnamed()), "BAD_FUNCTION", "not known", "schema"),
        (lambda s: s.key_by("user").process("f", OfNumbers()), "BAD_FUNCTION", "int", "dataclass"),
        (lambda s: s.key_by("user").process("f", OfShops()), "UNKNOWN_COLUMN", "'shop'", ""),
        (lambda s: s.key_by("pair").process("f", Fraud()), "KEY_TYPE", "'pair'", "string"),
        (lambda s: s.key_by("usr").process("f", Fraud()), "UNKNOWN_COLUMN", "'usr'", "'user'"),
        (lambda s: s.key_by("user", "pair.user").process("f", Fraud()), "DUPLICATE_COLUMN", "", ""),
        (lambda s: s.key_by().process("f", Fraud()), "KEY_MISMATCH", "one column", "key_by('shop'"),
        (lambda s: s.process("f", Fraud()), "NO_SUCH_METHOD", "'process'", ".key_by("),
        (
            lambda s: s.key_by("user").process("f", Fraud(), on_error="skip"),
            "BAD_FUNCTION",
            "on_error",
            "",
        ),
    ],
)
def test_a_slip_is_refused_with_what_to_write(
    act: Callable[[Any], Any], code: str, message: str, hint: str
) -> None:
    flow = Flow("shop")
    stream = flow.stream("orders", ORDERS)
    with pytest.raises(HeadgateError) as caught:
        act(stream)
    assert caught.value.code == code
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert set(flow._builder.nodes) == {"orders"}


def test_a_process_is_the_same_in_the_json_of_a_flow() -> None:
    flow = Flow("shop")
    made = add(flow, Timed(), "id % 10", on_error="dead-letter")
    made.out.to("alerts")
    made.side("slow", Slow).to("slow-ones")
    before = flow.graph()
    again = Graph.from_json(before.to_json())
    assert again == before
    assert Flow.from_graph(again).graph() == before
    assert process(again).function.code == process(before).function.code


def test_a_process_is_shown_with_its_state_and_timers() -> None:
    flow = Flow("shop")
    made = add(flow, Timed())
    made.out.to("alerts")
    made.side("slow")
    text = flow.explain()
    assert "[key_by user]→ fraud: process by " in text
    assert "last (value of DOUBLE)" in text
    assert "for 1h), seen (map of STRING to BIGINT), timers" in text
    assert "slow: counted, not written" in text


# How it is planned.


def test_a_plan_has_the_process_as_the_kernel_needs_it() -> None:
    flow = Flow("shop")
    made = add(flow, Timed(), "pair.user", on_error="dead-letter")
    made.out.to("alerts")
    made.side("slow", Slow)
    plan = spec(flow.graph())
    (operator,) = plan["operators"]
    assert plan["wakes"] is True
    assert operator["key"] == [{"name": "user", "path": ["pair", "user"]}]
    assert (operator["timers"], operator["ttl"], operator["deadLetters"]) == (True, True, True)
    assert [output["port"] for output in operator["outputs"]] == ["out", "slow"]
    assert operator["outputs"][1]["route"] == [{"step": "count", "address": 2}]
    (step,) = plan["sources"][0]["route"]
    assert (step["step"], step["buckets"], step["on"]) == ("operator", 128, [["pair", "user"]])
    assert spec(graph(Fraud()))["wakes"] is False


def test_event_time_of_streams_reaches_a_process() -> None:
    flow = Flow("shop")
    stream = flow.stream("orders", ORDERS, event_time="at")
    stream.key_by("user").process("fraud", Fraud()).out.to("alerts")
    timed = plan_flow(flow.graph(), history={}, max_record=1).timed
    assert [node.id for node in timed] == ["orders"]
    view = build_view("shop", flow.graph(), {"watermark": "2026"})
    assert next(node for node in view.nodes if node.id == "fraud").facts.watermark == "2026"


def test_a_process_of_another_python_is_refused() -> None:
    of = graph(Fraud())
    stale = replace(process(of).function, python="2.7")
    nodes = tuple(
        replace(node, function=stale) if isinstance(node, Process) else node for node in of.nodes
    )
    with pytest.raises(HeadgateError) as caught:
        spec(replace(of, nodes=nodes))
    assert caught.value.code == "FUNCTION_OTHER_PYTHON"


def test_the_schema_of_state_has_a_record_and_the_pages_of_lists_and_maps() -> None:
    ddl = state_schema(process(graph(Fraud()))).to_ddl()
    assert ddl == (
        "record STRUCT<last: STRUCT<value: DOUBLE, expires: BIGINT>, "
        "recent: STRUCT<first: BIGINT, next: BIGINT, size: BIGINT, oldest: BIGINT>, "
        "seen: STRUCT<size: BIGINT, pages: BIGINT, oldest: BIGINT>, cleanup: BIGINT>, "
        "pages STRUCT<recent: STRUCT<items: ARRAY<STRUCT<id: BIGINT, price: DOUBLE>>, "
        "expires: ARRAY<BIGINT>>, seen: STRUCT<keys: ARRAY<STRING>, values: ARRAY<BIGINT>, "
        "expires: ARRAY<BIGINT>>>"
    )


def test_a_process_without_state_has_a_schema_that_is_read_back() -> None:
    schema = state_schema(process(graph(Unnamed())))
    assert schema.to_ddl() == "record STRUCT<cleanup: BIGINT>, pages STRUCT<>"
    assert type(schema).from_json(json.loads(json.dumps(schema.to_json()))) == schema


# What its state may become.


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ({"a": Value[int]}, {"a": Value[int], "b": MapOf[str, int]}, None),
        ({"a": Value[int], "b": ListOf[int]}, {"b": ListOf[int], "a": Value[int]}, None),
        ({"a": Value[Order]}, {"a": Value[WithNote]}, None),
        ({"a": MapOf[str, Order]}, {"a": MapOf[str, WithNote]}, None),
        ({"a": Value[list[Order]]}, {"a": Value[list[WithNote]]}, None),
        ({"a": Value[int]}, {"a": Value[int | None]}, None),
        ({"a": Value[Order]}, {"a": Value[WithSize]}, "a.size was added without a default"),
        ({"a": Value[WithSize]}, {"a": Value[Order]}, "a.size was removed (BIGINT)"),
        ({"a": Value[int]}, {"a": Value[str]}, "a changed its type from BIGINT to STRING"),
        ({"a": Value[int]}, {"a": ListOf[int]}, "a changed from a value to a list"),
        ({"a": Value[int | None]}, {"a": Value[int]}, "a must not be null now"),
        ({"a": Value[int], "b": Value[int]}, {"a": Value[int]}, "b was removed (value of BIGINT)"),
        (
            {"a": MapOf[str, int]},
            {"a": MapOf[int, int]},
            "the keys of a changed their type from STRING to BIGINT",
        ),
        (
            {"a": ListOf[list[int]]},
            {"a": ListOf[list[float]]},
            "a[] changed its type from BIGINT to DOUBLE",
        ),
    ],
)
def test_state_that_cannot_be_read_is_a_change(
    old: dict[str, Any], new: dict[str, Any], problem: str | None
) -> None:
    change = find_state_change(graph(keeping(**old)), graph(keeping(**new)), "fraud")
    assert change == (problem and f"cannot read its state any more: {problem}")


def test_another_key_and_removed_timers_are_changes() -> None:
    assert find_state_change(graph(Fraud(), "id"), graph(Fraud(), "user"), "fraud") == (
        "holds state by id (integer), and the flow needs state by user (string)"
    )
    assert find_state_change(graph(Fraud()), graph(Timed()), "fraud") is None
    assert "on_timer was removed" in (
        find_state_change(graph(Timed()), graph(Fraud()), "fraud") or ""
    )


def test_lost_state_of_a_process_is_told() -> None:
    of = graph(Fraud())
    (line,) = warn_of_lost_state(of, of, dropped=["fraud"], empty=["fraud"])
    assert line.endswith("every key starts without its state and its timers")


def test_a_run_has_every_schema_of_the_state_of_a_process(tmp_path: Path) -> None:
    home = JobFolder(tmp_path, "shop")
    old, new = graph(keeping(a=Value[int])), graph(keeping(a=Value[int], b=Value[str]))
    run = new_run(home, old, parallelism=1, checkpoints=None, now=NOW)
    write_run(home, run)
    assert find_run(home, run.lineage) == run
    assert run.history == {"fraud": (state_schema(process(old)),)}
    assert continue_run(run, old, job="shop").history == run.history
    longer = continue_run(run, new, job="shop")
    schemas = (state_schema(process(old)), state_schema(process(new)))
    assert longer.history == {"fraud": schemas}
    planned = plan_flow(new, history=longer.history, max_record=1).spec["operators"][0]
    assert len(planned["history"]) == 2


def test_a_restart_refuses_state_that_cannot_be_read(tmp_path: Path) -> None:
    old = graph(keeping(a=Value[int]))
    run = new_run(JobFolder(tmp_path, "shop"), old, parallelism=1, checkpoints=None, now=NOW)
    with pytest.raises(HeadgateError) as caught:
        continue_run(run, graph(keeping(a=Value[str])), job="shop")
    assert caught.value.code == "STATE_INCOMPATIBLE"
    assert "operator 'fraud' cannot read its state any more: a changed" in caught.value.message
    assert "--drop-state fraud" in caught.value.hint


def test_a_process_whose_state_is_dropped_begins_with_its_present_schema() -> None:
    old, new = graph(keeping(a=Value[int])), graph(keeping(a=Value[str]))
    history = extend_history({}, old)
    assert extend_history(forget_processes(history, old, ()), new) == extend_history({}, new)
    assert forget_processes(history, old, ("fraud",)) == history


# Dead letters.


def letter(source: str, topic: str) -> DeadLetter:
    return DeadLetter(
        id="1",
        job="shop",
        source=source,
        of_row=True,
        topic=topic,
        partition=0,
        offset=0,
        reason="FUNCTION_FAILED",
        detail="",
        at=None,
        record_at=None,
        size=0,
    )


def test_an_event_of_a_process_goes_back_and_a_timer_does_not() -> None:
    flow = Flow("shop")
    out = add(flow, Timed()).out
    out.where("id / 0 > 1").to("alerts")
    of = flow.graph()
    event, timer = letter("process 'fraud'", "orders"), letter("process 'fraud'", "")
    assert find_way_back(of, event).topic is not None
    assert find_way_back(of, timer).why_not == "a timer failed, which has no record"
    behind = find_way_back(of, letter("where 'fraud.where-1'", "orders"))
    assert "process 'fraud' has seen its record" in behind.why_not
    assert topics_of_operators(of) == {"stream 'orders'": "orders"}


def test_the_portable_form_of_a_process_needs_neither_states_nor_expiries() -> None:
    nothing: dict[str, Any] = {"type": "struct", "fields": []}
    for function, has_states in [(keeping(last=Value[int]), True), (OnlyTimers(), False)]:
        node = process(graph(function))
        form = ProcessForm.of(node, [state_schema(node)])
        assert form.expires is None
        assert (form.row is not None) is has_states
        spec = form.spec()
        assert spec["expires"] == nothing
        assert (spec["row"] != nothing) is has_states
