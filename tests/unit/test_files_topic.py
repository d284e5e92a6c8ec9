"""Embedded topics: what is part of one, how files come in, and how they are read."""

import errno
import itertools
import json
import multiprocessing
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from fake_clock import FakeClock
from hypothesis import given
from hypothesis import strategies as st

from headgate.connectors.contract.topics import check_topic_name
from headgate.connectors.files.folder import records
from headgate.connectors.files.folder.atomic import unique_name, write_new
from headgate.connectors.files.folder.ledger import LedgerEntry
from headgate.connectors.files.folder.records import count_records, follow, read_records, tail
from headgate.connectors.files.folder.topic import (
    TopicFolder,
    get_topic,
    list_topics,
)
from headgate.errors import Domain, HeadgateError


@pytest.fixture
def topic(tmp_path: Path) -> TopicFolder:
    folder = TopicFolder(tmp_path / "topics" / "orders")
    folder.create()
    return folder


def put(topic: TopicFolder, relative: str, content: bytes, modified: int | None = None) -> None:
    path = topic.path / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    if modified is not None:
        os.utime(path, (modified, modified))


def put_ledger(topic: TopicFolder, first: int, *paths: str, **changes: object) -> None:
    files = [{"path": path, "size": 1, "start": 0, "seen": 5} for path in paths]
    page = {"format": 1, "first": first, "files": files, **changes}
    put(topic, f"_ledger/{first:020d}.json", json.dumps(page).encode())


# Names


@pytest.mark.parametrize("name", ["orders", "a", "enriched-orders", "v2.orders_eu", "7", "-x"])
def test_a_topic_may_have_letters_digits_dots_and_dashes_in_its_name(name: str) -> None:
    assert check_topic_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "_ledger", ".hidden", ".", "..", "a/b", "a b", "orders\n", "bücher", "x" * 250],
)
def test_a_name_that_is_no_folder_of_ours_is_refused(name: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        check_topic_name(name)
    assert caught.value.code == "BAD_TOPIC_NAME"
    assert check_topic_name(caught.value.hint.removeprefix("try "))


# Creating


def test_create_writes_an_id_and_the_number_of_partitions(tmp_path: Path) -> None:
    folder = TopicFolder(tmp_path / "orders")
    assert not folder.exists
    assert folder.create(4)
    assert folder.exists
    assert folder.partitions == 4
    content = json.loads((folder.path / "_topic.json").read_bytes())
    assert content.keys() == {"format", "id", "created", "partitions"}
    assert content["format"] == 1
    assert len(bytes.fromhex(content["id"])) == 16


def test_create_again_changes_nothing_and_says_so(topic: TopicFolder) -> None:
    before = topic.get_meta()
    assert not topic.create()
    assert topic.get_meta() == before


def test_create_refuses_another_number_of_partitions(topic: TopicFolder) -> None:
    with pytest.raises(HeadgateError, match="it exists with 1") as caught:
        topic.create(2)
    assert caught.value.code == "TOPIC_EXISTS"
    assert topic.partitions == 1


def test_create_refuses_a_topic_without_partitions(tmp_path: Path) -> None:
    with pytest.raises(HeadgateError) as caught:
        TopicFolder(tmp_path / "orders").create(0)
    assert caught.value.code == "BAD_PARTITIONS"
    assert not (tmp_path / "orders").exists()


def test_create_adopts_a_folder_made_by_hand_with_its_files(tmp_path: Path) -> None:
    folder = TopicFolder(tmp_path / "orders")
    put(folder, "a.jsonl", b"{}\n")
    assert folder.partitions == 1
    assert folder.find_meta() is None
    assert folder.create(3)
    assert folder.partitions == 3
    assert [file.relative for file in folder.files()] == ["a.jsonl"]


def test_a_topic_that_lost_its_id_is_not_made_anew_over_its_ledger(tmp_path: Path) -> None:
    folder = TopicFolder(tmp_path / "orders")
    folder.create()
    page = {"path": "a.jsonl", "size": 3, "start": 0, "seen": 1}
    put(folder, "_ledger/00000000000000000000.json", _page(0, [page]))
    (folder.path / "_topic.json").unlink()
    with pytest.raises(HeadgateError, match="has a ledger") as caught:
        folder.create()
    assert caught.value.code == "TOPIC_UNREADABLE"
    assert not (folder.path / "_topic.json").exists()


def _page(first: int, files: list[dict[str, object]]) -> bytes:
    return json.dumps({"format": 1, "first": first, "files": files}).encode()


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b'{"format": 1}', b'{"format": 2, "id": "a"}', b"\xff"]
)
def test_a_damaged_or_newer_topic_file_is_told_by_name(topic: TopicFolder, content: bytes) -> None:
    put(topic, "_topic.json", content)
    with pytest.raises(HeadgateError) as caught:
        _ = topic.partitions
    assert caught.value.code == "TOPIC_UNREADABLE"
    assert caught.value.domain is Domain.EXTERNAL


