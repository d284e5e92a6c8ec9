"""What the console says before it changes something, and how it shows what it read."""

from __future__ import annotations

import html
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from console_job import make_job

from headgate._codec import encode
from headgate.checkpoints.checkpoint import Checkpoint
from headgate.checkpoints.manifest import Kind, SourceFacts
from headgate.jobs.checkpoints.restore_plan import RestorePlan
from headgate.jobs.dead_letters.letter import DeadLetter
from headgate.jobs.dead_letters.listing import DeadLetters, LetterCount
from headgate.jobs.dead_letters.replay import Replayed
from headgate.jobs.state.values import (
    HistoryEntry,
    StateHistory,
    StateOperator,
    StateRows,
    StateValue,
)
from headgate.jobs.views.checkpoint_history import CheckpointEvent
from headgate.jobs.views.outputs import OutputRecord
from headgate.jobs.views.past import Past
from headgate.server.console.charts.checkpoint_chart import POINTS, chart_options
from headgate.server.console.charts.moments_track import mark_left_behind
from headgate.server.console.charts.timeline import lay_out
from headgate.server.console.panels.checkpoint_history import find_kept, show_checkpoints
from headgate.server.console.parts.formats import cut, pretty
from headgate.server.console.texts.checkpoints import show_plan, tell_settings
from headgate.server.console.texts.json_text import show_differences, show_json
from headgate.server.console.texts.outputs import (
    show_counts,
    show_letters,
    show_records,
    tell_replayed,
)
from headgate.server.console.texts.questions import (
    ask_pin,
    ask_replay,
    ask_restore,
    tell_again,
    tell_state,
)
from headgate.server.console.texts.state import (
    find_operator,
    fold,
    show_history,
    show_rows,
    show_value,
    tell_rows,
)

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


def _plan(**changes: Any) -> RestorePlan:
    values: dict[str, Any] = {
        "checkpoint": "chk-17",
        "kind": "checkpoint",
        "completed_at": NOW - timedelta(minutes=5),
        "folder": Path("run/chk-17"),
        "as_it_was": True,
        "state_taken": ("with-user", "with-item"),
        "state_dropped": (),
        "starts_empty": (),
        "records_again": {"orders": 1_200, "users": 0},
        "outputs_with_repeats": ("enriched", "missing"),
    }
    return RestorePlan(**{**values, **changes})


def _said(says: tuple[str, ...]) -> str:
    return " ".join(says)


def test_a_restore_of_a_running_job_says_that_it_is_stopped_and_what_is_done_again() -> None:
    question = ask_restore(make_job("shop"), _plan(), now=NOW)
    said = _said(question.says)
    assert question.action == "Stop and restore"
    assert question.dangerous
    assert "stopped first" in said
    assert "A new run begins from chk-17" in said
    assert "5m ago" in said
    assert "The run before stays" in said
    assert "with-user and with-item keep their state" in said
    assert "1,200 records are read again: orders 1,200." in said
    assert "enriched and missing may hold rows twice" in said


def test_a_restore_of_a_job_at_rest_stops_nothing() -> None:
    question = ask_restore(make_job("shop", "STOPPED"), _plan(), now=NOW)
    assert question.action == "Restore"
    assert "stopped first" not in _said(question.says)


def test_a_restore_that_loses_state_warns() -> None:
    plan = _plan(run="20261115T120000-abcdef", warnings=("operator 'a' starts empty",))
    said = _said(ask_restore(make_job("shop"), plan, now=NOW).says)
    assert "from chk-17 of run 20261115T120000-abcdef" in said
    assert "Warning: operator 'a' starts empty." in said
    assert "operator &#39;a&#39; starts empty" in show_plan(plan, now=NOW)


def test_a_restore_that_repeats_nothing_says_so() -> None:
    question = ask_restore(make_job("shop", "STOPPED"), _plan(records_again={"orders": 0}), now=NOW)
    said = _said(question.says)
    assert "No record is read again" in said
    assert "twice" not in said


def test_records_that_cannot_be_counted_are_told_apart() -> None:
    told = tell_again(_plan(records_again={"orders": None, "users": 3}))
    assert told == (
        "3 records are read again: users 3. "
        "How many records of orders are read again cannot be told."
    )


