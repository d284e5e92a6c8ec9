"""Audits by key of a job on embedded topics, whose folder is made by hand."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from audited_job import BATCH, AuditedJob, make_job
from typer.testing import CliRunner, Result

from headgate import Flow, HeadgateError, windows
from headgate._codec import encode
from headgate.cli.app import app
from headgate.connectors.files.folder.topic import TopicFolder
from headgate.connectors.files.log import FilesLog
from headgate.connectors.logs import bind
from headgate.engine.settings import Delivery
from headgate.jobs.runs.lineage import Origin

ORDERS = 30


@dataclass(frozen=True, slots=True)
class Place:
    """A folder with the topics and the job of one test."""

    root: Path
    job: AuditedJob

    def write(self, topic: str, rows: Iterable[bytes], *, batch: int = 0, run: str = "") -> None:
        """Write a file of an output as a task of a run does."""
        name = f"{run or self.job.lineage}-{batch:010d}-00000.jsonl"
        folder = TopicFolder(self.root / topic)
        folder.create(1)
        folder.publish(b"".join(row + b"\n" for row in rows), name=name)


def order(number: int, **more: Any) -> bytes:
    return json.dumps({"order": number, "line": {"number": 1}, **more}).encode()


def letter(place: tuple[int, int], raw: bytes, *, origin: str = "orders") -> bytes:
    content = {
        "source": origin,
        "topic": "orders" if origin == "orders" else None,
        "partition": place[0],
        "offset": place[1],
        "timestamp": 1,
        "code": "BAD_JSON",
        "reason": "it is not JSON",
        "bytes": len(raw),
        "raw": base64.b64encode(raw).decode(),
    }
    return json.dumps(content).encode()


def fill(root: Path, files: Sequence[Sequence[bytes]]) -> list[list[int]]:
    """Write the input as files with a ledger; return where each line begins in its file."""
    folder = TopicFolder(root / "orders")
    folder.create(2)
    pages, starts, total = [], [], 0
    for number, lines in enumerate(files):
        data = b"".join(line + b"\n" for line in lines)
        path = folder.publish(data, partition=number % 2)
        relative = path.relative_to(folder.path).as_posix()
        pages.append({"path": relative, "size": len(data), "start": total, "seen": 1})
        starts.append([sum(len(line) + 1 for line in lines[:at]) for at in range(len(lines))])
        total += len(data)
    ledger = folder.path / "_ledger"
    ledger.mkdir()
    page = {"format": 1, "first": 0, "files": pages}
    (ledger / f"{0:020d}.json").write_text(json.dumps(page))
    return starts


def position(root: Path, file: int, byte: int) -> str:
    topic = TopicFolder(root / "orders").get_meta().id
    return json.dumps({"format": 1, "topic": topic, "file": file, "byte": byte})


def declare() -> Flow:
    flow = Flow("shop")
    orders = flow.stream("orders", "order BIGINT NOT NULL, line STRUCT<number: INT>")
    orders.to("copies")
    return flow


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Give a job that read three files of ten orders, of four, and wrote nothing yet."""
    root = tmp_path / "topics"
    fill(root, [[order(file * 10 + each) for each in range(10)] for file in range(4)])
    graph = bind(declare().graph(), FilesLog(root))
    ends = {"orders": position(root, 3, 0)}
    begins = {"orders": position(root, 0, 0)}
    return Place(root, make_job(tmp_path / "home", graph, ends, begins=begins))


def test_a_job_that_wrote_every_record_once_is_well(place: Place) -> None:
    place.write("copies", (order(each) for each in range(20)), batch=1)
    place.write("copies", (order(each) for each in range(20, ORDERS)), batch=2)
    found = place.job.audit(key=("order",))
    assert found.ok
    assert (found.lost, found.doubled, found.unknown) == (0, 0, 0)
    assert found.verdict == "Each key of 30 records is as often in the outputs."
    assert {name: each.records for name, each in found.sources["orders"].partitions.items()} == {
        "0": 20,
        "1": 10,
    }
    assert found.checkpoint == f"chk-{BATCH}"
    assert found.notes == ()


@pytest.mark.parametrize(("read", "written"), [("csv", "json"), ("json", "csv")])
def test_an_audit_by_key_of_other_formats_is_refused(
    tmp_path: Path, read: str, written: str
) -> None:
    flow = Flow("shop")
    orders = flow.stream("orders", "order BIGINT NOT NULL, name STRING", format=read)
    orders.to("copies", format=written)
    orders.to("plain")
    fill(tmp_path, [[order(1)]])
    ends, begins = {"orders": position(tmp_path, 0, 9)}, {"orders": position(tmp_path, 0, 0)}
    job = make_job(tmp_path / "home", bind(flow.graph(), FilesLog(tmp_path)), ends, begins=begins)
    with pytest.raises(HeadgateError) as caught:
        job.audit(key=("order",))
    assert caught.value.code == "AUDIT_FORMAT"
    assert "'csv'" in caught.value.message
    assert ("--output plain" in caught.value.hint) is (written == "csv")


