"""A folder that hosts share is a store: files appear whole, and in one step."""

from __future__ import annotations

import errno
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from upath import UPath

from headgate import HeadgateError, _shared
from headgate._codec import decode, encode
from headgate._locations import Location, is_local, parse_location, url_of
from headgate.checkpoints.stores import place_at
from headgate.checkpoints.stores.notes import StoreNotes
from headgate.checkpoints.stores.objects import list_objects, read_object
from headgate.errors import StoreError
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.job_stores import held_stores


@dataclass(frozen=True)
class _Kept:
    place: Location


def test_an_address_is_read_as_it_is_written() -> None:
    for text in (
        "shared:///mnt/a b/c",
        "shared:/mnt/a b/c",
        "SHARED:///mnt/a b/c/",
        "shared:///mnt/x/../a b/c",
    ):
        place = parse_location(text)
        assert not is_local(place)
        assert str(place) == "shared:///mnt/a b/c"
        assert url_of(place / "d") == "shared:/mnt/a b/c/d"
        assert parse_location(str(place)) == place
        assert decode(_Kept, encode(_Kept(place))) == _Kept(place)
    for text in ("shared://host/x", "shared:relative"):
        if text == "shared:relative":
            assert parse_location(text) == Path(text)
            continue
        with pytest.raises(HeadgateError, match="BAD_STORE"):
            parse_location(text)


@pytest.mark.parametrize("text", ["hdfs://h/x", "gs://b/x", "abfs://c@a/x"])
def test_other_stores_are_refused_with_what_works(text: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        parse_location(text)
    assert caught.value.code == "BAD_STORE"
    assert "shared:///FOLDER" in caught.value.hint
    assert "s3a://BUCKET/FOLDER" in caught.value.hint


def test_what_is_written_is_read_and_listed(shared_place: UPath) -> None:
    (shared_place / "a" / "b.json").write_text("{}")
    assert (shared_place / "a" / "b.json").read_text() == "{}"
    assert [file.name for file in (shared_place / "a").iterdir()] == ["b.json"]
    assert (shared_place / "a").is_dir()
    assert not (shared_place / "b").exists()
    assert set(list_objects(shared_place)) == {"a/b.json"}
    assert set(list_objects(shared_place, "a/b")) == {"a/b.json"}
    with pytest.raises(FileNotFoundError):
        read_object(shared_place / "a" / "c")


def test_a_folder_without_files_is_none(shared_place: UPath) -> None:
    Path(shared_place.path, "empty", "inside").mkdir(parents=True)
    assert not (shared_place / "empty").exists()
    assert list_objects(shared_place) == {}


def test_one_of_many_creates_a_file_and_the_others_see_the_whole(shared_place: UPath) -> None:
    notes = StoreNotes(shared_place)
    for number in range(20):
        contents = [f"{writer}" * 5_000 for writer in range(8)]
        with ThreadPoolExecutor(len(contents)) as pool:
            marks = list(
                pool.map(
                    lambda content, name=f"{number}": notes.put(name, content.encode(), mark=None),
                    contents,
                )
            )
        (winner,) = [content for content, mark in zip(contents, marks, strict=True) if mark]
        found = notes.find(f"{number}")
        assert found is not None
        assert found.content.decode() == winner
        assert found.mark in marks


def _count_up(folder: str, times: int) -> None:
    notes = StoreNotes(parse_location(folder))
    for _ in range(times):
        while True:
            note = notes.find("n")
            assert note is not None
            # No two write the same: a request whose answer was lost is known by its content.
            content = f"{int(note.content.partition(b' ')[0]) + 1} {os.getpid()}".encode()
            if notes.put("n", content, mark=note.mark) is not None:
                break


def test_processes_that_replace_a_file_by_its_mark_lose_nothing(shared_place: UPath) -> None:
    notes = StoreNotes(shared_place)
    notes.put("n", b"0 0", mark=None)
    workers = [
        multiprocessing.get_context("spawn").Process(target=_count_up, args=(str(shared_place), 50))
        for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    found = notes.find("n")
    assert found is not None
    assert found.content.startswith(b"150 ")
    # The same content again is another file.
    assert notes.put("n", found.content, mark=found.mark) != found.mark
    assert notes.put("n", b"151", mark=found.mark) is None


def test_a_writer_that_is_killed_leaves_nothing_that_is_seen(shared_place: UPath) -> None:
    file = shared_place / "pool" / "a"
    code = (
        "import os, sys; from headgate._locations import parse_location\n"
        "os.replace = os.link = lambda *_: os.kill(os.getpid(), 9)\n"
        "parse_location(sys.argv[1]).write_text('whole')"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(_shared.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code, str(file)], env=environment, check=False)
    assert done.returncode == -9
    assert len(list(Path(shared_place.path, "pool").iterdir())) == 1
    assert not file.exists()
    assert list_objects(shared_place) == {}
    place_at(shared_place).sweep(set)
    assert not Path(shared_place.path, "pool").exists()


def test_a_link_whose_answer_was_lost_is_the_writers_own(
    shared_place: UPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def twice(source: str, target: str) -> None:
        link(source, target)
        link(source, target)

    notes = StoreNotes(shared_place)
    monkeypatch.setattr("os.link", twice)
    mark = notes.put("a", b"1", mark=None)
    assert mark is not None
    # Another writer with the same content is another one.
    monkeypatch.undo()
    assert shared_place.fs.put_if((shared_place / "a").path, b"1", None) is None
    found = notes.find("a")
    assert found is not None
    assert found.mark == mark


def test_copies_are_names_of_the_same_file(shared_place: UPath) -> None:
    (shared_place / "a").write_text("content")
    paths = [(shared_place / name).path for name in ("a", "pool/a")]
    for _ in range(2):
        shared_place.fs.copy_all([(*paths, 7)])
        assert Path(paths[0]).samefile(paths[1])
    (shared_place / "a").write_text("another")
    assert (shared_place / "pool" / "a").read_text() == "content"


@pytest.mark.parametrize(
    ("number", "code"),
    [(errno.EACCES, "STORE_REFUSED"), (errno.ESTALE, "STORE_UNAVAILABLE")],
)
def test_an_error_of_the_mount_is_no_missing_file(
    shared_place: UPath, monkeypatch: pytest.MonkeyPatch, number: int, code: str
) -> None:
    (shared_place / "a").write_text("1")

    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("os.stat", fail)
    with pytest.raises(StoreError) as caught:
        shared_place.fs.info((shared_place / "a").path)
    assert caught.value.code == code


def test_a_folder_that_is_not_mounted_is_refused(tmp_path: Path) -> None:
    home = JobFolder(tmp_path / "home", "shop")
    missing = parse_location(f"shared://{tmp_path / 'missing'}")
    with pytest.raises(StoreError) as caught, held_stores(home, verb="start", chosen=missing):
        pass
    assert caught.value.code == "STORE_UNAVAILABLE"
    assert not (tmp_path / "missing").exists()


def test_one_of_two_supervisors_holds_a_job(tmp_path: Path, shared_place: UPath) -> None:
    homes = [JobFolder(tmp_path / name, "shop") for name in ("a", "b")]
    with (
        held_stores(homes[0], verb="start", chosen=shared_place),
        pytest.raises(HeadgateError) as caught,
        held_stores(homes[1], verb="start", chosen=shared_place),
    ):
        pass
    assert caught.value.code == "LEASE_HELD"
    with held_stores(homes[1], verb="start", chosen=shared_place):
        pass
