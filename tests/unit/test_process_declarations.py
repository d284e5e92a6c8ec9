"""What a class of a keyed process declares, and which declarations are refused."""

# ruff: noqa: ARG002 - contexts that are not needed

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from headgate import Context, HeadgateError, KeyedProcess, ListOf, MapOf, Timer, Value
from headgate.functions.declared import StateKind, describe_process
from headgate.functions.stored import ProcessCallback, describe, load, store, stored_states
from headgate.testing import Harness

T = TypeVar("T")


@dataclass
class Order:
    id: int


@dataclass
class Alert:
    text: str


class Base(KeyedProcess[T, Alert], Generic[T]):
    first: Value[T]
    limit: float

    def on_event(self, event: T, ctx: Context[Alert]) -> None:
        self.first.set(event)


class Fraud(Base[Order]):
    names: ClassVar[list[str]] = []
    recent: ListOf[Order | None] = ListOf(ttl="1h")
    seen: MapOf[datetime, dict[str, int]] = MapOf(ttl=timedelta(minutes=1))

    def on_timer(self, timer: Timer, ctx: Context[Alert]) -> None: ...


def test_states_are_those_of_the_class_and_its_bases() -> None:
    found = describe_process(Fraud())
    assert [(state.name, state.kind) for state in found.states] == [
        ("first", StateKind.VALUE),
        ("recent", StateKind.LIST),
        ("seen", StateKind.MAP),
    ]
    first, recent, seen = found.states
    assert (first.value, first.ttl) == (Order, None)
    assert (recent.value_type.nullable, recent.ttl) == (True, timedelta(hours=1))
    assert (seen.key, seen.value, seen.ttl) == (datetime, dict[str, int], timedelta(minutes=1))
    assert (found.event, found.result, found.has_timers, found.has_ttl) == (
        Order,
        Alert,
        True,
        True,
    )


def test_a_process_without_types_takes_rows() -> None:
    class Plain(KeyedProcess):  # type: ignore[type-arg]
        def on_event(self, event: Any, ctx: Any) -> None: ...

    found = describe_process(Plain)
    assert (found.states, found.event, found.result) == ((), Any, Any)
    assert (found.has_timers, found.has_ttl) == (False, False)


def made(annotations: dict[str, Any], **names: Any) -> type:
    def on_event(self: Any, event: Any, ctx: Any) -> None: ...

    body = {"__annotations__": annotations, "on_event": on_event, "__module__": __name__, **names}
    return type("Odd", (KeyedProcess,), body)


async def later(self: Any, event: Any, ctx: Any) -> None: ...


def yielding(self: Any, event: Any, ctx: Any) -> Any:
    yield event


@pytest.mark.parametrize(
    ("process", "message"),
    [
        (int, "it needs a KeyedProcess, got int"),
        (made({}, on_event=KeyedProcess.on_event), "has no on_event"),
        (made({}, on_event=later), "has an async on_event"),
        (made({}, on_event=yielding), "has an on_event with yield"),
        (made({}, on_event=lambda _: None), "has on_event(_), which is called in another"),
        (made({"x": "Value[Missing]"}), "annotations that cannot be read"),
        (made({"x": Value}), "declares state 'x' as Value, without a type of its own"),
        (made({"x": Value[int] | None}), "without a type of its own"),
        (made({"x": Value[set[int]]}), "set[int] is not the type of a column"),
        (made({"x": Value[int | str]}), "int | str is a union"),
        (made({"x": MapOf[float, int]}), "float cannot be a key"),
        (made({"x": MapOf[int, dict[int, int]]}), "a dict whose keys are not str"),
        (made({"key": Value[int]}), "the reserved name 'key'"),
        (made({"cleanup": Value[int]}), "the reserved name 'cleanup'"),
        (made({"_x": Value[int]}), "the reserved name '_x'"),
        (made({"open": Value[int]}), "sets it to"),
        (made({"a": Value[int], "A": Value[int]}), "'A' and 'a', which differ by case only"),
        (made({"x": Value[int]}, x=ListOf()), "and sets it to"),
        (made({}, x=ListOf()), "has 'x' without an annotation"),
    ],
)
def test_bad_declarations_are_refused(process: type, message: str) -> None:
    with pytest.raises(HeadgateError) as error:
        describe_process(process, what="cannot add process 'odd'")
    assert message in str(error.value)
    assert error.value.code == "BAD_FUNCTION"
    assert error.value.hint


def test_a_time_to_live_must_be_positive() -> None:
    with pytest.raises(HeadgateError, match="its ttl must be 1ms or more"):
        Value(ttl="0s")


def test_state_is_not_assigned() -> None:
    class Assigned(KeyedProcess[dict[str, int], Alert]):
        last: Value[int]
        other = 0

        def on_event(self, event: dict[str, int], ctx: Context[Alert]) -> None:
            self.other = 1
            self.last = event["id"]  # type: ignore[assignment]

    class Early(Assigned):
        def __init__(self) -> None:
            self.last = 5  # type: ignore[assignment]

    with pytest.raises(AttributeError, match=r"use self\.last\.set"):
        Harness(Assigned()).send({"id": 1}, key=1)
    with pytest.raises(HeadgateError, match="sets state 'last' in __init__"):
        describe_process(Early())


@pytest.mark.parametrize(
    "options", [{}, {"frozen": True}, {"slots": True}, {"frozen": True, "slots": True}], ids=str
)
def test_a_dataclass_may_be_a_process(options: dict[str, bool]) -> None:
    class Sums(KeyedProcess[dict[str, int], Alert]):
        step: int
        total: Value[int] = Value()
        items: ListOf[int] = ListOf(ttl="1h")

        def on_event(self, event: dict[str, int], ctx: Context[Alert]) -> None:
            self.total.set(self.total.get(0) + self.step)
            self.items.append(self.total.get(0))
            ctx.emit(Alert(f"{self.total.get()} {list(self.items)}"))

    made: Any = dataclass(**options)(Sums)  # type: ignore[call-overload]
    harness = Harness(made(3), key="id")
    harness.send({"id": 1})
    assert harness.send({"id": 1}) == [Alert("6 [3, 6]")]
    assert [state.ttl for state in describe_process(made(3)).states] == [None, timedelta(hours=1)]


def test_a_stored_process_is_read_back() -> None:
    process = Fraud()
    process.limit = 5.0
    states = stored_states(describe_process(process).states)
    callback = ProcessCallback(process, states=states)
    what = "cannot store it"
    stored = store(callback, describe(process, what=what), what=what)
    assert stored.name.endswith(":Fraud")
    read = load(base64.b64decode(stored.code))
    assert isinstance(read, ProcessCallback)
    assert [state.name for state in read.states] == ["first", "recent", "seen"]
    assert read.states[1].ttl == 3_600_000
    assert read.function.limit == 5.0  # type: ignore[attr-defined]