def test_an_estimated_number_of_records_is_told_as_one() -> None:
    plan = _plan(records_again={"orders": 7_000, "users": 3}, records_estimated=("orders",))
    assert tell_again(plan) == ("About 7,003 records are read again: orders about 7,000, users 3.")
    assert "about 7,000 records" in show_plan(plan, now=NOW)


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        ({"state_taken": ("a",)}, "a keeps its state."),
        ({"state_taken": ("a", "b"), "state_dropped": ("c",)}, "a and b keep their state; c loses"),
        ({"starts_empty": ("d",)}, "d starts empty."),
        ({}, "No operator keeps state."),
    ],
)
def test_what_becomes_of_state_is_told(plan: dict[str, Any], told: str) -> None:
    assert tell_state(_plan(**{"state_taken": (), **plan})).startswith(told)


def test_the_dry_run_is_shown_with_its_counts() -> None:
    shown = show_plan(_plan(), now=NOW)
    for each in ("chk-17", "with-user", "1,200 records", "enriched", "5m ago", "as it was"):
        assert each in shown


def test_the_dry_run_of_a_restore_that_repeats_nothing_writes_nothing_again() -> None:
    shown = show_plan(_plan(records_again={"orders": 0}), now=NOW)
    assert "enriched" not in shown
    assert "nothing" in shown


def test_names_of_users_are_text_and_never_markup() -> None:
    shown = show_plan(_plan(checkpoint="<img src=x>", state_taken=("<b>",)), now=NOW)
    assert "<img" not in shown
    assert "<b>" not in shown


def test_pinning_and_letting_go_say_opposite_things() -> None:
    assert "stays" in _said(ask_pin("chk-1", pinned=True).says)
    assert "goes when its time comes" in _said(ask_pin("chk-1", pinned=False).says)


def test_settings_say_where_they_come_from() -> None:
    told = dict(
        tell_settings(
            {
                "checkpoint-every": {"value": "20s", "from": "flag"},
                "retain": {"value": 12, "from": "headgate.toml"},
                "on-cancel": {"value": "delete", "from": "default"},
            }
        )
    )
    assert told["Interval"] == "one every 20s (flag)"
    assert told["Retained"] == "the newest 12 (headgate.toml)"
    assert told["On cancel"] == "deleted (default)"
    assert told["Where"] == "in the job's folder"


# History of checkpoints


def _entry(number: int = 1, **changes: Any) -> CheckpointEvent:
    values: dict[str, Any] = {
        "number": number,
        "id": f"chk-{number}",
        "kind": "checkpoint",
        "status": "COMPLETED",
        "at": NOW + timedelta(seconds=number),
        "took": timedelta(milliseconds=30),
        "full_bytes": 2_048,
        "new_bytes": 1_024,
        "run": "run",
        "kept": True,
        "reason": "",
    }
    return CheckpointEvent(**{**values, **changes})


def _kept(**changes: Any) -> Checkpoint:
    values: dict[str, Any] = {
        "id": "chk-1",
        "kind": Kind.CHECKPOINT,
        "run": "run",
        "folder": Path("run/chk-1"),
        "batch": 1,
        "completed_at": NOW,
        "full_bytes": 2_048,
        "sources": {"orders": SourceFacts(None, 1_000), "users": SourceFacts(None, 234)},
    }
    return Checkpoint(**{**values, **changes})


def _checkpoint(entry: CheckpointEvent, *kept: Checkpoint, may: bool = True) -> str:
    """Return the row of an entry."""
    return show_checkpoints([entry], Past(kept, ()), may=may).partition("<tbody>")[2]


def test_a_kept_checkpoint_can_be_pinned_and_restored() -> None:
    row = _checkpoint(_entry(), _kept())
    assert '<td data-label="Records" class="hg-num">1,234</td>' in row
    assert 'data-act="pin"' in row
    assert 'data-value="run/chk-1"' in row
    assert ">kept<" in row


def test_a_pinned_one_can_be_let_go() -> None:
    row = _checkpoint(_entry(), _kept(pinned=True))
    assert 'data-act="unpin"' in row
    assert ", pinned" in row