def test_a_lost_and_a_doubled_record_are_found_and_named(place: Place) -> None:
    rows = [order(each) for each in range(ORDERS) if each != 13]
    place.write("copies", [*rows, order(7), order(7), order(99)], batch=1)
    found = place.job.audit(key=("order", "line.number"))
    assert not found.ok
    assert (found.lost, found.doubled, found.unknown) == (1, 2, 1)
    partitions = found.sources["orders"].partitions
    assert (partitions["1"].lost, partitions["0"].lost) == (1, 0)
    assert (partitions["0"].doubled, partitions["1"].doubled) == (2, 0)
    assert {(each.kind.value, each.key) for each in found.examples} == {
        ("lost", ("13", "1")),
        ("doubled", ("7", "1")),
        ("unknown", ("99", "1")),
    }
    assert found.verdict == (
        "1 record is lost, 2 rows are there too often and 1 row has no record."
    )


def windowed(tmp_path: Path, *, late: bool = False, copy: bool = False) -> Place:
    """Return a job that counts four orders in windows, each of which is read."""
    flow = Flow("shop")
    orders = flow.stream("orders", "order BIGINT NOT NULL, at TIMESTAMP", event_time="at")
    if copy:
        orders.to("copies")
    counted = (
        orders.key_by("order")
        .window("per-hour", windows.tumbling("1h"))
        .aggregate(n=windows.count())
    )
    counted.updates.to("counts")
    if late:
        counted.late.to("late")
    root = tmp_path / "topics"
    fill(root, [[order(each) for each in range(4)]])
    graph = bind(flow.graph(), FilesLog(root))
    job = make_job(tmp_path / "home", graph, {"orders": position(root, 1, 0)})
    return Place(root, job)


def test_records_that_end_in_a_window_are_not_reported_as_lost(tmp_path: Path) -> None:
    place = windowed(tmp_path, late=True)
    place.write("late", [order(3)])
    found = place.job.audit(key=("order",))
    assert found.ok
    assert (found.lost, found.doubled, found.examples) == (None, 0, ())
    assert found.verdict == "No row is there too often. Losses of orders were not judged."
    why = "window 'per-hour' makes rows of many records"
    assert f"losses of 'orders' cannot be found by key: {why}" in found.notes


def test_a_late_event_that_is_written_twice_is_doubled(tmp_path: Path) -> None:
    place = windowed(tmp_path, late=True)
    place.write("late", [order(3), order(3)])
    assert (place.job.audit(key=("order",)).doubled) == 1


def test_a_copy_of_a_stream_that_is_counted_in_windows_is_audited_in_full(tmp_path: Path) -> None:
    place = windowed(tmp_path, late=True, copy=True)
    place.write("copies", [order(0), order(1), order(2)])
    assert place.job.audit(key=("order",)).lost == 1


def test_a_flow_of_windows_alone_is_not_audited(tmp_path: Path) -> None:
    place = windowed(tmp_path)
    for key in (("order",), ()):
        with pytest.raises(HeadgateError) as caught:
            place.job.audit(key=key)
        assert caught.value.code == "AUDIT_WINDOWED"
        assert "add an output" in caught.value.hint


def test_what_is_written_twice_on_purpose_is_not_doubled_if_the_input_has_it_twice(
    tmp_path: Path,
) -> None:
    root = tmp_path / "topics"
    fill(root, [[order(1), order(1), order(2)]])
    graph = bind(declare().graph(), FilesLog(root))
    job = make_job(tmp_path / "home", graph, {"orders": position(root, 1, 0)})
    Place(root, job).write("copies", [order(2), order(1), order(1)])
    found = job.audit(key=("order",))
    assert found.ok
    assert "is unknown: audited from the earliest" in found.notes[0]


def test_rows_of_batches_that_are_not_committed_are_ahead(place: Place) -> None:
    place.write("copies", (order(each) for each in range(ORDERS)), batch=BATCH)
    place.write("copies", (order(each) for each in range(30, 35)), batch=BATCH + 1)
    found = place.job.audit(key=("order",))
    assert found.ok
    assert encode(found)["ahead"] == 5


def test_rows_of_other_runs_and_of_nobody_are_passed_over(place: Place) -> None:
    place.write("copies", (order(each) for each in range(ORDERS)))
    place.write("copies", [order(1), order(2)], run="20250101T000000-abcdef")
    TopicFolder(place.root / "copies").publish(order(3) + b"\n", name="mine.jsonl")
    found = place.job.audit(key=("order",))
    assert found.ok
    assert (found.outputs["copies"].rows, found.outputs["copies"].other_runs) == (ORDERS, 2)
    assert found.outputs["copies"].foreign == 1


