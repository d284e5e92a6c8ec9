"""What a run has staged and published in a folder, as commands and the console see it."""

from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from audited_job import make_job
from pyarrow import orc, parquet

from headgate import Flow, Folder, HeadgateError
from headgate._codec import encode
from headgate.connectors.contract.written import MAYBE_ALIVE, NOTHING, Answer, Batches, Writers
from headgate.connectors.files.log import FilesLog
from headgate.connectors.folder.places import FolderPlaces
from headgate.connectors.folder.written import find_hidden, find_written
from headgate.connectors.logs import bind
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.runs.left_rows import check_left_rows

RUN = "20261119T101112-abcdef"
NOON = datetime(2026, 11, 19, 12, tzinfo=UTC)


def stage(folder: Path, batch: int, task: int, rows: int, *, run: str = RUN) -> None:
    """Leave a hidden file as the kernel does; its rows are no concern of Python's."""
    file = folder / "_headgate" / run / "staged" / f"{batch:010d}-{task:05d}.rows"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"HGS\x01" + b"x" * 100 + rows.to_bytes(8, "big"))
    os.utime(file, (NOON.timestamp() + batch, NOON.timestamp() + batch))


def roll(folder: Path, first: int, last: int) -> None:
    file = folder / "_headgate" / RUN / "rolls" / f"{first:010d}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"format": 1, "first": first, "last": last, "parts": []}))


def answer(folder: Path, first: int, last: int | None, *, run: str = RUN, gone: bool = True):  # type: ignore[no-untyped-def]
    writers = Writers(run, f"headgate.x.{run}", (), are_gone=gone)
    topics = {"out": Folder(folder, "out")}
    return find_written(topics, writers, Batches(first, last, NOON))["out"]


def test_a_batch_is_written_if_a_task_has_staged_rows_of_it(tmp_path: Path) -> None:
    assert answer(tmp_path, 0, None) == NOTHING
    stage(tmp_path, 7, 0, 3)
    stage(tmp_path, 7, 1, 4)
    stage(tmp_path, 8, 1, 5)
    found = answer(tmp_path, 7, 7)
    assert (found.answer, found.rows, found.tasks) == (Answer.YES, 7, 2)
    assert answer(tmp_path, 7, None).rows == 12
    assert answer(tmp_path, 9, None) == NOTHING
    assert answer(tmp_path, 7, 7, run="20261119T101112-000000") == NOTHING
    assert answer(tmp_path, 7, 7, gone=False) == MAYBE_ALIVE


def test_of_published_batches_it_is_unknown_which_had_rows(tmp_path: Path) -> None:
    roll(tmp_path, 0, 4)
    roll(tmp_path, 5, 8)
    assert answer(tmp_path, 8, 8).answer is Answer.UNKNOWN
    assert answer(tmp_path, 9, None) == NOTHING


def test_rows_are_hidden_until_a_roll_has_them(tmp_path: Path) -> None:
    topic = Folder(tmp_path, "out")
    assert find_hidden(topic, RUN) is None
    stage(tmp_path, 5, 0, 2)
    stage(tmp_path, 6, 0, 3)
    hidden = find_hidden(topic, RUN)
    assert hidden is not None
    assert encode(hidden) == {"rows": 5, "bytes": 224, "since": "2026-11-19T12:00:05+00:00"}
    roll(tmp_path, 0, 5)
    hidden = find_hidden(topic, RUN)
    assert hidden is not None
    assert hidden.rows == 3


def declare(*folders: Folder) -> Flow:
    flow = Flow("shop")
    rows = flow.stream("rows", "id BIGINT, name STRING")
    for folder in folders:
        rows.to(folder)
    return flow


def test_an_output_says_how_many_rows_are_not_visible_yet(tmp_path: Path) -> None:
    out = Folder(tmp_path / "out")
    job = make_job(tmp_path / "home", bind(declare(out).graph(), FilesLog(tmp_path / "t")), {})
    lineage = job.home.find_present_run()
    assert lineage is not None
    stage(tmp_path / "out", 1, 0, 9, run=lineage)
    found = {view.id: view for view in FolderHome(tmp_path / "home").outputs("shop")}
    assert found["out"].hidden is not None
    assert found["out"].hidden.rows == 9
    assert found["dead-letters"].hidden is None
    assert "hidden" not in encode(found["dead-letters"])


def test_a_flow_that_leaves_hidden_rows_behind_is_refused(tmp_path: Path) -> None:
    log = FilesLog(tmp_path / "t")
    here, there = Folder(tmp_path / "out"), Folder(tmp_path / "other")
    job = make_job(tmp_path / "home", bind(declare(here).graph(), log), {})
    lineage = job.home.find_present_run()
    moved = bind(declare(there).graph(), log)
    check_left_rows(job.home, lineage, moved)
    stage(tmp_path / "out", 1, 0, 9, run=str(lineage))
    with pytest.raises(HeadgateError, match="9 rows of its output 'out'") as caught:
        check_left_rows(job.home, lineage, moved)
    assert caught.value.code == "ROWS_NOT_PUBLISHED"
    check_left_rows(job.home, lineage, bind(declare(here, there).graph(), log))
    again = Folder(tmp_path / "out", "renamed", roll_age="1m", format="csv")
    check_left_rows(job.home, lineage, bind(declare(again).graph(), log))
    check_left_rows(job.home, None, moved)


def last(folder: Folder, count: int) -> list[str]:
    records = FolderPlaces(folder).last(count)
    return [(record.value or b"").decode() for record in records]


def test_the_last_rows_are_those_of_the_newest_visible_files(tmp_path: Path) -> None:
    old, new = tmp_path / "day=1" / "a.jsonl", tmp_path / "day=2" / "b.jsonl.gz"
    old.parent.mkdir()
    new.parent.mkdir()
    old.write_text('{"n": 1}\n{"n": 2}\n')
    new.write_bytes(gzip.compress(b'{"n": 3}\n{"n": 4}\n'))
    os.utime(old, (1, 1))
    stage(tmp_path, 1, 0, 1)
    (tmp_path / ".b.making").write_text("half")
    folder = Folder(tmp_path, "out", partition_by="day")
    assert last(folder, 3) == ['{"n": 2}', '{"n": 3}', '{"n": 4}']
    assert last(folder, 9) == ['{"n": 1}', '{"n": 2}', '{"n": 3}', '{"n": 4}']
    assert last(folder, 0) == []
    (record,) = FolderPlaces(folder).last(1)
    assert record.place == "day=2/b.jsonl.gz:1"
    assert last(Folder(tmp_path / "none", "out"), 5) == []


def test_the_header_of_csv_is_no_row_and_columnar_files_are_shown_as_json(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("id,name\n1,a\n2,b\n")
    assert last(Folder(tmp_path, "out", format="csv"), 9) == ["1,a", "2,b"]
    table = pa.table({"id": [1, 2], "name": ["é", None]})
    for form, write in (("parquet", parquet.write_table), ("orc", orc.write_table)):
        folder = tmp_path / form
        folder.mkdir()
        write(table, folder / f"x.{form}")
        assert last(Folder(folder, format=form), 1) == ['{"id": 2, "name": null}']


def test_rows_of_avro_files_are_left_to_other_programs(tmp_path: Path) -> None:
    (tmp_path / "x.avro").write_bytes(b"Obj\x01")
    with pytest.raises(HeadgateError) as caught:
        last(Folder(tmp_path, "out", format="avro"), 1)
    assert caught.value.code == "TOPIC_OPTION_UNSUPPORTED"
