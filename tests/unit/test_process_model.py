"""Keyed processes against plain Python, and the same input in different calls."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from process_model import Command, Model, Op, Runtime, small_pages

NAMES = (
    *("set", "unset", "append", "append", "extend", "relist", "put", "put", "fill", "delete"),
    *("drain", "clear", "fail", "after", "at", "cancel"),
    *("read", "sizes", "tail", "lists", "find", "maps"),
)
ops = st.builds(Op, st.sampled_from(NAMES), st.integers(0, 12))
commands = st.builds(Command, st.sampled_from("ab"), st.lists(ops, max_size=6))
steps = st.one_of(
    st.lists(commands, max_size=6),
    st.integers(1, 60),
    st.integers(START := 1_000, START + 100).map(lambda ms: ("watermark", ms)),
)


def _run(machine: Model | Runtime, plan: list[Any]) -> None:
    for step in plan:
        if isinstance(step, int):
            if isinstance(machine, Model):
                machine.clock.now += step
            else:
                machine.now += step
            machine.batch([])
        elif isinstance(step, tuple):
            machine.watermark(step[1])
        else:
            machine.batch(step)


def _readings() -> list[Any]:
    names = ["sizes", "read", "lists", "maps", "tail"]
    return [[Command(key, [Op(name, 4) for name in names]) for key in "ab"]]


@given(plan=st.lists(steps, max_size=12), size=st.integers(1, 5))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(plan=[[Command("a", [Op("fill", 12)])], [Command("a", [Op("drain", 12)])]], size=1)
@example(
    plan=[
        [Command("a", [Op("put", 1), Op("set", 1), Op("append", 7)])],
        [
            Command("a", [Op("put", 1), Op("put", 2), Op("delete", 1), Op("sizes"), Op("fail")]),
            Command("a", [Op("sizes"), Op("clear"), Op("set", 2), Op("relist", 9), Op("fail")]),
            Command("a", [Op("sizes"), Op("after", 2), Op("fail")]),
            Command("a", [Op("maps"), Op("lists"), Op("read")]),
        ],
    ],
    size=5,
)
@example(
    plan=[
        [Command("a", [Op("fill", 9), Op("extend", 8)])],
        30,
        [Command("a", [Op("put", 3), Op("append", 3)])],
        25,
        [Command("a", [Op("sizes")])],
        [Command("a", [Op("append", 4), Op("put", 3), Op("sizes"), Op("maps")])],
        5,
        [Command("a", [Op("sizes"), Op("lists"), Op("tail", 3)])],
    ],
    size=2,
)
@example(
    plan=[
        [Command("a", [Op("append"), Op("put", 1)])],
        30,
        [Command("a", [Op("append", 2), Op("put", 2)])],
        35,
        [Command("b", [Op("append", 2)])],
        18,
        [Command("a", [Op("sizes"), Op("append", 3), Op("sizes"), Op("lists"), Op("maps")])],
    ],
    size=2,
)
def test_a_process_is_like_plain_python_in_calls_of_any_size(plan: list[Any], size: int) -> None:
    watermarks = sorted(step[1] for step in plan if isinstance(step, tuple))
    left = iter(watermarks)
    plan = [("watermark", next(left)) if isinstance(step, tuple) else step for step in plan]
    plan += _readings()
    model = Model()
    _run(model, plan)
    with small_pages():
        single, many = Runtime(1), Runtime(size)
        _run(single, plan)
        _run(many, plan)
        assert many.rows == model.rows
        assert single.rows == model.rows
        assert (single.failures, many.failures) == (model.failures, model.failures)
        for runtime in (single, many):
            _check_pages(runtime)


def _check_pages(runtime: Runtime) -> None:
    """Every stored page belongs to a record, and every page that must be there is."""
    state = runtime.kernel.state
    wanted, allowed = set(), set()
    for text, record in state.records.items():
        assert any(column is not None for column in record)
        for var, column in enumerate((record[2], record[3])):
            if column is not None:
                wanted |= {(text, var, n) for n in range(column[0], column[1])}
        for var, column in enumerate((record[4], record[5])):
            if column is not None:
                allowed |= {(text, 2 + var, n) for n in range(column[1])}
    assert wanted <= state.pages.keys() <= wanted | allowed


def test_state_that_expired_is_removed() -> None:
    with small_pages():
        runtime = Runtime(10)
        fill = [Op("fill", 12), Op("extend", 10), Op("set", 1)]
        runtime.batch([Command("a", [*fill, Op("clear", 3)])])
        runtime.batch([Command("b", [*fill, Op("unset")])])
        assert len(runtime.kernel.state.pages) > 10
        runtime.now += 200
        runtime.batch([])
        for record in runtime.kernel.state.records.values():
            assert record[0] is record[2] is record[4] is record[6] is None
        assert {var for _, var, _ in runtime.kernel.state.pages} <= {1, 3}
        assert not any(runtime.kernel.state.entries.values())