def test_a_restored_run_is_audited_from_where_it_began(tmp_path: Path) -> None:
    root = tmp_path / "topics"
    fill(root, [[order(each) for each in range(10)], [order(each) for each in range(10, 20)]])
    graph = bind(declare().graph(), FilesLog(root))
    origin = Origin("chk-2", "20250101T000000-abcdef", 2, began={"orders": position(root, 1, 0)})
    job = make_job(
        tmp_path / "home",
        graph,
        {"orders": position(root, 2, 0)},
        # Copied from the run it was restored from, which began at the beginning.
        begins={"orders": position(root, 0, 0)},
        origin=origin,
    )
    Place(root, job).write("copies", (order(each) for each in range(10, 20)))
    found = job.audit(key=("order",))
    assert found.ok
    assert found.records == 10


def test_what_an_earlier_run_wrote_and_a_later_one_repeated_is_doubled(place: Place) -> None:
    before = place.job.run
    after = make_job(
        place.job.home.root,
        before.flow,
        {"orders": position(place.root, 3, 0)},
        origin=Origin("chk-1", before.lineage, 1, began={"orders": position(place.root, 1, 0)}),
    )
    place.write("copies", (order(each) for each in range(10)), batch=1)
    place.write("copies", (order(each) for each in range(10, 15)), batch=2)
    # Of a record that the later run has not come to yet.
    place.write("copies", [order(35)], batch=3)
    Place(place.root, after).write("copies", (order(each) for each in range(10, 30)), batch=2)
    found = after.audit(key=("order",))
    assert (found.records, found.lost, found.doubled, found.unknown) == (30, 0, 5, 0)
    assert not found.ok
    assert {each.key for each in found.examples} == {(str(each),) for each in range(10, 15)}
    assert (found.outputs["copies"].rows, found.outputs["copies"].other_runs) == (20, 16)
    assert after.audit(key=("order",), lineage=after.lineage).ok


def test_an_earlier_run_with_other_outputs_counts_from_where_it_was_left(place: Place) -> None:
    flow = declare()
    flow.stream("more", "id BIGINT NOT NULL").to("more-copies")
    before = place.job.run
    after = make_job(
        place.job.home.root,
        bind(flow.graph(), FilesLog(place.root)),
        {"orders": position(place.root, 3, 0), "more": None},
        origin=Origin("chk-1", before.lineage, 1, began={"orders": position(place.root, 1, 0)}),
    )
    place.write("copies", (order(each) for each in range(10)), batch=1)
    place.write("copies", [order(10)], batch=2)
    Place(place.root, after).write("copies", (order(each) for each in range(10, 30)), batch=2)
    found = after.audit(key=("order",), source="orders")
    assert (found.records, found.lost, found.doubled, found.unknown) == (20, 0, 1, 0)
    assert any(before.lineage in note for note in found.notes)


def test_a_position_in_the_middle_of_a_file_is_kept_to_the_line(tmp_path: Path) -> None:
    root = tmp_path / "topics"
    (starts,) = fill(root, [[order(each) for each in range(10)]])
    graph = bind(declare().graph(), FilesLog(root))
    job = make_job(
        tmp_path / "home",
        graph,
        # A line belongs to the range it begins in.
        {"orders": position(root, 0, starts[7] + 3)},
        begins={"orders": position(root, 0, starts[2] - 1)},
    )
    Place(root, job).write("copies", (order(each) for each in range(2, 8)))
    found = job.audit(key=("order",))
    assert found.ok
    assert found.records == 6


def test_dead_letters_count_by_the_place_of_their_record(tmp_path: Path) -> None:
    root = tmp_path / "topics"
    (starts,) = fill(root, [[order(0), b"no json", order(2), order(3), b"cut short"]])
    graph = bind(declare().graph(), FilesLog(root))
    job = make_job(tmp_path / "home", graph, {"orders": position(root, 1, 0)})
    place = Place(root, job)
    place.write("copies", [order(0)])
    failed = "output 'copies'"
    letters = [letter((0, starts[1]), b"no json"), letter((0, starts[2]), order(2))]
    place.write("dead-letters", [*letters, letter((0, starts[3]), order(3), origin=failed)])
    found = job.audit(key=("order",))
    assert (found.lost, found.doubled) == (0, 0)
    assert found.sources["orders"].keyless == 1
    assert found.records == 4
    place.write("dead-letters", [letters[0]], batch=1)
    again = job.audit(key=("order",))
    assert (again.lost, again.doubled) == (0, 1)
    assert [each.place for each in again.examples] == [f"orders/0/{starts[1]}"]


