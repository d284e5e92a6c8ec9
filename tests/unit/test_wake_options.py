"""The options of the source that wakes process operators, and its name in a checkpoint."""

from __future__ import annotations

from typing import Any

from headgate import Flow
from headgate.engine.plan.clocks import is_drained, read_times
from headgate.engine.plan.flow_plan import source_name
from headgate.engine.plan.wakes import WAKES, wake_options
from headgate.jobs.checkpoints.keeper import by_source

POSITION = '{"format":1,"n":4,"at":1}'


def operator(address: int, *, kind: str = "process", timers: bool = True) -> dict[str, Any]:
    return {"kind": kind, "address": address, "timers": timers}


def test_only_process_operators_with_timers_are_woken() -> None:
    operators = [operator(1, kind="window"), operator(2), operator(3, timers=False), operator(4)]
    options = {"wake.addresses": "2,4", "wake.known": "true"}
    assert wake_options(operators, takes_over=False) == options
    assert wake_options(operators, takes_over=True) == {**options, "wake.known": "false"}


def test_a_flow_with_a_process_operator_has_wakes_even_without_timers() -> None:
    found = wake_options([operator(1, timers=False)], takes_over=False)
    assert found is not None
    assert found["wake.addresses"] == ""
    assert wake_options([{"kind": "window", "address": 1}], takes_over=True) is None


def test_no_source_has_the_name_of_the_wakes_and_they_are_no_clock() -> None:
    names = ("__wake", "wake", "_wake", "__", "__wake_")
    assert WAKES not in {source_name(name) for name in names}
    flow = Flow("f")
    flow.stream("visits", "at BIGINT", event_time="at").to("out")
    graph = flow.graph()
    assert by_source(graph, {WAKES: POSITION, "visits": "{}"}) == {"visits": "{}"}
    assert not is_drained({WAKES: POSITION})
    assert read_times({WAKES: POSITION}, graph.streams()) == {}
