"""What the console's pages are made of, as far as no browser is needed to see it."""

from __future__ import annotations

import asyncio
import itertools
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import HeadgateError
from headgate.jobs.service import (
    Exceptions,
    GraphEdge,
    GraphNode,
    GraphView,
    JobFailure,
    JobView,
    Loss,
    NodeFacts,
    Samples,
)
from headgate.server.access import Access, Role, Token, let_in
from headgate.server.console import charts, graph_layout
from headgate.server.console.charts import RANGES, THEMES, axis_of, chart_options, last_value
from headgate.server.console.formats import (
    NONE,
    format_age,
    format_bytes,
    format_duration,
    format_moment,
    format_ms,
    format_rate,
    format_short,
)
from headgate.server.console.glance import Glances
from headgate.server.console.graph import draw_graph, node_facts, node_rows
from headgate.server.console.graph_layout import BOX_WIDTH, lay_out
from headgate.server.console.history_panel import describe_facts, failures_markup
from headgate.server.console.job_actions import actions_for, describe_loss
from headgate.server.console.job_page import job_head, side_panel
from headgate.server.console.jobs_page import (
    count_states,
    filter_jobs,
    format_lag,
    job_row,
    sort_jobs,
)
from headgate.server.console.login import login_page
from headgate.server.console.logs_panel import cut_line, read_lines, show_lines
from headgate.server.console.markup import Html, act, element, join
from headgate.server.console.parts import error_box
from headgate.server.console.settings_panel import setting_rows
from headgate.server.console.sparkline import sparkline
from headgate.server.console.theme import tone_of
from headgate.server.console.waiting import ask_slowly
from headgate.server.context import ServerContext, use_context
from headgate.server.settings import ServerSettings

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


def _job(name: str = "orders", state: str = "RUNNING", **facts: Any) -> JobView:
    alive = state not in ("FAILED", "DEAD", "STOPPED", "CANCELED", "FINISHED", "UNREADABLE")
    known = {"is_alive": alive, "status": {}, **facts}
    return JobView(name=name, state=state, **known)


# Markup.


@given(st.text())
def test_text_never_becomes_markup(text: str) -> None:
    made = element("p", text, title=text)
    inner = made.removesuffix("</p>").partition(">")[2]
    assert not set(inner) & set("<>\"'")
    assert made.count("<") == 2
    assert made.count(">") == 2


def test_markup_inside_markup_is_left_as_it_is() -> None:
    assert element("p", element("b", "1 < 2"), " and") == "<p><b>1 &lt; 2</b> and</p>"
    assert join("<", None, Html("<br/>")) == "&lt;<br/>"


def test_attributes_that_are_off_are_left_out() -> None:
    made = element("input", type="text", required=True, hidden=False, title=None, data_act="x")
    assert made == '<input type="text" required data-act="x"/>'


def test_a_button_tells_its_action_and_value() -> None:
    assert act("Pin", "pin", 'a"b').startswith(
        '<button type="button" data-act="pin" data-value="a&'
    )


# Numbers.


@pytest.mark.parametrize(
    ("count", "says"),
    [
        (None, NONE), (0, "0"), (7, "7"), (12.34, "12.3"), (950, "950"), (999.6, "1.00k"),
        (1_234, "1.23k"), (12_345, "12.3k"), (123_456, "123k"), (999_950, "1.00M"),
        (4_560_000, "4.56M"), (7_000_000_000, "7.00G"),
    ],
)  # fmt: skip
def test_a_count_is_short(count: float | None, says: str) -> None:
    assert format_short(count) == says


@given(st.floats(min_value=0, max_value=9e11))
def test_a_short_count_has_at_most_six_characters(count: float) -> None:
    assert len(format_short(count)) <= 6


def test_durations_have_two_units_at_most() -> None:
    assert format_duration(timedelta(days=3, hours=4, minutes=5)) == "3d 4h"
    assert format_duration(timedelta(hours=2)) == "2h"
    assert format_duration(125) == "2m 5s"
    assert format_duration(timedelta(0)) == "0s"
    assert format_duration(None) == NONE


def test_ages_sizes_and_times_are_written_for_people() -> None:
    assert format_age(NOW - timedelta(minutes=3), NOW) == "3m ago"
    assert format_age(NOW + timedelta(minutes=3), NOW) == "0s ago"
    assert format_bytes(1536) == "1.5 KiB"
    assert format_ms(12.4) == "12 ms"
    assert format_ms(3_400) == "3.4 s"
    assert format_ms(125_000) == "2m 5s"
    assert format_rate(None) == NONE
    assert format_moment("2026-11-16T13:00:01.5+01:00") == "2026-11-16 12:00:01"