def test_only_the_outputs_that_are_named_are_looked_at(place: Place) -> None:
    place.write("copies", (order(each) for each in range(ORDERS)))
    found = place.job.audit(key=("order",), outputs=("dead-letters",))
    assert found.lost == ORDERS
    assert list(found.outputs) == ["dead-letters"]


def test_doubled_rows_are_told_and_allowed_where_delivery_is_at_least_once(
    tmp_path: Path,
) -> None:
    root = tmp_path / "topics"
    fill(root, [[order(1)]])
    graph = bind(declare().graph(), FilesLog(root))
    ends = {"orders": position(root, 1, 0)}
    job = make_job(tmp_path / "home", graph, ends, delivery=Delivery.AT_LEAST_ONCE)
    Place(root, job).write("copies", [order(1), order(1)])
    found = job.audit(key=("order",))
    assert (found.ok, found.doubled) == (True, 1)
    assert "at-least-once" in found.verdict


def test_positions_cannot_be_compared_on_embedded_topics(place: Place) -> None:
    with pytest.raises(HeadgateError) as told:
        place.job.audit()
    assert told.value.code == "AUDIT_NEEDS_KEY"
    assert told.value.hint.endswith("headgate audit shop --source orders --key order")


def test_a_topic_that_was_made_anew_cannot_be_audited(place: Place) -> None:
    (place.root / "orders" / "_topic.json").unlink()
    shutil.rmtree(place.root / "orders" / "_ledger")
    TopicFolder(place.root / "orders").create(2)
    with pytest.raises(HeadgateError) as told:
        place.job.audit(key=("order",))
    assert told.value.code == "AUDIT_INPUT_GONE"


def test_a_file_that_was_read_and_is_gone_cannot_be_audited(place: Place) -> None:
    # Names sort by time: the first of the partition lies in the range.
    min((place.root / "orders" / "part-1").iterdir()).unlink()
    with pytest.raises(HeadgateError) as told:
        place.job.audit(key=("order",))
    assert told.value.code == "AUDIT_INPUT_GONE"


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"source": "oders"}, "NODE_UNKNOWN"),
        ({"outputs": ("copy",)}, "NODE_UNKNOWN"),
        ({"key": ("nothing",)}, "UNKNOWN_COLUMN"),
        ({"key": ("a b",)}, "UNKNOWN_COLUMN"),
        ({"lineage": "20250101T000000-abcdef"}, "RUN_NOT_FOUND"),
        ({"at": "chk-99"}, "CHECKPOINT_NOT_FOUND"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(
    place: Place, asked: dict[str, Any], code: str
) -> None:
    with pytest.raises(HeadgateError) as told:
        place.job.audit(**{"key": ("order",), **asked})
    assert told.value.code == code
    assert told.value.hint


def test_a_run_of_which_nothing_has_committed_is_refused(place: Place) -> None:
    (place.job.run.checkpoint / "commits" / str(BATCH)).unlink()
    with pytest.raises(HeadgateError) as told:
        place.job.audit(key=("order",))
    assert told.value.code == "NOTHING_COMMITTED"


def run(place: Place, *args: str) -> Result:
    home = str(place.job.home.root)
    return CliRunner().invoke(app, ["audit", "shop", "--home", home, *args])


def test_the_verb_tells_of_partitions_outputs_and_examples_and_exits_with_1(place: Place) -> None:
    place.write("copies", (order(each) for each in range(ORDERS) if each != 13))
    done = run(place, "--key", "order, line.number")
    assert done.exit_code == 1, done.output
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert f"Job 'shop', run {place.job.lineage}, up to chk-4, by key order, line.number" in lines
    assert "source partition records written lost doubled unknown ahead" in lines
    assert "orders 1 10 9 1 0 0 0" in lines
    assert "copies 29 0 0" in lines
    assert "lost orders 13, 1" in lines
    assert lines[-1] == "1 record is lost."


def test_the_verb_exits_with_0_and_prints_json_where_all_is_well(place: Place) -> None:
    place.write("copies", (order(each) for each in range(ORDERS)))
    done = run(place, "--key", "order", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["ok"] is True
    assert told["by"] == "key"
    assert told["job"] == "shop"
    assert told["lineage"] == place.job.lineage
    assert told["checkpoint"] == "chk-4"
    assert told["outputs"] == {"copies": ORDERS, "dead-letters": 0}
    assert told["sources"]["orders"]["partitions"]["1"] == {
        "records": 10,
        "written": 10,
        "lost": 0,
        "doubled": 0,
        "ahead": 0,
        "unknown": 0,
    }
    assert (told["lost"], told["doubled"], told["examples"]) == (0, 0, [])


def test_outputs_are_named_with_a_key_alone(place: Place) -> None:
    done = run(place, "--output", "copies")
    assert done.exit_code == 2
    assert "--output needs --key" in done.stderr
