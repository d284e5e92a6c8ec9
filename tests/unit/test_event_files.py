"""A job's events roll by size, and readers see one history across the roll."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.jobs import event_files
from headgate.jobs.event_files import EVENTS, OLD, count_events, lines_since
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.views.events import read_back

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
FULL = 10_000


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobFolder:
    """Give a job whose files of events are full after some hundred of them."""
    monkeypatch.setattr(event_files, "FULL", FULL)
    home = JobFolder(tmp_path, "orders")
    home.path.mkdir(parents=True)
    home.write_json("job.json", {"name": "orders", "lineage": None, "flow": "", "options": {}})
    return home


def add(home: JobFolder, first: int, count: int) -> None:
    for number in range(first, first + count):
        kind = "FAILURE" if number % 10 == 0 else "CHECKPOINT"
        home.add_event(NOON + timedelta(seconds=number), kind, mine=number)


def test_events_take_no_more_than_two_files(home: JobFolder) -> None:
    add(home, 1, 1000)
    sizes = {file.name: file.stat().st_size for file in home.path.glob("*events*")}
    assert sizes.keys() == {EVENTS, OLD}
    assert all(size < FULL + 500 for size in sizes.values())


def test_numbers_go_on_and_counts_stay_across_rolls(home: JobFolder) -> None:
    add(home, 1, 1000)
    told = FolderHome(home.root).events("orders", limit=150)
    numbers = [event.number for event in told.events]
    rolls = sum(event.kind == "ROLLED" for event in told.events)
    assert numbers == list(range(told.total - 149, told.total + 1))
    # More than the newest file holds: the rest comes out of the old one.
    assert rolls == 1
    mine = [event.facts["mine"] for event in told.events if event.kind != "ROLLED"]
    assert mine == list(range(1000 - len(mine) + 1, 1001))
    assert FolderHome(home.root).exceptions("orders").total == 100
    assert count_events(home.path / EVENTS).kinds["CHECKPOINT"] == 900


def test_the_first_page_begins_with_the_oldest_event_that_is_left(home: JobFolder) -> None:
    add(home, 1, 1000)
    page = FolderHome(home.root).events("orders", after=0, limit=5)
    first = page.events[0].number
    assert first > 1, "the events before it are gone"
    assert [event.number for event in page.events] == list(range(first, first + 5))
    assert (page.skipped, page.last) == (first - 1, first + 4)


def test_whoever_follows_misses_nothing_when_a_file_rolls(home: JobFolder) -> None:
    add(home, 1, 50)
    seen = [event.facts["mine"] for event in FolderHome(home.root).events("orders").events]
    last = FolderHome(home.root).events("orders").total
    for start in range(51, 400, 7):
        add(home, start, 7)
        told = FolderHome(home.root).events("orders", after=last)
        seen += [event.facts["mine"] for event in told.events if event.kind != "ROLLED"]
        last = told.total
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) >= 399


def test_a_roll_between_counting_and_reading_changes_nothing(home: JobFolder) -> None:
    add(home, 1, 90)
    file = home.path / EVENTS
    before = count_events(file)
    while not (home.path / OLD).exists():
        home.add_event(NOON, "CHECKPOINT", mine=0)
    assert [event.facts["mine"] for event in read_back(file, before)] == list(range(90, 0, -1))


def test_what_was_asked_for_is_found_across_a_roll(home: JobFolder) -> None:
    add(home, 1, 90)
    file = home.path / EVENTS
    marked = count_events(file).lines
    home.add_event(NOON, "SAVEPOINT", folder="/there")
    while not (home.path / OLD).exists():
        home.add_event(NOON, "CHECKPOINT", mine=0)
    kinds = [json.loads(line)["event"] for line in lines_since(file, marked)]
    assert kinds[0] == "SAVEPOINT"
    assert kinds.count("ROLLED") == 1


def test_a_crash_in_the_middle_of_a_roll_shows_no_event_twice(home: JobFolder) -> None:
    add(home, 1, 20)
    (home.path / OLD).hardlink_to(home.path / EVENTS)
    told = FolderHome(home.root).events("orders")
    assert [event.number for event in told.events] == list(range(1, 21))
    add(home, 21, 200)
    assert FolderHome(home.root).events("orders").events[-1].facts["mine"] == 220