# Jobs.


def test_jobs_in_trouble_come_first() -> None:
    states = ("STOPPED", "RUNNING", "PAUSED", "DEAD", "STARTING", "RESTARTING", "FAILED")
    jobs = [_job(f"job-{n}", state) for n, state in enumerate(states)]
    found = [each.state for each in sort_jobs(jobs)]
    assert set(found[:2]) == {"DEAD", "FAILED"}
    assert found[2:] == ["RESTARTING", "PAUSED", "STARTING", "RUNNING", "STOPPED"]


def test_a_filter_finds_words_in_name_state_and_reason() -> None:
    jobs = [_job("orders"), _job("visits", "FAILED", reason="Topic visits is gone")]
    assert filter_jobs(jobs, "TOPIC fail", "") == [jobs[1]]
    assert filter_jobs(jobs, "", "RUNNING") == [jobs[0]]
    assert filter_jobs(jobs, "orders", "FAILED") == []
    assert filter_jobs(jobs, "  ", "") == jobs


def test_states_are_counted_and_the_chosen_one_is_pressed() -> None:
    shown = count_states([_job("a"), _job("b"), _job("c", "FAILED")], "FAILED")
    assert re.search(r"FAILED</span><span>1</span>", shown)
    assert re.search(r"RUNNING</span><span>2</span>", shown)
    assert re.search(r'data-value="FAILED"[^>]*aria-pressed="true"', shown)
    assert shown.count('aria-pressed="true"') == 1


def test_a_failed_job_says_why_and_what_to_do() -> None:
    job = _job("orders", "FAILED", reason="<disk> is full", todo="headgate start orders")
    row = job_row(job, (1.0, 2.0), NOW)
    assert "&lt;disk&gt; is full" in row["job"]
    assert "<code>headgate start orders</code>" in row["job"]
    assert row["rate"] == NONE
    healthy = job_row(_job("orders", reason="it was started again"), (), NOW)
    assert "started again" not in healthy["job"]
    assert healthy["trend"] == ""


def test_lag_names_what_is_counted_and_how_old_it_is() -> None:
    assert format_lag(_job()) == NONE
    assert format_lag(_job(lag_bytes=0)) == "none"
    assert format_lag(_job(lag_records=1_500, lag=timedelta(seconds=90))) == (
        "1.50k records, 1m 30s old"
    )
    assert format_lag(_job(lag_records=3, lag_bytes=2048)) == "3 records + 2 KiB"


def test_every_state_has_a_tone_and_trouble_looks_like_it() -> None:
    assert tone_of("FAILED") == tone_of("DEAD") == "bad"
    assert tone_of("RUNNING") == "good"
    assert tone_of("something new") == "idle"


# Sparklines.


def test_a_sparkline_goes_from_left_to_right_and_has_its_floor_at_zero() -> None:
    shown = sparkline([0, 10, 5])
    xs, ys = zip(*re.findall(r"[ML]([\d.]+) ([\d.]+)", shown), strict=True)
    assert [float(x) for x in xs] == sorted(float(x) for x in xs)
    assert float(ys[0]) > float(ys[2]) > float(ys[1])
    assert "at most 10/s" in shown


def test_a_sparkline_has_gaps_where_nothing_is_known() -> None:
    assert sparkline([1, None, 2]).count("M") == 2
    assert sparkline([]) == ""
    assert sparkline([None, 3]) == ""
    assert "NaN" not in sparkline([0, 0, 0])


# The graph.

_names = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8, unique=True)


@given(_names, st.lists(st.tuples(st.sampled_from("abcdefghx"), st.sampled_from("abcdefghx"))))
def test_every_edge_goes_to_the_right_and_no_boxes_overlap(
    nodes: list[str], edges: list[tuple[str, str]]
) -> None:
    layout = lay_out(nodes, edges)
    assert set(layout.boxes) == set(nodes)
    assert len(layout.lines) == len(edges)
    for (source, target), points in zip(edges, layout.lines, strict=True):
        if points:
            assert points[0][0] == layout.boxes[source][0] + BOX_WIDTH
            assert points[-1][0] == layout.boxes[target][0]
            assert [x for x, _ in points] == sorted(x for x, _ in points)
    for (ax, ay), (bx, by) in itertools.combinations(layout.boxes.values(), 2):
        apart = abs(ax - bx) >= graph_layout.BOX_WIDTH or abs(ay - by) >= graph_layout.BOX_HEIGHT
        assert apart, "two boxes overlap"


