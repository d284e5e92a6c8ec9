"""Windows and dedupe as a user writes them: what they make, and what is refused and how."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest

from headgate import Flow, Graph, HeadgateError, Stream, Windowed, windows
from headgate.engine.plan.flow_plan import FlowPlan
from headgate.engine.plan.plan import plan_flow
from headgate.flow import find_state_change
from headgate.flow.operators.aggregates import Aggregate
from headgate.flow.operators.nodes import Port, TimeUnit, Window, WithColumns
from headgate.flow.operators.windowing import Trigger, Windows
from headgate.flow.state.changes import warn_of_lost_state

VISIT = (
    "event_id STRING NOT NULL, visit_id STRING NOT NULL, event_time BIGINT NOT NULL, "
    "page STRING, price DOUBLE, n INT, cost DECIMAL(10,2), at TIMESTAMP, "
    "place STRUCT<city: STRING>, tags ARRAY<STRING>"
)


def visits(**more: Any) -> tuple[Flow, Stream]:
    flow = Flow("visits")
    time: dict[str, Any] = {"event_time": "event_time", "out_of_orderness": "5m", **more}
    return flow, flow.stream("visits", VISIT, **time)


def counted(
    *,
    uid: str = "w",
    cut: Windows | None = None,
    key: tuple[str, ...] = ("visit_id",),
    figures: dict[str, Aggregate] | None = None,
    **more: Any,
) -> Graph:
    flow, stream = visits()
    keyed = stream.key_by(*key).window(uid, cut or windows.tumbling("15m"), **more)
    keyed.aggregate(**(figures or {"visits": windows.count()})).updates.to("counts")
    return flow.graph()


def plan(graph: Graph) -> FlowPlan:
    return plan_flow(graph, history={}, max_record=1000)


def refused(code: str, act: Callable[[], object]) -> HeadgateError:
    with pytest.raises(HeadgateError) as caught:
        act()
    assert caught.value.code == code
    assert caught.value.hint
    return caught.value


def test_rows_of_a_window_have_its_key_its_bounds_and_its_figures() -> None:
    graph = counted(
        key=("visit_id", "place.city"),
        figures={"visits": windows.count(), "pages": windows.collect("page", 3)},
    )
    ddl = graph.schema_of(Port("w", "updates")).to_ddl()
    assert ddl == (
        "visit_id STRING NOT NULL, city STRING NOT NULL, window_start TIMESTAMP NOT NULL, "
        "window_end TIMESTAMP NOT NULL, visits BIGINT NOT NULL, pages ARRAY<STRING> NOT NULL, "
        "partial BOOLEAN NOT NULL, correction BOOLEAN NOT NULL, processed_at TIMESTAMP NOT NULL"
    )
    assert graph.schema_of(Port("w", "late")) == graph.schema_of(Port("visits", "out"))


@pytest.mark.parametrize(
    ("figure", "type_"),
    [
        (windows.count("page"), "BIGINT"),
        (windows.sum("n"), "BIGINT"),
        (windows.sum("price"), "DOUBLE"),
        (windows.sum("cost"), "DECIMAL(20,2)"),
        (windows.avg("n"), "DOUBLE"),
        (windows.min("page"), "STRING"),
        (windows.max("at"), "TIMESTAMP"),
        (windows.first("cost"), "DECIMAL(10,2)"),
        (windows.last("place.city"), "STRING"),
        (windows.count_distinct("page"), "BIGINT"),
        (windows.approx_count_distinct("event_id"), "BIGINT"),
        (windows.collect("n", 5), "ARRAY<INT>"),
        (windows.collect("place", 5), "ARRAY<STRUCT<"),
    ],
)
def test_a_figure_has_the_type_that_its_column_gives_it(figure: Aggregate, type_: str) -> None:
    graph = counted(figures={"x": figure})
    assert f"x {type_}" in graph.schema_of(Port("w", "updates")).to_ddl()


@pytest.mark.parametrize(
    "figure", [windows.sum("page"), windows.avg("at"), windows.min("tags"), windows.sum("place")]
)
def test_a_figure_of_a_type_that_does_not_fit_is_refused(figure: Aggregate) -> None:
    error = refused("BAD_AGGREGATE", lambda: counted(figures={"x": figure}))
    assert str(figure.column) in error.message


def test_expressions_as_key_and_argument_are_computed_before_the_window() -> None:
    graph = counted(
        key=("n % 10", "lower(page) AS page_name", "visit_id"),
        figures={
            "total": windows.sum("price * 2"),
            "mean": windows.avg("price * 2"),
            "pages": windows.count("page"),
        },
    )
    before = graph.node("visits.with-columns-1")
    assert isinstance(before, WithColumns)
    assert [(column.name, column.expression) for column in before.columns] == [
        ("n_10", "n % 10"),
        ("page_name", "lower(page)"),
        ("price_2", "price * 2"),
    ]
    window = graph.node("w")
    assert isinstance(window, Window)
    assert window.input == Port(before.id, "out")
    assert window.key == ("n_10", "page_name", "visit_id")
    columns = [named.aggregate.column for named in window.aggregates]
    assert columns == ["price_2", "price_2", "page"]
    assert graph.schema_of(Port("w", "updates")).names[:3] == window.key
    assert Flow.from_json(graph.to_json()).graph() == graph


def test_plain_columns_need_no_column_before_the_window() -> None:
    graph = counted(key=("visit_id", "place.city"), figures={"x": windows.sum("price")})
    assert [node.operator for node in graph.nodes] == ["source", "window", "output"]


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("n + 1", "n_1"),
        ("2 * n", "_2_n"),
        ("partial % 2", "partial_2"),
        ("(n)", "n_2"),
        ("(partial)", "partial_2"),
        ("(visits)", "visits_2"),
        ("+".join("n" * 30), "_".join("n" * 20)),
        ("n % 10 AS `odd name`", "odd name"),
    ],
)
def test_a_computed_column_gets_a_name_that_is_free(expression: str, name: str) -> None:
    graph = counted(key=(expression,))
    assert graph.schema_of(Port("w", "updates")).names[0] == name


def test_a_refused_window_leaves_no_computed_column_behind() -> None:
    flow, stream = visits()
    window = stream.key_by("n % 10").window("w", windows.tumbling("1m"))
    nodes = dict(flow._builder.nodes)
    refused("UNKNOWN_COLUMN", lambda: window.aggregate(x=windows.sum("nobody")))
    assert flow._builder.nodes == nodes
    window.aggregate(x=windows.count()).updates.to("counts")
    assert flow.graph()


def test_a_window_needs_event_time() -> None:
    flow = Flow("visits")
    stream = flow.stream("visits", VISIT)
    window = stream.key_by("visit_id").window("w", windows.tumbling("1m"))
    error = refused("EVENT_TIME_MISSING", lambda: window.aggregate(n=windows.count()))
    assert "stream 'visits'" in error.message


def test_a_dedupe_needs_event_time() -> None:
    stream = Flow("visits").stream("visits", VISIT)
    refused("EVENT_TIME_MISSING", lambda: stream.dedupe("d", by="event_id", within="1h"))


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (lambda: windows.tumbling("0s"), "BAD_WINDOW"),
        (lambda: windows.sliding("5m", every="15m"), "BAD_WINDOW"),
        (lambda: windows.session(gap="0s"), "BAD_WINDOW"),
        (lambda: windows.every_events(0), "BAD_WINDOW"),
        (lambda: windows.every_event_time("0s"), "BAD_WINDOW"),
        (lambda: windows.collect("page", 0), "BAD_AGGREGATE"),
        (lambda: windows.tumbling(timedelta(microseconds=1500)), "BAD_WINDOW"),
        (lambda: counted(early="2m"), "BAD_WINDOW"),
        (lambda: counted(early=["2m"]), "BAD_WINDOW"),
        (lambda: counted(cut=cast("Windows", "15m")), "BAD_WINDOW"),
        (lambda: counted(figures={"x": cast("Aggregate", max("price"))}), "BAD_AGGREGATE"),
        (lambda: visits()[1].key_by(cast("str", ["page"])), "KEY_MISMATCH"),
        (lambda: counted(key=("nobody",)), "UNKNOWN_COLUMN"),
        (lambda: counted(key=("tags",)), "KEY_TYPE"),
        (lambda: counted(key=("",)), "UNKNOWN_COLUMN"),
        (lambda: counted(key=("lower(page) AS page",)), "DUPLICATE_COLUMN"),
        (lambda: counted(key=("n + 1 AS x", "n + 2 AS x")), "DUPLICATE_COLUMN"),
        (lambda: counted(figures={"x": windows.sum("nobody")}), "UNKNOWN_COLUMN"),
        (lambda: counted(figures={"partial": windows.count()}), "DUPLICATE_COLUMN"),
        (lambda: counted(figures={"visit_id": windows.count()}), "DUPLICATE_COLUMN"),
        (lambda: counted(allowed_lateness=timedelta(seconds=-1)), "BAD_DURATION"),
        (lambda: visits()[1].key_by(), "KEY_MISMATCH"),
        (lambda: visits()[1].dedupe("d", by=(), within="1h"), "KEY_MISMATCH"),
        (lambda: visits(idle_after="0s"), "BAD_DURATION"),
        (lambda: visits(event_time_unit="m"), "BAD_EVENT_TIME"),
        (lambda: visits(event_time="price"), "BAD_EVENT_TIME"),
    ],
)
def test_what_cannot_be_is_refused_with_a_next_step(act: Callable[[], object], code: str) -> None:
    refused(code, act)


def test_nothing_to_find_out_is_refused() -> None:
    window = visits()[1].window("w", windows.tumbling("1m"))
    refused("BAD_AGGREGATE", window.aggregate)


def test_event_time_may_be_text_or_seconds_with_a_fraction() -> None:
    for column, unit in (("page", "ms"), ("at", "ms"), ("price", "s"), ("n", "s")):
        flow, stream = visits(event_time=column, event_time_unit=unit)
        stream.to("out")
        assert flow.graph().streams()[0].event_time_unit is TimeUnit(unit)


def test_a_graph_with_windows_round_trips_through_json() -> None:
    flow, stream = visits(idle_after=None, event_time="n", event_time_unit="s")
    unique = stream.dedupe("once", by=["event_id", "visit_id"], within="1h").unique
    early: list[Trigger] = [
        windows.every_events(4),
        windows.every_event_time("2m"),
        windows.every_processing_time("10s"),
    ]
    for uid, cut in (
        ("t", windows.tumbling("15m")),
        ("s", windows.sliding("15m", every="5m")),
        ("g", windows.session(gap="1500ms")),
    ):
        windowed = unique.window(uid, cut, allowed_lateness="1m", early=early)
        figures = windowed.aggregate(n=windows.count(), p=windows.collect("page", 9))
        figures.updates.select("string(n) AS line").to(f"out-{uid}", format="text")
    graph = flow.graph()
    assert Graph.from_json(graph.to_json()) == graph
    assert Flow.from_json(graph.to_json()).graph() == graph


def test_a_graph_of_an_older_release_is_that_of_the_same_flow_today() -> None:
    today = counted()
    graph = json.loads(today.to_json())
    source = graph["nodes"][0]
    del source["idle_after"], source["event_time_unit"]
    del graph["nodes"][-1]["format"]
    assert Graph.from_json(json.dumps(graph)) == today


def test_the_flow_says_what_its_windows_are() -> None:
    flow, stream = visits()
    late = stream.key_by("visit_id").window(
        "w", windows.tumbling("15m"), allowed_lateness="1m", early=windows.every_event_time("2m")
    )
    late.aggregate(visits=windows.count()).updates.to("counts")
    text = flow.explain()
    assert "[key_by visit_id]→ w: window tumbling 15m: count() AS visits, 1m of lateness" in text
    assert "early every 2m of event time" in text
    assert "late: counted, not written" in text


def test_text_needs_one_column_and_that_a_string() -> None:
    _, stream = visits()
    refused("BAD_OUTPUT", lambda: stream.to("out", format="text"))
    refused("BAD_OUTPUT", lambda: stream.select("n").to("out", format="text"))
    refused("BAD_FORMAT", lambda: stream.to("out", format="xml"))
    stream.select("page").to("out", format="text")


def test_only_flows_that_ask_for_time_have_a_watermark() -> None:
    flow, stream = visits()
    stream.to("copies")
    assert plan(flow.graph()).timed == ()
    made = plan(counted())
    assert [each.id for each in made.timed] == ["visits"]
    source = made.spec["sources"][0]
    assert (source["timed"], source["outOfOrderness"], source["idleAfter"]) == (
        True,
        300_000,
        30_000,
    )


def test_the_spec_of_a_window_holds_what_the_kernel_needs() -> None:
    early = (windows.every_events(4), windows.every_processing_time("10s"))
    made = plan(counted(early=early, cut=windows.sliding("15m", every="5m")))
    (spec,) = made.spec["operators"]
    assert json.loads(json.dumps(spec)) == spec
    assert spec["key"] == [{"name": "visit_id", "path": ["visit_id"]}]
    assert spec["windows"] == {"type": "sliding", "size": 900_000, "every": 300_000}
    assert spec["early"] == [
        {"type": "events", "n": 4},
        {"type": "processing-time", "every": 10_000},
    ]
    assert made.spec["sources"][0]["route"][0]["on"] == [["visit_id"]]
    assert made.nudge == timedelta(seconds=10)


def test_a_window_without_a_key_takes_all_rows_together() -> None:
    flow, stream = visits()
    figures: Windowed = stream.window("all", windows.session(gap="30m")).aggregate(
        n=windows.count()
    )
    figures.updates.to("out")
    made = plan(flow.graph())
    assert made.spec["sources"][0]["route"][0]["on"] == []
    assert made.spec["operators"][0]["key"] == []


@pytest.mark.parametrize(
    "other",
    [
        counted(cut=windows.tumbling("10m")),
        counted(cut=windows.sliding("15m", every="15m")),
        counted(key=("page",)),
        counted(figures={"visits": windows.count("page")}),
        counted(figures={"visits": windows.sum("price")}),
        counted(figures={"visits": windows.count(), "more": windows.count()}),
    ],
)
def test_state_of_other_windows_is_told_apart(other: Graph) -> None:
    found = find_state_change(counted(), other, "w")
    assert found is not None
    assert "tumbling 15m" in found


def test_state_of_figures_over_a_column_of_another_type_is_told_apart() -> None:
    def of(type_: str) -> Graph:
        flow = Flow("visits")
        events = flow.stream("visits", f"at BIGINT, price {type_}", event_time="at")
        figures = events.window("w", windows.tumbling("1m")).aggregate(x=windows.sum("price"))
        figures.updates.to("out")
        return flow.graph()

    assert find_state_change(of("INT"), of("INT"), "w") is None
    assert find_state_change(counted(key=("page",)), counted(key=("n",)), "w") is not None
    assert "BIGINT" in str(find_state_change(of("INT"), of("BIGINT"), "w"))


def test_windows_and_dedupe_that_start_empty_are_told_with_what_they_lose() -> None:
    (warning,) = warn_of_lost_state(counted(), counted(uid="v"), dropped=["w"], empty=["v"])
    assert "the state of 'w' is dropped, which holds tumbling 15m windows by visit_id" in warning
    assert "open windows lose the events that they have counted; if 'w' was renamed" in warning
    flow, stream = visits()
    stream.dedupe("d", by="event_id", within="1h").unique.to("out")
    (warning,) = warn_of_lost_state(counted(), flow.graph(), dropped=["w"], empty=["d"])
    assert warning == (
        "operator 'd' starts empty, and the state of 'w' is dropped: records that came before can "
        "pass once more"
    )
    assert list(warn_of_lost_state(counted(), flow.graph(), dropped=[], empty=["d"])) == []


def test_early_results_and_lateness_may_change_between_runs() -> None:
    other = counted(allowed_lateness="1m", early=windows.every_events(2))
    assert find_state_change(counted(), other, "w") is None


def test_one_trigger_or_several_may_be_given() -> None:
    one, none = counted(early=windows.every_events(2)).node("w"), counted().node("w")
    assert isinstance(one, Window)
    assert isinstance(none, Window)
    assert (len(one.early), len(none.early)) == (1, 0)