def test_those_who_may_only_look_are_told_why_the_buttons_are_dead() -> None:
    row = _checkpoint(_entry(), _kept(), may=False)
    assert row.count(" disabled") == row.count("role operate") == 2
    assert 'data-act="restore"' not in row


def test_what_is_gone_or_failed_offers_nothing() -> None:
    gone = _checkpoint(_entry(kept=False))
    failed = _checkpoint(_entry(status="FAILED", kept=False, reason="disk full"))
    assert "<button" not in gone + failed
    assert ">gone<" in gone
    assert "disk full" in failed


def test_a_kept_one_is_found_by_its_run_and_id() -> None:
    past = Past((_kept(run="old"), _kept()), ())
    found = find_kept(_entry(run="old"), past)
    assert found is not None
    assert found.source == "old/chk-1"
    assert find_kept(_entry(run="other"), past) is None
    assert find_kept(_entry(kept=False), past) is None
    # Events of earlier releases do not tell the run: the newest is meant.
    newest = find_kept(_entry(run=None), past)
    assert newest is not None
    assert newest.source == "run/chk-1"


def test_entries_of_one_id_are_told_apart_by_their_run() -> None:
    entries = [_entry(run="20261115T120000-abcdef"), _entry(run="20261116T120000-fedcba")]
    rows = show_checkpoints(entries, Past((), ()), may=True)
    for entry in entries:
        assert f'<td data-label="Run" class="hg-quiet">{entry.run}</td>' in rows
        assert f'data-value="{entry.run}/chk-1"' in rows


def test_pinning_means_the_checkpoint_of_that_run() -> None:
    row = _checkpoint(_entry(run="old"), _kept(run="old"))
    assert row.count('data-value="old/chk-1"') == 2


def test_a_savepoint_that_a_restore_left_is_on_the_timeline() -> None:
    savepoint = _kept(id="before-sale", kind=Kind.SAVEPOINT, run="old")
    entry = _entry(id="before-sale", kind="savepoint", run="old")
    assert find_kept(entry, Past((), (), left_behind=(savepoint,))) == savepoint
    mark = mark_left_behind(savepoint, lay_out([NOW], NOW + timedelta(minutes=1)))
    assert (mark["source"], mark["kind"]) == ("before-sale", "savepoint")
    assert "of run old: restore it from the history" in mark["title"]


def test_the_chart_has_a_bounded_number_of_points_oldest_first() -> None:
    entries = [_entry(number) for number in range(2 * POINTS, 0, -1)]
    size = chart_options(entries)["series"][0]["data"]
    assert len(size) == POINTS
    assert size == sorted(size)


def test_failed_checkpoints_are_points_of_their_own() -> None:
    series = chart_options([_entry(2, status="FAILED", full_bytes=None), _entry(1)])["series"]
    counts = {each["name"]: len(each["data"]) for each in series}
    assert counts == {"size": 1, "new bytes": 1, "took": 1, "failed": 1}


# State


def _version(checkpoint: str, change: str, value: Any = None, **changes: Any) -> HistoryEntry:
    return HistoryEntry(checkpoint=checkpoint, moment=NOW, value=value, change=change, **changes)


def test_what_stays_the_same_is_folded() -> None:
    folded = fold(
        [
            _version("chk-1", "absent"),
            _version("chk-2", "absent"),
            _version("chk-3", "appeared", 1),
            _version("chk-4", "same", 1),
            _version("chk-5", "changed", 2, differences={"value": (1, 2)}),
            _version("chk-6", "deleted"),
            _version("chk-7", "absent"),
            _version("now", "absent"),
        ]
    )
    spans = [(each.entry.checkpoint, each.until.checkpoint, each.count) for each in folded]
    assert spans == [
        ("chk-1", "chk-2", 2),
        ("chk-3", "chk-4", 2),
        ("chk-5", "chk-5", 1),
        ("chk-6", "now", 3),
    ]


