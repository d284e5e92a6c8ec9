"""What the console's pages are made of, as far as no browser is needed to see it."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from console_job import NOW, make_job
from fake_clock import FakeClock
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from markupsafe import Markup

from headgate.errors import HeadgateError
from headgate.jobs.views.log_search import LogFilter, LogLevel
from headgate.server.console.charts.sparkline import Trend
from headgate.server.console.pages.glance import Glances
from headgate.server.console.pages.jobs import (
    count_states,
    filter_jobs,
    format_lag,
    show_jobs_table,
)
from headgate.server.console.panels.logs import (
    cut_line,
    download_link,
    read_lines,
    show_lines,
    tell_found,
)
from headgate.server.console.parts.formats import (
    NONE,
    format_age,
    format_bytes,
    format_duration,
    format_moment,
    format_ms,
    format_rate,
    format_short,
)
from headgate.server.console.parts.templates import note, render
from headgate.server.console.parts.theme import tone_of
from headgate.server.console.parts.widgets import error_box, read_slowly, tell_wait
from headgate.server.context import ServerContext, use_context
from headgate.server.login import login_page
from headgate.server.security.access import Access, Role
from headgate.server.security.tokens import Token
from headgate.server.settings import ServerSettings
from headgate.server.signed_in import let_in

# Templates.


@given(st.text())
def test_text_never_becomes_markup(text: str) -> None:
    shown = error_box(HeadgateError(text, text, hint=text))
    assert re.sub(r"</?(?:div|strong|span|code)[^<>]*>", "", shown).count("<") == 0
    assert render("facts", rows=[(text, text)]).count("<") == 8
    assert note(text).count("<") == note(text).count(">") == 2


def test_text_never_leaves_its_attribute() -> None:
    shown = render("crumbs", job='" onclick="x', tab="overview")
    assert "&#34; onclick=&#34;x" in shown
    assert '" onclick' not in shown


def test_markup_inside_markup_is_left_as_it_is() -> None:
    shown = render("facts", rows=[("<name>", Markup("<b>1</b>")), ("other", "<b>")])
    assert "<dt>&lt;name&gt;</dt><dd><b>1</b></dd>" in shown
    assert "<dd>&lt;b&gt;</dd>" in shown


def test_line_breaks_of_a_template_are_left_out_and_those_of_a_text_stay() -> None:
    shown = render("log", lines=["<b>", "<b>"])
    assert ">&lt;b&gt;\n&lt;b&gt;</pre>" in shown
    assert "\n" not in render("tabs", job="orders", tab="state")


def test_a_name_that_a_template_misspells_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render("error", problem="X")


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
    jobs = [make_job(f"job-{n}", state) for n, state in enumerate(states)]
    found = [each.state for each in sorted(jobs, key=lambda job: job.place)]
    assert set(found[:2]) == {"DEAD", "FAILED"}
    assert found[2:] == ["RESTARTING", "PAUSED", "STARTING", "RUNNING", "STOPPED"]


def test_a_filter_finds_words_in_name_state_and_reason() -> None:
    jobs = [make_job("orders"), make_job("visits", "FAILED", reason="Topic visits is gone")]
    assert filter_jobs(jobs, "TOPIC fail", "") == [jobs[1]]
    assert filter_jobs(jobs, "", "RUNNING") == [jobs[0]]
    assert filter_jobs(jobs, "orders", "FAILED") == []
    assert filter_jobs(jobs, "  ", "") == jobs


def test_states_are_counted_and_the_chosen_one_is_pressed() -> None:
    shown = count_states([make_job("a"), make_job("b"), make_job("c", "FAILED")], "FAILED")
    assert re.search(r"FAILED</span><span>1</span>", shown)
    assert re.search(r"RUNNING</span><span>2</span>", shown)
    assert re.search(r'data-value="FAILED"[^>]*aria-pressed="true"', shown)
    assert shown.count('aria-pressed="true"') == 1


def test_a_failed_job_says_why_and_what_to_do() -> None:
    job = make_job("orders", "FAILED", reason="<disk> is full", todo="headgate start orders")
    begins, last = NOW - timedelta(minutes=15), NOW - timedelta(seconds=10)
    trend = Trend(begins, NOW, (last, NOW), (1.0, 2.0))
    shown = show_jobs_table([job], {"orders": trend}, NOW)
    assert "&lt;disk&gt; is full" in shown
    assert "<code>headgate start orders</code>" in shown
    assert f'<td data-label="In" class="hg-num">{NONE}</td>' in shown
    assert '<svg viewBox="0 0 96 22"' in shown
    healthy = show_jobs_table([make_job("orders", reason="it was started again")], {}, NOW)
    assert "started again" not in healthy
    assert '<td data-label="Last 15 min"></td>' in healthy


def test_a_crash_loop_comes_first_with_its_failures_and_the_last_reason() -> None:
    reason, todo = "attempt 3 failed: DRIVER_DIED", "headgate exceptions z"
    failing = make_job("z", "STARTING", failures=3, reason=reason, todo=todo)
    shown = show_jobs_table([make_job("a"), failing], {}, NOW)
    assert shown.index('data-key="z"') < shown.index('data-key="a"')
    assert '<span class="hg-badge hg-warn">STARTING</span>' in shown
    assert "after 3 failures" in shown
    assert reason in shown
    assert f"<code>{todo}</code>" in shown
    assert "after 1 failure<" in show_jobs_table([make_job(failures=1)], {}, NOW)


def test_lag_names_what_is_counted_and_how_old_it_is() -> None:
    assert format_lag(make_job()) == NONE
    assert format_lag(make_job(lag_bytes=0)) == "none"
    assert format_lag(make_job(lag_records=1_500, lag=timedelta(seconds=90))) == (
        "1.50k records, 1m 30s old"
    )
    assert format_lag(make_job(lag_records=3, lag_bytes=2048)) == "3 records + 2 KiB"


def test_every_state_has_a_tone_and_trouble_looks_like_it() -> None:
    assert tone_of("FAILED") == tone_of("DEAD") == "bad"
    assert tone_of("RUNNING") == "good"
    assert tone_of("something new") == "idle"


# Logs.


def test_a_log_shows_lines_of_the_whole_log_with_a_text_and_no_secrets(tmp_path: Path) -> None:
    folder = tmp_path / ".headgate" / "jobs" / "orders"
    folder.mkdir(parents=True)
    (folder / "status.json").write_text("{}")
    (folder / "events.jsonl").write_text("one hush\ntwo\nthree hush\npassword=hunter22\n")
    context = ServerContext(ServerSettings(home=tmp_path / ".headgate", keeps_up=False))

    def read(last: int, text: str = "", log: str = "events") -> tuple[list[str], int | None]:
        return read_lines(context, "orders", _log(log), last, LogFilter(text=text))

    assert read(2) == (["three hush", "password=***"], None)
    assert read(1, "HU") == (["password=***"], 3)
    assert read(3, "hush") == (["one hush", "three hush"], 2)
    with pytest.raises(HeadgateError, match="LOG_NOT_FOUND"):
        read(2, log="spark")
    assert tell_found(2, 5_000) == "5,000 lines of the whole log match; the last 2 are shown."
    assert tell_found(1, 1) == "1 line of the whole log matches."
    assert tell_found(7, None) == ""


def test_a_log_is_downloaded_as_it_is_filtered() -> None:
    wanted = LogFilter(text='a&b"', level=LogLevel.WARN)
    link = download_link("orders", _log("spark"), wanted)
    assert "/v1/jobs/orders/logs/download?log=spark&amp;text=a%26b%22&amp;level=warn" in link
    assert download_link("orders", _log("driver"), LogFilter()).count("=") == 2


def test_a_long_line_is_cut_and_says_so() -> None:
    assert cut_line("short") == "short"
    assert cut_line("x" * 2_500).endswith("… (500 more characters)")


def test_lines_are_shown_as_text() -> None:
    assert "&lt;b&gt;" in show_lines(["<b>"], LogFilter())
    assert "No line of the log matches" in show_lines([], LogFilter(text="x"))
    assert "Nothing was written" in show_lines([], LogFilter())


def _log(name: str) -> Any:
    from headgate.jobs.views.logs import Log

    return Log(name)


# Looking at all jobs.


def test_many_looks_read_the_disk_once_a_second(tmp_path: Any) -> None:
    (tmp_path / "jobs").mkdir()
    clock = FakeClock()
    glances = Glances(clock=clock.monotonic)
    context = ServerContext(ServerSettings(home=tmp_path, keeps_up=False))
    assert glances.look(context).jobs == ()
    folder = tmp_path / "jobs" / "orders"
    folder.mkdir()
    (folder / "status.json").write_text('{"format": 1, "state": "STOPPED"}')
    clock.advance(seconds=0.5)
    assert glances.look(context).jobs == ()
    clock.advance(seconds=1.1)
    assert [each.name for each in glances.look(context).jobs] == ["orders"]


# Errors, and signing in.


def test_an_error_shows_code_message_and_hint() -> None:
    shown = error_box(HeadgateError("JOB_BUSY", "cannot <stop>", hint="headgate jobs"))
    assert "JOB_BUSY" in shown
    assert "cannot &lt;stop&gt;" in shown
    assert "<code>headgate jobs</code>" in shown
    assert "Next" not in error_box(HeadgateError("X", "y"))
    unforeseen = error_box(ValueError("password=hush"))
    assert "INTERNAL" in unforeseen
    assert "ValueError" in unforeseen
    assert "hush" not in unforeseen


def test_the_login_page_needs_nothing_from_elsewhere_and_escapes_where_to_go() -> None:
    shown = login_page(onward='/jobs/"><script>', failed=True)
    assert '<input type="hidden" name="next" value="/jobs/&#34;&gt;&lt;script&gt;">' in shown
    assert 'role="alert"' in shown
    refusal = "The token is not valid for this server."
    assert refusal in shown
    assert refusal not in login_page(onward="/", failed=False)
    assert not re.search(r'(?:src|href)="(?!/|data:|#)', shown)
    assert not re.search(r"@import|url\(", shown)


def test_one_filter_takes_known_secrets_out_of_values_of_any_shape(tmp_path: Path) -> None:
    token = Token("a-secret-that-nobody-sees")
    context = ServerContext(ServerSettings(home=tmp_path, tokens=(token,), keeps_up=False))
    job = make_job(
        "orders", "FAILED", reason=f"cannot reach {token.secret}", uptime=timedelta(seconds=3),
        status={"failures": [{"message": f"password=hush {token.secret}"}]},
    )  # fmt: skip
    (hidden,) = context.hide_in((job,))
    assert token.secret not in str(hidden)
    assert "hush" not in str(hidden)
    assert (hidden.name, hidden.state, hidden.uptime) == (job.name, job.state, job.uptime)
    records = {"value": f"password=hush {token.secret}", "kind": Role.VIEW}
    shown = context.hide_in(records, guess=False)
    assert "password=hush" in shown["value"]
    assert token.secret not in shown["value"]
    assert shown["kind"] is Role.VIEW
    error = context.hide_error(
        HeadgateError("ODD", token.secret, hint=token.secret, retryable=True)
    )
    assert (error.code, error.retryable) == ("ODD", True)
    assert token.secret not in error.message + error.hint


def test_a_slow_question_is_of_somebody_who_is_signed_in_and_its_error_hides_secrets(
    tmp_path: Path,
) -> None:
    token = Token("a-secret-that-nobody-sees")
    settings = ServerSettings(
        home=tmp_path, flows=tmp_path, on=f"files:{tmp_path}", tokens=(token,), keeps_up=False
    )

    class Status:
        def show(self, _says: str) -> None:
            pass

    def fail() -> None:
        raise HeadgateError("ODD", f"cannot read {token.secret}")

    async def ask(access: Access | None) -> HeadgateError:
        use_context(ServerContext(settings))
        if access is not None:
            let_in({}, access)
        with pytest.raises(HeadgateError) as caught:
            await read_slowly(Status(), "Reading…", fail)  # type: ignore[arg-type]
        return caught.value

    assert asyncio.run(ask(None)).code == "NOT_SIGNED_IN"
    gone = Access("me", Role.OPERATE, session="ended")
    assert asyncio.run(ask(gone)).code == "NOT_SIGNED_IN"
    told = asyncio.run(ask(Access("me", Role.OPERATE)))
    assert (told.code, token.secret in told.message) == ("ODD", False)


def test_a_long_wait_says_why() -> None:
    assert tell_wait("Looking…", 0.5) == "Looking… 0 s."
    assert "starts a reader" in tell_wait("Looking…", 5)
