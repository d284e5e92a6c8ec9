"""What is remembered of replays: before a record is sent, and when it is acknowledged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_clock import NOON, FakeClock

from headgate import HeadgateError
from headgate.connectors.contract.places import PlacedRecord
from headgate.jobs.dead_letters.letter import DeadLetter, find_letter
from headgate.jobs.dead_letters.replay_memory import FILE, Replay, open_journal, read_memory
from headgate.jobs.job_folder import JobFolder

# Nothing in a journal waits.
CLOCK = FakeClock(steps=())


@pytest.fixture
def home(tmp_path: Path) -> JobFolder:
    home = JobFolder(tmp_path, "shop")
    home.path.mkdir(parents=True)
    return home


def letter(place: str, *, timestamp: int = 1) -> DeadLetter:
    value = (
        f'{{"source":"orders","topic":"orders","partition":0,"offset":1,"timestamp":{timestamp},'
        '"code":"BAD_JSON","reason":"it is none","bytes":1,"raw":"eA=="}'
    )
    record = PlacedRecord(place=place, partition=0, timestamp=1, key=None, value=value.encode())
    found = find_letter(record)
    assert found is not None
    return found


def test_what_was_acknowledged_is_remembered_with_when_and_by_whom(home: JobFolder) -> None:
    with open_journal(home, by="ann", clock=CLOCK) as journal:
        journal.finish(journal.begin("orders", [letter("0:1")]))
        assert journal.memory.find(letter("0:1")) is not None
    assert read_memory(home).find(letter("0:1")) == Replay(NOON, "ann", is_sure=True)
    assert read_memory(home).find(letter("0:2")) is None


def test_a_batch_that_was_never_finished_is_in_doubt_until_it_is_sent_again(
    home: JobFolder,
) -> None:
    with open_journal(home, by="ann", clock=CLOCK) as journal:
        journal.begin("orders", [letter("0:1")])
    assert read_memory(home).find(letter("0:1")) == Replay(NOON, "ann", is_sure=False)
    with open_journal(home, by="bob", clock=CLOCK) as journal:
        assert journal.memory.find(letter("0:1")) == Replay(NOON, "ann", is_sure=False)
        journal.finish(journal.begin("orders", [letter("0:1")]))
    assert read_memory(home).find(letter("0:1")) == Replay(NOON, "bob", is_sure=True)


def test_another_letter_of_the_same_record_is_known_by_the_records_place(home: JobFolder) -> None:
    with open_journal(home, by="ann", clock=CLOCK) as journal:
        batch = journal.begin("orders", [letter("0:1")])
        doubt = journal.memory.find(letter("0:2"), "orders")
        assert doubt is not None
        assert not doubt.is_sure
        journal.finish(batch)
    memory = read_memory(home)
    known = memory.find(letter("0:2"), "orders")
    assert known is not None
    assert known.is_sure
    assert memory.find(letter("0:2"), "visits") is None
    assert memory.find(letter("0:2", timestamp=2), "orders") is None


def test_lines_of_older_releases_tell_of_letters_alone(home: JobFolder) -> None:
    with open_journal(home, by="ann", clock=CLOCK) as journal:
        journal.finish(journal.begin("orders", [letter("0:1")]))
    file = home.path / FILE
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    del lines[0]["records"]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    memory = read_memory(home)
    assert memory.find(letter("0:1"), "orders") is not None
    assert memory.find(letter("0:2"), "orders") is None


def test_a_letter_of_a_topic_that_was_made_anew_is_another_one(home: JobFolder) -> None:
    with open_journal(home, by="ann", clock=CLOCK) as journal:
        journal.finish(journal.begin("orders", [letter("0:1")]))
    assert read_memory(home).find(letter("0:1", timestamp=2)) is None


def test_a_line_that_broke_off_counts_for_nothing_and_is_in_nobodys_way(home: JobFolder) -> None:
    with open_journal(home, by="ann", clock=CLOCK) as journal:
        journal.finish(journal.begin("orders", [letter("0:1")]))
    file = home.path / FILE
    whole = file.read_bytes()
    file.write_bytes(whole + whole[:40])
    assert read_memory(home).find(letter("0:1")) is not None
    with open_journal(home, by="ann", clock=CLOCK) as journal:
        journal.finish(journal.begin("orders", [letter("0:2")]))
    memory = read_memory(home)
    assert memory.find(letter("0:1")) is not None
    assert memory.find(letter("0:2")) is not None
    assert file.read_bytes().startswith(whole)


def test_every_line_has_a_format_and_one_of_another_is_refused(home: JobFolder) -> None:
    with open_journal(home, by="ann", clock=CLOCK) as journal:
        journal.begin("orders", [letter("0:1")])
    file = home.path / FILE
    line = json.loads(file.read_text())
    assert line["format"] == 1
    file.write_text(json.dumps({**line, "format": 2}) + "\n")
    with pytest.raises(HeadgateError) as caught:
        read_memory(home)
    assert caught.value.code == "JOB_FORMAT_UNSUPPORTED"


@pytest.mark.parametrize("line", ["{", "[]", '{"format": 1}', '{"format": 1, "step": "sent"}'])
def test_a_damaged_line_is_refused_rather_than_forgotten(home: JobFolder, line: str) -> None:
    (home.path / FILE).write_text(line + "\n")
    with pytest.raises(HeadgateError) as caught:
        read_memory(home)
    assert caught.value.code == "JOB_FILE_BROKEN"


def test_one_replay_of_a_job_runs_at_a_time(home: JobFolder) -> None:
    with open_journal(home, by="ann", clock=CLOCK):
        with pytest.raises(HeadgateError) as caught, open_journal(home, by="bob", clock=CLOCK):
            pass
        assert caught.value.code == "REPLAY_RUNNING"
    with open_journal(home, by="bob", clock=CLOCK):
        pass