# What is part of a topic


def test_files_at_any_depth_are_part_of_the_topic(topic: TopicFolder) -> None:
    put(topic, "a.jsonl", b"1\n", modified=1)
    put(topic, "part-7/b.jsonl", b"2\n", modified=2)
    put(topic, "2026/01/02/c.jsonl", b"33\n", modified=3)
    assert [f.relative for f in topic.files()] == [
        "a.jsonl",
        "part-7/b.jsonl",
        "2026/01/02/c.jsonl",
    ]


def test_hidden_names_and_other_endings_are_no_part_of_it(topic: TopicFolder) -> None:
    for relative in (
        "_tmp/a.jsonl",
        "part-0/_tmp/a.jsonl",
        ".git/a.jsonl",
        "_a.jsonl",
        ".a.jsonl",
        "a.json",
        "a.jsonl.gz",
        "a.JSONL",
        "part-0/a.jsonl.tmp",
    ):
        put(topic, relative, b"1\n")
    (topic.path / "folder.jsonl").mkdir()
    assert topic.files() == []
    assert count_records(topic) == 0


def test_a_file_renamed_into_the_folder_is_part_of_it(topic: TopicFolder, tmp_path: Path) -> None:
    (tmp_path / "export").write_bytes(b"{}\n")
    (tmp_path / "export").rename(topic.path / "export.jsonl")
    assert tail(topic, 1) == [b"{}"]


def test_files_come_by_ledger_number_then_by_time_then_by_path(topic: TopicFolder) -> None:
    put(topic, "late.jsonl", b"", modified=9)
    put(topic, "b.jsonl", b"", modified=5)
    put(topic, "a.jsonl", b"", modified=5)
    put(topic, "second.jsonl", b"", modified=1)
    put(topic, "first.jsonl", b"", modified=20)
    put_ledger(topic, 0, "first.jsonl", "gone.jsonl")
    put_ledger(topic, 2, "second.jsonl")
    assert [(file.relative, file.number) for file in topic.files()] == [
        ("first.jsonl", 0),
        ("second.jsonl", 2),
        ("a.jsonl", None),
        ("b.jsonl", None),
        ("late.jsonl", None),
    ]


def test_a_topic_that_is_not_there_has_no_files(tmp_path: Path) -> None:
    folder = TopicFolder(tmp_path / "nowhere")
    assert folder.files() == []
    assert tail(folder, 5) == []


# The ledger


def test_the_ledger_numbers_files_over_all_its_pages(topic: TopicFolder) -> None:
    put_ledger(topic, 0, "a.jsonl", "b.jsonl")
    put_ledger(topic, 2, "c.jsonl")
    assert topic.read_ledger() == [
        LedgerEntry(number, path, size=1, start=0, seen=5)
        for number, path in enumerate(["a.jsonl", "b.jsonl", "c.jsonl"])
    ]


def test_a_topic_that_was_never_read_has_an_empty_ledger(topic: TopicFolder) -> None:
    assert topic.read_ledger() == []


def test_a_page_in_the_making_is_not_read(topic: TopicFolder) -> None:
    put_ledger(topic, 0, "a.jsonl")
    put(topic, "_ledger/.00000000000000000001.json", b"half")
    assert len(topic.read_ledger()) == 1


def test_a_missing_page_is_told(topic: TopicFolder) -> None:
    put_ledger(topic, 0, "a.jsonl")
    put_ledger(topic, 2, "c.jsonl")
    with pytest.raises(HeadgateError, match="file number 1 is on no page") as caught:
        topic.read_ledger()
    assert caught.value.code == "TOPIC_LEDGER_BROKEN"


