"""A key's history: what is told of it, and that values survive the way through JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from headgate._codec import decode, encode
from headgate.cli.views.state import _lines
from headgate.jobs.state.values import (
    Held,
    HistoryEntry,
    StateHistory,
    StateOperator,
    StateOverview,
    StateRows,
    StateValue,
    compare,
)

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def history(*values: Any) -> tuple[HistoryEntry, ...]:
    return compare(
        [Held(f"chk-{n}", NOON + timedelta(seconds=n), value) for n, value in enumerate(values)]
    )


def test_every_entry_says_how_it_differs_from_the_one_before() -> None:
    a, b = {"id": 1}, {"id": 2}
    assert [each.change for each in history(a, a, b, None, None, a)] == [
        *("first", "same", "changed", "deleted", "absent", "appeared")
    ]
    assert [each.change for each in history(None, a)] == ["absent", "appeared"]
    assert history() == ()


def test_an_entry_that_cannot_be_read_is_told_and_the_next_one_compares_with_the_one_before() -> (
    None
):
    lost = Held("chk-1", NOON, problem="a file is missing")
    first, last = (Held(name, NOON, 1) for name in ("chk-0", "now"))
    entries = compare([first, lost, last])
    assert [each.change for each in entries] == ["first", "unreadable", "same"]
    assert list(_lines(entries[1])) == ["a file is missing"]
    assert [each.change for each in compare([lost, last])] == ["unreadable", "first"]
    told = StateHistory(job="j", uid="u", key="42", entries=entries, left_off=3)
    assert decode(StateHistory, json.loads(json.dumps(encode(told)))) == told


def test_differences_name_the_fields_and_go_into_structs() -> None:
    old = {"id": 1, "name": "Ann", "home": {"city": "Bern", "zip": 3000}, "tags": [1, 2], "old": 1}
    new = {"id": 1, "name": "Eve", "home": {"city": "Bern", "zip": None}, "tags": [2], "new": 2}
    [_, entry] = history(old, new)
    assert entry.differences == {
        "name": ("Ann", "Eve"),
        "home.zip": (3000, None),
        "tags": ([1, 2], [2]),
        "old": (1, None),
        "new": (None, 2),
    }
    assert history(None, new)[1].differences == {}


def test_windows_are_compared_by_when_they_begin() -> None:
    first = {"window_start": "10:00", "hits": 1}
    old = {"user": 1, "windows": [first, {"window_start": "11:00", "hits": 5}]}
    new = {"user": 1, "windows": [{"window_start": "11:00", "hits": 6}]}
    [_, entry] = history(old, new)
    assert entry.differences == {
        "windows[10:00]": (first, None),
        "windows[11:00].hits": (5, 6),
    }


def test_values_come_back_from_json_as_they_were() -> None:
    value = StateValue(
        job="j",
        uid="u",
        key="42",
        checkpoint="chk-1",
        moment=NOON,
        found=True,
        deleted=False,
        value={"id": 42, "tags": ["ä"]},
    )
    rows = StateRows(
        job="j",
        checkpoint="now",
        moment=NOON,
        columns=("a", "a"),
        types=("INT", "STRING"),
        rows=((1, None), (2, "x")),
        cut=True,
    )
    told = StateHistory(job="j", uid="u", key="42", entries=history({"a": 1}, {"a": 2}, None))
    operator = StateOperator(
        uid="u",
        kind="enrich",
        variables=("table",),
        keys=("id",),
        key_types=("BIGINT",),
        rows=3,
        bytes=4,
    )
    overview = StateOverview(job="j", checkpoint="now", batch=7, moment=NOON, operators=(operator,))
    for each in (value, rows, told, overview):
        assert decode(type(each), json.loads(json.dumps(encode(each)))) == each