def test_what_cannot_be_read_stands_for_itself_with_its_reason() -> None:
    entries = (
        _version("chk-1", "first", 1),
        _version("chk-2", "unreadable", problem="a file <x> is missing"),
        _version("now", "same", 1),
    )
    assert [each.count for each in fold(entries)] == [1, 1, 1]
    shown = show_history(
        StateHistory(job="shop", uid="u", key="7", entries=entries, left_off=1_500)
    )
    assert "not readable" in shown
    assert "a file &lt;x&gt; is missing" in shown
    assert "1,500 older checkpoints" in shown


def test_a_history_shows_each_field_that_changed() -> None:
    history = StateHistory(
        job="shop",
        uid="with-user",
        key="7",
        entries=(
            _version("chk-1", "first", {"name": "Ada", "city": "<Ulm>"}),
            _version("now", "changed", {"name": "Eve"}, differences={"name": ("Ada", "Eve")}),
        ),
    )
    shown = show_history(history)
    assert shown.index("chk-1") < shown.index("now")
    assert "&#34;Eve&#34;" in shown
    assert "<Ulm>" not in shown


def test_a_key_without_a_value_says_whether_it_was_deleted() -> None:
    value = StateValue(
        job="shop", uid="u", key="1", checkpoint="now", moment=NOW, found=False, deleted=False,
        value=None,
    )  # fmt: skip
    assert "nothing under this key" in show_value(value)
    deleted = StateValue(
        job="shop", uid="u", key="1", checkpoint="now", moment=NOW, found=False, deleted=True,
        value=None,
    )  # fmt: skip
    assert "deleted" in show_value(deleted)


def test_rows_of_any_shape_are_a_table() -> None:
    rows = StateRows(
        job="shop",
        checkpoint="now",
        moment=NOW,
        columns=("n", "n", "who"),
        types=("INT", "INT", "STRUCT"),
        rows=((1, None, {"a": [1, 2]}), (2, "x" * 500, None)),
    )
    shown = show_rows(rows)
    assert shown.count("<tr") == 3
    assert "{&#34;a&#34;: [1, 2]}" in shown
    assert f'title="{"x" * 500}"' in shown
    assert "…" in shown


@pytest.mark.parametrize(
    ("checkpoint", "cut_off", "told"),
    [
        ("now", True, "The first 1 row of the present state, read in 8.6 s. There are more rows."),
        ("chk-17", False, "1 row of chk-17, read in 8.6 s."),
    ],
)
def test_the_number_of_rows_is_told_with_their_state(
    checkpoint: str, cut_off: bool, told: str
) -> None:
    rows = StateRows(
        job="shop",
        checkpoint=checkpoint,
        moment=NOW,
        columns=("n",),
        types=("INT",),
        rows=((1,),),
        cut=cut_off,
    )
    assert tell_rows(rows, "read in 8.6 s") == told


def test_the_operator_that_is_wanted_comes_first_else_the_one_with_most_rows() -> None:
    small, large = (
        StateOperator(
            uid=uid, kind="enrich", variables=(), keys=(), key_types=(), rows=rows, bytes=1
        )
        for uid, rows in (("small", 1), ("large", 5))
    )
    assert find_operator([small, large], "small") == "small"
    assert find_operator([small, large], "gone") == "large"
    assert find_operator([], None) is None


# Outputs and dead letters


def _record(place: str, **changes: Any) -> OutputRecord:
    values: dict[str, Any] = {
        "place": place,
        "partition": 0,
        "position": place,
        "timestamp": NOW,
        "key": None,
        "value": '{"a":1}',
        "size": 7,
        "cut": False,
    }
    return OutputRecord(**{**values, **changes})


def test_records_are_shown_newest_first_and_only_opened_ones_whole() -> None:
    shown = show_records([_record("0:1"), _record("0:2")], {"0:1"})
    assert shown.index('data-key="0:2"') < shown.index('data-key="0:1"')
    assert shown.count("<pre") == 1
    assert shown.count('aria-expanded="true"') == 1


def test_a_record_that_was_cut_says_so_when_it_is_opened() -> None:
    assert "longer than what is shown" in show_records([_record("0:1", cut=True)], {"0:1"})