@pytest.mark.parametrize("change", [{"format": 2}, {"files": [{"path": "a"}]}, {"files": 3}])
def test_a_damaged_or_newer_page_is_told(topic: TopicFolder, change: dict[str, object]) -> None:
    put_ledger(topic, 0, "a.jsonl", **change)
    with pytest.raises(HeadgateError, match=r"0{20}\.json") as caught:
        topic.read_ledger()
    assert caught.value.code == "TOPIC_LEDGER_BROKEN"


def put_merged(
    topic: TopicFolder, first: int, *paths: str, changes: dict[str, object] | None = None
) -> None:
    files = [{"path": path, "size": 1, "start": 0, "seen": 5} for path in paths]
    page: dict[str, object] = {"format": 2, "first": first, "files": files}
    page |= changes or {}
    name = f"_ledger/{first:020d}-{first + len(paths):020d}.json"
    put(topic, name, json.dumps(page).encode())


def paths_of(topic: TopicFolder) -> list[str]:
    return [entry.path for entry in topic.read_ledger()]


def test_a_merged_page_stands_for_the_pages_it_was_made_of(topic: TopicFolder) -> None:
    put_merged(topic, 0, "a", "b", "c")
    put_ledger(topic, 3, "d", "e")
    assert paths_of(topic) == ["a", "b", "c", "d", "e"]
    assert [entry.number for entry in topic.read_ledger()] == [0, 1, 2, 3, 4]


def test_pages_that_a_crash_left_beside_their_merged_page_change_nothing(
    topic: TopicFolder,
) -> None:
    put_ledger(topic, 0, "a")
    put_ledger(topic, 1, "b", "c")
    put_merged(topic, 0, "a", "b", "c")
    put_ledger(topic, 3, "d")
    put_merged(topic, 1, "b", "c", "d")
    assert paths_of(topic) == ["a", "b", "c", "d"]


def test_a_merged_page_overrules_one_that_a_late_reader_wrote(topic: TopicFolder) -> None:
    put_merged(topic, 0, "a", "b", "c")
    put_ledger(topic, 1, "late")
    put_ledger(topic, 3, "d")
    assert paths_of(topic) == ["a", "b", "c", "d"]


def test_the_page_that_keeps_older_releases_away_holds_no_files(topic: TopicFolder) -> None:
    put_merged(topic, 0, "a", "b")
    put(topic, f"_ledger/{0:020d}.json", b'{"format": 2, "first": 0}')
    assert paths_of(topic) == ["a", "b"]


@pytest.mark.parametrize("change", [{"format": 1}, {"first": 1}, {"files": []}])
def test_a_damaged_merged_page_is_told(topic: TopicFolder, change: dict[str, object]) -> None:
    put_merged(topic, 0, "a", "b", changes=change)
    with pytest.raises(HeadgateError, match=r"0-0{19}2") as caught:
        topic.read_ledger()
    assert caught.value.code == "TOPIC_LEDGER_BROKEN"


# Finding


def test_list_topics_names_folders_only_and_in_order(topic: TopicFolder) -> None:
    root = topic.path.parent
    (root / "_internal").mkdir()
    (root / ".cache").mkdir()
    (root / "made by hand").mkdir()
    (root / "items").mkdir()
    (root / "notes.txt").write_text("no topic")
    assert [found.name for found in list_topics(root)] == ["items", "orders"]
    assert list_topics(root / "nowhere") == []


def test_get_topic_returns_one_that_is_there(topic: TopicFolder) -> None:
    assert get_topic(topic.path.parent, "orders") == topic


def test_get_topic_names_the_topics_there_are_when_it_finds_none(topic: TopicFolder) -> None:
    with pytest.raises(HeadgateError, match="it has orders") as caught:
        get_topic(topic.path.parent, "ordres")
    assert caught.value.code == "TOPIC_NOT_FOUND"


# Publishing


def test_a_published_file_has_its_content_and_leaves_no_draft(topic: TopicFolder) -> None:
    path = topic.publish(b'{"a":1}\n')
    assert path.parent == topic.path / "part-0"
    assert path.read_bytes() == b'{"a":1}\n'
    assert list((topic.path / "_tmp").iterdir()) == []


def test_publish_takes_pieces_and_waits_for_the_disk_if_asked(topic: TopicFolder) -> None:
    path = topic.publish((piece for piece in (b"1\n", b"2\n")), name="x.jsonl", sync=True)
    assert path.name == "x.jsonl"
    assert path.read_bytes() == b"1\n2\n"