def test_an_edge_that_closes_a_circle_is_the_only_one_without_a_line() -> None:
    layout = lay_out(["a", "b"], [("a", "b"), ("b", "a")])
    assert layout.lines[0]
    assert not layout.lines[1]


def test_a_line_that_passes_a_layer_runs_between_its_boxes() -> None:
    layout = lay_out(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")])
    left, top = layout.boxes["b"]
    passing = [y for x, y in layout.lines[2] if left <= x <= left + BOX_WIDTH]
    assert passing
    assert all(not top <= y <= top + graph_layout.BOX_HEIGHT for y in passing)


def test_a_table_stands_beside_what_it_is_joined_to() -> None:
    layout = lay_out(["s", "t", "one", "two"], [("s", "one"), ("one", "two"), ("t", "two")])
    assert layout.boxes["t"][0] == layout.boxes["one"][0]


def test_the_lowest_stand_below_their_layer() -> None:
    edges = [("a", "bad"), ("a", "b"), ("c", "bad"), ("c", "d")]
    layout = lay_out(["a", "c", "bad", "b", "d"], edges, lowest=["bad"])
    assert layout.boxes["bad"][1] > max(layout.boxes["b"][1], layout.boxes["d"][1])


def _view() -> GraphView:
    def node(name: str, kind: str, **facts: Any) -> GraphNode:
        return GraphNode(
            id=name, kind=kind, title=name, detail=f"does <{name}>", facts=NodeFacts(**facts),
            operator="enrich" if kind == "operator" else "",
        )  # fmt: skip

    return GraphView(
        "orders",
        (
            node("orders", "source", records_in=1_500, in_per_s=10.0, lag_records=3),
            node("with-user", "operator", records_in=1_500, state_rows=7, state_bytes=2048,
                 busy=0.95),
            node("enriched", "output", records_in=1_400),
        ),
        (
            GraphEdge(source="orders", target="with-user", label="", exchange="keyed by userId",
                      records=1_500, per_s=10.0),
            GraphEdge(source="with-user", target="enriched", label="matched", exchange="",
                      records=1_400, per_s=None),
        ),
    )  # fmt: skip


def test_the_drawing_names_nodes_exchanges_and_records() -> None:
    shown = draw_graph(_view(), "with-user")
    for words in (
        "by userId",
        "1.50k",
        "1.40k",
        "busy 95 %",
        "2 KiB",
    ):
        assert words in shown
    assert shown.count('role="button"') == 3
    assert shown.count('aria-pressed="true"') == 1
    assert 'class="hg-bar hg-bad"' in shown
    assert "<with-user>" not in shown


def test_a_job_without_a_graph_says_so() -> None:
    assert "got as far" in draw_graph(GraphView("orders", (), ()))
    assert node_rows(GraphView("orders", (), ())) == []


def test_the_side_panel_tells_all_of_a_node_and_links_to_its_state() -> None:
    view = _view()
    told = dict(node_facts(view, view.nodes[1]))
    assert told["From orders"] == "keyed by userId, 1,500 (10/s)"
    assert told["State"] == "7 rows, 2 KiB"
    assert "/jobs/orders/state?operator=with-user" in told["Its state"]
    assert "Watermark (UTC)" not in told
    assert (
        "/jobs/orders/outputs?output=enriched" in dict(node_facts(view, view.nodes[2]))["Its rows"]
    )
    assert side_panel(view, None) == ""
    assert side_panel(view, "gone") == ""


# Charts.


def _samples(count: int = 3, **series: Any) -> Samples:
    nothing = (None,) * count
    names = (
        "in_per_s", "out_per_s", "lag_records", "lag_bytes", "lag_s", "batch_ms", "latency_p50_ms",
        "latency_p95_ms", "latency_p99_ms", "state_rows", "state_bytes", "watermark",
    )  # fmt: skip
    known: dict[str, Any] = dict.fromkeys(names, nothing) | series
    return Samples(
        job="orders",
        every=timedelta(seconds=1),
        at=tuple(NOW + timedelta(seconds=n) for n in range(count)),
        inputs={},
        outputs={},
        phases={"processing": nothing, "committing": nothing},
        **known,
    )


def test_all_charts_share_one_time_axis() -> None:
    later = NOW + timedelta(minutes=1)
    begin, end = axis_of(_samples(), timedelta(minutes=15), later)
    assert end == round(later.timestamp() * 1000)
    assert end - begin == 15 * 60 * 1000
    assert axis_of(_samples(), None, later) == (
        round(NOW.timestamp() * 1000),
        round(NOW.timestamp() * 1000) + 2_000,
    )
    assert axis_of(_samples(0), None, later)[0] == round(later.timestamp() * 1000)


def test_lag_shows_what_is_known_on_two_axes_at_most() -> None:
    known = (1.0, 2.0, 3.0)
    of_bytes = charts.pick_lag(_samples(lag_bytes=known))
    assert [each.name for each in of_bytes] == ["bytes"]
    of_all = charts.pick_lag(_samples(lag_records=known, lag_bytes=known, lag_s=known))
    assert [each.name for each in of_all] == ["records", "age"]
    assert of_all[1].values == (1_000.0, 2_000.0, 3_000.0)
    assert [each.name for each in charts.pick_lag(_samples())] == ["records"]


def test_every_theme_draws_what_it_picks() -> None:
    for theme in THEMES:
        series = theme.pick(_samples())
        options = chart_options(theme, series)
        assert len(options["series"]) == len(series) > 0
        assert all(each["yAxisIndex"] < len(options["yAxis"]) for each in options["series"])
        assert all(("stack" in each) is theme.stacked for each in options["series"])


def test_the_ranges_end_with_all_there_is() -> None:
    spans = [span for _, _, span in RANGES]
    assert spans[-1] is None
    assert spans[:-1] == sorted(each for each in spans if each is not None)


def test_the_newest_known_value_stands_in_the_caption() -> None:
    assert last_value((1, 2, None)) == 2
    assert last_value((None,)) is None


# A job.


def _action_names(job: JobView) -> list[str]:
    return [each.name for each in actions_for(job)]


def test_what_can_be_asked_of_a_job_depends_on_its_state() -> None:
    assert _action_names(_job()) == [
        "savepoint", "pause", "restart", "stop", "stop-savepoint", "cancel",
    ]  # fmt: skip
    assert "resume" in _action_names(_job(state="PAUSED"))
    assert "pause" not in _action_names(_job(state="PAUSED"))
    assert "resume" in _action_names(_job(state="RESTARTING", status={"held": True}))
    assert _action_names(_job(state="STOPPING")) == ["cancel"]
    for state in ("STOPPED", "FAILED", "DEAD", "FINISHED", "CANCELED"):
        assert _action_names(_job(state=state)) == ["start", "savepoint"]
    assert _action_names(_job(state="UNREADABLE")) == []


def test_every_action_says_what_will_happen() -> None:
    for state in ("RUNNING", "PAUSED", "STOPPED"):
        for action in actions_for(_job(state=state)):
            assert action.says
            assert all(each.endswith(".") for each in action.says)
            assert action.dangerous is (action.name == "cancel")


def test_a_cancel_tells_what_it_takes_along() -> None:
    assert "stay" in describe_loss(Loss(_job(), False, (), 0))[0]
    assert "(2 KiB) are deleted" in describe_loss(Loss(_job(), True, (), 2048))[0]


def test_the_head_tells_why_a_job_waits_and_how_long() -> None:
    job = _job(
        state="RESTARTING", reason="QUERY_FAILED <no> disk", attempt=3,
        status={"restarts": 2, "restart_after_s": 10.0, "lineage": "run-1"},
    )  # fmt: skip
    shown = job_head(job, NOW)
    assert "&lt;no&gt; disk" in shown
    assert "started again after 10s" in shown
    assert "3, 2 restarts" in shown
    assert "started again" not in job_head(_job(), NOW)


def test_failures_show_the_root_cause_first() -> None:
    failure = JobFailure(
        2, NOW, "QUERY_FAILED", "cannot go on", "java.io.IOException: disk\n at X", "query",
        "headgate start orders", False,
    )  # fmt: skip
    shown = failures_markup(Exceptions("orders", (failure,), (), 12))
    assert shown.index("java.io.IOException: disk") < shown.index("QUERY_FAILED")
    assert "and 11 earlier" in shown
    assert "<code>headgate start orders</code>" in shown
    assert "has failed" in failures_markup(Exceptions("orders", (), (), 0))


def test_facts_of_an_event_are_written_for_people() -> None:
    facts = {"checkpoint": "chk-7", "full_bytes": 2048, "took_ms": 131, "reason": "", "x": None}
    assert describe_facts(facts) == "checkpoint chk-7, full bytes 2 KiB, took 131 ms"
    assert describe_facts({}) == NONE


def test_settings_that_somebody_chose_stand_out() -> None:
    rows = setting_rows(
        {"retain": {"value": 10, "from": "default"}, "on": {"value": "files:t", "from": "flag"}}
    )
    assert [each["class"] for each in rows] == ["", "hg-chosen"]
    assert rows[0]["value"] == "<code>10</code>"


# Logs.


def test_a_log_shows_lines_with_a_text_and_no_secrets(tmp_path: Any) -> None:
    folder = tmp_path / "jobs" / "orders"
    folder.mkdir(parents=True)
    (folder / "status.json").write_text("{}")
    (folder / "events.jsonl").write_text("one hush\ntwo\nthree hush\n")
    lines = read_lines(
        tmp_path, "orders", _log("events"), 2, "HU", hide=lambda text: text.replace("sh", "**")
    )
    assert lines == ["three hu**"]
    with pytest.raises(HeadgateError, match="LOG_NOT_FOUND"):
        read_lines(tmp_path, "orders", _log("spark"), 2, hide=str)


def test_a_long_line_is_cut_and_says_so() -> None:
    assert cut_line("short") == "short"
    assert cut_line("x" * 2_500).endswith("… (500 more characters)")


def test_lines_are_shown_as_text() -> None:
    assert "&lt;b&gt;" in show_lines(["<b>"], "")
    assert "None of these lines" in show_lines([], "x")
    assert "Nothing was written" in show_lines([], "")


def _log(name: str) -> Any:
    from headgate.jobs.service import Log

    return Log(name)


# Looking at all jobs.


def test_many_looks_read_the_disk_once_a_second(tmp_path: Any) -> None:
    (tmp_path / "jobs").mkdir()
    now = [0.0]
    glances = Glances(clock=lambda: now[0])
    context = ServerContext(ServerSettings(home=tmp_path, keeps_up=False))
    assert glances.look(context).jobs == ()
    folder = tmp_path / "jobs" / "orders"
    folder.mkdir()
    (folder / "status.json").write_text('{"format": 1, "state": "STOPPED"}')
    now[0] = 0.5
    assert glances.look(context).jobs == ()
    now[0] = 1.6
    assert [each.name for each in glances.look(context).jobs] == ["orders"]


# Errors, and signing in.


def test_an_error_shows_code_message_and_hint() -> None:
    shown = error_box(HeadgateError("JOB_BUSY", "cannot <stop>", hint="headgate jobs"))
    assert "JOB_BUSY" in shown
    assert "cannot &lt;stop&gt;" in shown
    assert "<code>headgate jobs</code>" in shown
    assert "Next" not in error_box({"code": "X", "message": "y"})
    unforeseen = error_box(ValueError("password=hush"))
    assert "INTERNAL" in unforeseen
    assert "ValueError" in unforeseen
    assert "hush" not in unforeseen


def test_the_login_page_needs_nothing_from_elsewhere_and_escapes_where_to_go() -> None:
    shown = login_page(onward='/jobs/"><script>', failed=True)
    assert '<input type="hidden" name="next" value="/jobs/&quot;&gt;&lt;script&gt;"/>' in shown
    assert 'role="alert"' in shown
    assert "none of this server" not in login_page(onward="/", failed=False)
    assert not re.search(r'(?:src|href)="(?!/|data:|#)', shown)
    assert not re.search(r"@import|url\(", shown)


def test_a_slow_question_is_of_somebody_who_is_signed_in_and_its_error_hides_secrets(
    tmp_path: Path,
) -> None:
    token = Token("a-secret-that-nobody-sees")
    settings = ServerSettings(
        home=tmp_path, flows=tmp_path, on=f"files:{tmp_path}", tokens=(token,), keeps_up=False
    )

    class Status:
        def show(self, _says: Html) -> None:
            pass

    def fail() -> None:
        raise HeadgateError("ODD", f"cannot read {token.secret}")

    async def ask(access: Access | None) -> HeadgateError:
        use_context(ServerContext(settings))
        if access is not None:
            let_in({}, access)
        with pytest.raises(HeadgateError) as caught:
            await ask_slowly(Status(), str, fail)  # type: ignore[arg-type]
        return caught.value

    assert asyncio.run(ask(None)).code == "NOT_SIGNED_IN"
    gone = Access("me", Role.OPERATE, session="ended")
    assert asyncio.run(ask(gone)).code == "NOT_SIGNED_IN"
    told = asyncio.run(ask(Access("me", Role.OPERATE)))
    assert (told.code, token.secret in told.message) == ("ODD", False)