def test_a_record_that_cannot_be_decoded_says_why_when_it_is_opened() -> None:
    shown = show_records([_record("0:1", value="\\xff", problem="not <UTF-8>")], {"0:1"})
    assert "shown as bytes: not &lt;UTF-8&gt;" in shown
    assert "cannot be decoded" not in show_records([_record("0:1")], {"0:1"}).lower()


def _letter(**changes: Any) -> DeadLetter:
    values: dict[str, Any] = {
        "id": "0:5",
        "source": "orders",
        "topic": "orders",
        "partition": 0,
        "offset": 9,
        "reason": "BAD_JSON",
        "detail": "no JSON at byte 3",
        "at": NOW,
        "record_at": NOW,
        "timestamp": 0,
        "size": 4,
        "raw": b"<b>x",
        "digest": "d",
        "of_row": False,
    }
    return DeadLetter(**{**values, **changes})


def test_a_letter_is_opened_with_what_was_wrong_and_its_raw_record_as_text() -> None:
    shown = show_letters([_letter()], _letter(), may_replay=True)
    assert "no JSON at byte 3" in shown
    assert "&lt;b&gt;x" in shown
    assert "<b>x" not in shown
    assert 'data-value="id:0:5"' in shown


def test_bytes_that_are_no_text_are_shown_all_the_same() -> None:
    assert "\\xff" in show_letters([_letter(raw=b"\xff\xfe", size=2)], None, may_replay=True)


def test_counts_come_with_a_replay_of_their_reason() -> None:
    letters = DeadLetters(
        job="shop",
        topic="dead-letters",
        log="files:x",
        total=3,
        at_least=False,
        counts=(LetterCount("orders", "BAD_JSON", 3),),
        letters=(),
        foreign=0,
    )
    assert 'data-value="reason:BAD_JSON"' in show_counts(letters, None, may_replay=True)
    assert "disabled" in show_counts(letters, None, may_replay=False)


def _replayed(**changes: Any) -> Replayed:
    values: dict[str, Any] = {
        "job": "shop",
        "sent": {"orders": 44},
        "skipped": 0,
        "in_doubt": 0,
        "refused": {},
        "named": (),
        "doubts": (),
        "without_key": 0,
        "dry_run": True,
    }
    return Replayed(**{**values, **changes})


def test_a_replay_says_how_many_go_where_and_to_fix_the_flow_first() -> None:
    question = ask_replay(_replayed(skipped=2, refused={"cut": 1}), " with reason BAD_JSON")
    said = _said(question.says)
    assert question.title == "Replay 44 dead letters with reason BAD_JSON?"
    assert question.says[0].startswith("Fix the flow first")
    assert "44 records go to topic orders" in said
    assert "2 were replayed before" in said
    assert "1 cannot be sent: only the beginning" in said


def test_what_became_of_a_replay_is_told() -> None:
    result = encode(_replayed(skipped=2))
    assert tell_replayed(result) == "Sent 44 to orders; 2 were sent before."
    assert tell_replayed(encode(_replayed(sent={}))) == "Nothing was sent."


# JSON


def test_json_is_written_on_lines_and_other_text_stays() -> None:
    assert pretty('{"a":1}') == '{\n  "a": 1\n}'
    assert pretty("no json {") == "no json {"
    assert pretty('"ä"') == '"ä"'


@pytest.mark.parametrize(
    "value",
    [None, True, 1.5, "text", [], {}, [1, 2], {"a": {"b": [{"c": None}, "<x>"]}}, ["x" * 100]],
)
def test_json_that_is_shown_reads_back_as_the_same(value: Any) -> None:
    shown = show_json(value)
    assert "<x>" not in shown
    text = html.unescape(re.sub(r"<[^>]+>", "", shown))
    assert json.loads(text) == value


def test_a_huge_value_is_cut_and_says_how_much_is_missing() -> None:
    shown = show_json(["x" * 100] * 10_000)
    assert len(shown) < 600_000
    assert "more characters" in shown


def test_differences_are_told_as_was_and_is() -> None:
    shown = show_differences({"city": ("Ulm", None)})
    assert "&#34;Ulm&#34;" in shown
    assert "nothing" in shown


def test_text_is_cut_to_a_length() -> None:
    assert cut("abc", 3) == "abc"
    assert cut("abcd", 3) == "ab…"