def test_publish_goes_to_the_partition_it_is_told(tmp_path: Path) -> None:
    folder = TopicFolder(tmp_path / "orders")
    folder.create(2)
    assert folder.publish(b"1\n", partition=1).parent.name == "part-1"
    for partition in (-1, 2):
        with pytest.raises(HeadgateError) as caught:
            folder.publish(b"1\n", partition=partition)
        assert caught.value.code == "BAD_PARTITIONS"


def test_publish_never_replaces_a_file(topic: TopicFolder) -> None:
    topic.publish(b"first\n", name="epoch-1.jsonl")
    with pytest.raises(HeadgateError) as caught:
        topic.publish(b"second\n", name="epoch-1.jsonl")
    assert caught.value.code == "TOPIC_FILE_EXISTS"
    assert tail(topic, 9) == [b"first"]
    assert list((topic.path / "_tmp").iterdir()) == []


@pytest.mark.parametrize("name", ["a.json", "_a.jsonl", ".a.jsonl", "x/a.jsonl", "../a.jsonl", ""])
def test_publish_refuses_a_name_that_would_not_be_read(topic: TopicFolder, name: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        topic.publish(b"1\n", name=name)
    assert caught.value.code == "BAD_FILE_NAME"


def test_publish_refuses_a_topic_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(HeadgateError, match="it has no topics") as caught:
        TopicFolder(tmp_path / "orders").publish(b"1\n")
    assert caught.value.code == "TOPIC_NOT_FOUND"


def test_a_writer_that_fails_half_way_leaves_nothing(topic: TopicFolder) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"1\n"
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError):
        topic.publish(pieces())
    assert topic.files() == []
    assert list((topic.path / "_tmp").iterdir()) == []


def test_names_are_unique_and_sort_by_time() -> None:
    names = [unique_name() for _ in range(1000)]
    assert len(set(names)) == 1000
    moments = [int(name.split("-")[0]) for name in names]
    assert moments == sorted(moments)


def no_links(*_: object) -> None:
    raise OSError(errno.EOPNOTSUPP, "no hard links here")


def test_without_hard_links_a_file_is_still_never_replaced(
    topic: TopicFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", no_links)
    topic.publish(b"first\n", name="a.jsonl")
    with pytest.raises(HeadgateError) as caught:
        topic.publish(b"second\n", name="a.jsonl")
    assert caught.value.code == "TOPIC_FILE_EXISTS"
    assert tail(topic, 9) == [b"first"]
    assert list((topic.path / "_tmp").iterdir()) == []


@pytest.mark.parametrize("links", [True, False])
def test_of_writers_racing_for_one_name_exactly_one_wins(
    topic: TopicFolder, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    writers = 8
    for attempt in range(20):
        path = topic.path / f"{attempt}.jsonl"
        barrier = threading.Barrier(writers)

        def write(writer: int, path: Path = path, barrier: threading.Barrier = barrier) -> bool:
            barrier.wait()
            try:
                write_new(path, f"{writer}\n".encode() * 500, staging=topic.path / "_tmp")
            except FileExistsError:
                return False
            return True

        with ThreadPoolExecutor(writers) as pool:
            won = list(pool.map(write, range(writers)))
        assert won.count(True) == 1
        assert set(read_records(path)) == {str(won.index(True)).encode()}


def create_and_publish(path: Path, writer: int) -> tuple[bool, str]:
    folder = TopicFolder(path)
    made = folder.create(2)
    for number in range(50):
        lines = b"".join(b'{"writer":%d,"n":%d}\n' % (writer, number * 3 + i) for i in range(3))
        folder.publish(lines, partition=number % 2)
    return made, folder.get_meta().id


def test_processes_racing_to_make_a_topic_agree_on_it_and_lose_no_record(tmp_path: Path) -> None:
    writers = 3
    path = tmp_path / "topics" / "orders"
    with multiprocessing.get_context("spawn").Pool(writers) as pool:
        results = pool.starmap(create_and_publish, [(path, writer) for writer in range(writers)])
    assert [made for made, _ in results].count(True) == 1
    assert len({id_ for _, id_ in results}) == 1
    found = [json.loads(line) for line in tail(TopicFolder(path), 10_000)]
    assert sorted((row["writer"], row["n"]) for row in found) == [
        (writer, number) for writer in range(writers) for number in range(150)
    ]


# Reading


def test_tail_returns_the_last_records_over_files_in_order(topic: TopicFolder) -> None:
    put(topic, "a.jsonl", b"1\n2\n3\n", modified=1)
    put(topic, "b.jsonl", b"", modified=2)
    put(topic, "c.jsonl", b"4\n5", modified=3)
    assert tail(topic, 0) == []
    assert tail(topic, 1) == [b"5"]
    assert tail(topic, 3) == [b"3", b"4", b"5"]
    assert tail(topic, 99) == [b"1", b"2", b"3", b"4", b"5"]


def test_blank_lines_are_no_records(topic: TopicFolder) -> None:
    put(topic, "a.jsonl", b"\n\n1\n \t\n2\r\n\r\n\n  3 \n")
    assert tail(topic, 9) == [b"1", b"2", b"  3 "]
    assert count_records(topic) == 3


def test_tail_reads_only_the_end_of_a_large_file(
    topic: TopicFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (topic.path / "a.jsonl").open("wb") as file:
        file.truncate(1 << 36)  # a hole: reading it all would take minutes
        file.seek(0, 2)
        file.write(b"\nlast\n")
    monkeypatch.setattr(records, "_BACKWARD_BLOCK", 16)
    assert tail(topic, 1) == [b"last"]


line_files = st.lists(
    st.lists(st.sampled_from([b"1", b"", b" ", b"\r", b"22", b"\t \r", b"x" * 9])), max_size=3
)


@given(files=line_files, ended=st.booleans(), block=st.integers(1, 8), count=st.integers(0, 12))
def test_tail_and_count_agree_with_reading_everything_whatever_the_block(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[bytes]],
    ended: bool,
    block: int,
    count: int,
) -> None:
    topic = TopicFolder(tmp_path_factory.mktemp("topics") / "orders")
    for number, lines in enumerate(files):
        put(topic, f"{number}.jsonl", b"\n".join(lines) + b"\n" * ended, modified=number)
    everything = [
        line.removesuffix(b"\r") for lines in files for line in lines if line.strip(b" \t\r")
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "_BLOCK", block)
        patch.setattr(records, "_BACKWARD_BLOCK", block)
        assert tail(topic, count) == everything[len(everything) - min(count, len(everything)) :]
        assert count_records(topic) == len(everything)


def test_follow_yields_the_last_records_and_then_each_new_one_once(topic: TopicFolder) -> None:
    topic.publish(b"1\n2\n3\n")
    clock = FakeClock(
        steps=[
            lambda: None,
            lambda: topic.publish(b"4\n\n5\n"),
            lambda: put(topic, "by/hand.jsonl", b"6"),
            lambda: (topic.publish(b"7\n"), topic.publish(b"8\n")),
        ]
    )
    every = timedelta(seconds=2)
    lines = follow(topic, clock=clock, last=2, every=every)
    found = list(itertools.islice(lines, 7))
    assert found == [b"2", b"3", b"4", b"5", b"6", b"7", b"8"]
    assert clock.slept == [every] * 4


def test_follow_counts_as_new_what_comes_after_the_call(topic: TopicFolder) -> None:
    topic.publish(b"old\n")
    lines = follow(topic, clock=FakeClock(steps=()))
    topic.publish(b"new\n")
    assert next(lines) == b"new"


def test_follow_keeps_what_is_published_while_it_hands_out_records(topic: TopicFolder) -> None:
    lines = follow(topic, clock=FakeClock(steps=()))
    found = []
    for number in range(20):
        topic.publish(b"%d\n" % (2 * number))
        topic.publish(b"%d\n" % (2 * number + 1))
        found.append(next(lines))
    found.extend(itertools.islice(lines, 20))
    assert sorted(map(int, found)) == list(range(40))


def test_follow_waits_for_a_topic_that_is_not_there_yet(tmp_path: Path) -> None:
    folder = TopicFolder(tmp_path / "orders")
    clock = FakeClock(steps=[lambda: None, folder.create, lambda: folder.publish(b"1\n")])
    assert next(follow(folder, clock=clock)) == b"1"


def test_a_file_deleted_while_it_is_read_about_is_passed_over(topic: TopicFolder) -> None:
    gone = topic.path / "gone.jsonl"
    assert list(read_records(gone)) == []
    topic.publish(b"1\n")
    put(topic, "gone.jsonl", b"x\n")
    lines = follow(topic, clock=FakeClock(steps=[lambda: topic.publish(b"2\n")]), last=9)
    gone.unlink()
    assert list(itertools.islice(lines, 2)) == [b"1", b"2"]
