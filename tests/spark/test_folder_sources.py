"""Jobs that read folders of data files: each row once, whatever happens in between."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, bag
from folder_files import Row, encode, file_name, publish, rows

from headgate import Files, Flow, Folder, HeadgateError
from headgate.checkpoints.log_sums import render_sums
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.values import JobSnapshot

SCHEMA = "n BIGINT NOT NULL, text STRING"
FORMS = ("json", "csv", "text", "parquet", "orc", "avro")


def to_files(name: str, bench: Bench) -> Files:
    return Files(name, dir=bench.topics / name)


def copying(source: Folder, bench: Bench, *, schema: str = SCHEMA, name: str = "copy") -> Flow:
    """Return a flow that writes what it reads as JSON lines."""
    flow = Flow(name, dead_letters=to_files("dead-letters", bench))
    flow.stream(source, schema).to(to_files("out", bench))
    return flow


def schema_of(form: str) -> str:
    return "text STRING" if form == "text" else SCHEMA


def seen(form: str, some: Iterable[Row]) -> list[Row]:
    """Return rows as a format keeps them."""
    return [{"text": row["text"]} if form == "text" else row for row in some]


def test_each_row_of_each_format_is_read_once(bench: Bench) -> None:
    """All formats in one flow, so that one job reads them all; small batches cut files anywhere."""
    flow = Flow("all", dead_letters=to_files("dead-letters", bench))
    folders: dict[tuple[str, str], Path] = {}
    written: dict[str, list[Row]] = {}
    for form in FORMS:
        for compression in ("none", "gzip", "zstd", "snappy"):
            name = f"{form}-{compression}"
            folder = folders[form, compression] = bench.root / "in" / name
            for number in range(3):
                some = rows(number * 1000, 300)
                written.setdefault(name, []).extend(seen(form, some))
                content = encode(form, some, compression=compression)
                publish(folder / file_name(form, f"file {number}", compression), content)
            source = flow.stream(Folder(folder, format=form), schema_of(form))
            source.to(to_files(f"out-{name}", bench))
    done = bench.run(flow, max_batch=40_000)
    assert done.state is JobState.FINISHED
    assert bench.read("dead-letters") == []
    for name, expected in written.items():
        assert bench.bag(f"out-{name}") == bag(expected), name
    for (form, compression), folder in folders.items():
        some = rows(9000, 10)
        written[f"{form}-{compression}"] += seen(form, some)
        content = encode(form, some, compression=compression)
        # Older than what was read: no time says up to where a folder was read.
        later = publish(folder / "later" / file_name(form, "more", compression), content)
        os.utime(later, (1_000_000_000, 1_000_000_000))
    bench.run(flow)
    for name, expected in written.items():
        assert bench.bag(f"out-{name}") == bag(expected), name


def test_a_killed_job_reads_each_row_once(bench: Bench) -> None:
    """The driver dies while batches run, more than once; files appear in between."""
    folder, expected = bench.root / "in", []
    for number in range(6):
        some = rows(number * 1000, 700)
        expected += some
        publish(folder / f"{number}.parquet", encode("parquet", some))
    flow = bench.flow_file(copying(Folder(folder, format="parquet"), bench))
    for kill in range(2):
        child = bench.spawn(flow, max_batch=18_000)
        out = bench.topics / "out"
        before = len(list(out.rglob("*.jsonl")))
        while child.poll() is None and len(list(out.rglob("*.jsonl"))) < before + 2 + kill:
            time.sleep(0.05)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        some = rows(100_000 + kill * 1000, 50)
        expected += some
        publish(folder / f"later-{kill}.parquet", encode("parquet", some))
    done = bench.run(flow, max_batch=18_000)
    assert done.state is JobState.FINISHED
    assert bench.bag("out") == bag(expected)


def test_a_later_file_has_a_later_number_whatever_its_name_is(bench: Bench) -> None:
    folder = bench.root / "in"
    publish(folder / "b.jsonl", encode("json", rows(0, 10)))
    done = bench.run(copying(Folder(folder), bench))
    assert done.totals.inputs == {"in": 10}
    publish(folder / "a.jsonl", encode("json", rows(10, 10)))
    bench.run(copying(Folder(folder), bench))
    assert bench.bag("out") == bag(rows(0, 20))
    pages = sorted(bench.home.rglob("ledger-v1-*.json"))
    paths = [each["path"] for page in pages for each in json.loads(page.read_text())["files"]]
    assert "b.jsonl" in paths
    assert paths.index("a.jsonl") > paths.index("b.jsonl")


CORRUPTED = {
    "json": (b'{"n": 1, "text": "a"}\n{"n": \n{"n": "x"}\n', 1, ["BAD_JSON", "WRONG_TYPE"]),
    "csv": (b"n,text\n1,a\nx,b\n2\n", 1, ["WRONG_TYPE", "BAD_CSV"]),
    "text": (b"good\n\xff\xfe\n", 1, ["NOT_UTF8"]),
}


def test_corrupted_files_are_dead_letters(bench: Bench) -> None:
    flow = Flow("bad", dead_letters=to_files("dead-letters", bench))
    letters: dict[str, list[str]] = {}
    good: dict[str, list[Row]] = {}

    def put(name: str, form: str, files: dict[str, bytes], expected: list[Row]) -> None:
        for file, content in files.items():
            publish(bench.root / "in" / name / file, content)
        source = flow.stream(Folder(bench.root / "in" / name, format=form), schema_of(form))
        source.to(to_files(f"out-{name}", bench))
        good[name] = expected

    for form, (content, _, codes) in CORRUPTED.items():
        put(
            form,
            form,
            {"x": content},
            [{"text": "good"} if form == "text" else {"n": 1, "text": "a"}],
        )
        letters[form] = codes
    for form in ("parquet", "orc", "avro"):
        whole = encode(form, rows(0, 300))
        files = {
            "a-good": whole,
            "b-text": b"this is no such file\n" * 50,
            "c-cut": whole[: len(whole) // 2],
            "d-empty": b"",
        }
        put(form, form, files, rows(0, 300))
        letters[form] = ["BAD_FILE"] * 3
    for suffix, compression in (("gz", "gzip"), ("zst", "zstd"), ("snappy", "snappy")):
        packed = encode("json", rows(0, 300), compression=compression)
        files = {f"a.{suffix}": packed, f"b.{suffix}": b"not compressed at all"}
        put(compression, "json", files, rows(0, 300))
        letters[compression] = ["BAD_FILE"]
        put(f"cut-{compression}", "json", {f"a.{suffix}": packed[: len(packed) // 2]}, [])
        # What comes before the end may end within a line.
        letters[f"cut-{compression}"] = ["BAD_FILE"]
    done = bench.run(flow)
    assert done.state is JobState.FINISHED
    found: dict[str, list[Any]] = {}
    for letter in bench.read("dead-letters"):
        found.setdefault(letter["source"], []).append(letter)
        assert "; in file " in letter["reason"]
    assert {name: sorted(each["code"] for each in some) for name, some in found.items()} == {
        name: sorted(codes) for name, codes in letters.items()
    }
    assert done.totals.outputs["dead-letters"] == sum(map(len, letters.values()))
    for name, expected in good.items():
        if name.startswith("cut-") or name == "avro":
            # Of a file that was cut, what comes before the end are rows.
            assert set(bench.bag(f"out-{name}")) <= set(bag(rows(0, 300))), name
        else:
            assert bench.bag(f"out-{name}") == bag(expected), name
    assert len(bench.read("out-avro")) > 300


def test_partition_columns_are_columns(bench: Bench) -> None:
    folder = bench.root / "in"
    for day, hour, n in (("2026-11-15", "7", 1), ("2026-11-16", "__HIVE_DEFAULT_PARTITION__", 2)):
        publish(folder / f"day={day}" / f"hour={hour}" / "x.parquet", encode("parquet", rows(n, 1)))
    publish(folder / "day=soon" / "hour=1" / "x.parquet", encode("parquet", rows(8, 1)))
    publish(folder / "hour=1" / "x.parquet", encode("parquet", rows(9, 1)))
    source = Folder(folder, format="parquet", partition_by=("day", "hour"))
    schema = "n BIGINT NOT NULL, day DATE NOT NULL, text STRING, hour INT"
    bench.run(copying(source, bench, schema=schema))
    assert bench.bag("out") == bag(
        [
            {"n": 1, "day": "2026-11-15", "text": "text 1 é😀", "hour": 7},
            {"n": 2, "day": "2026-11-16", "text": "text 2 é😀", "hour": None},
        ]
    )
    assert sorted(each["code"] for each in bench.read("dead-letters")) == ["BAD_FILE"] * 2


def test_a_changed_or_deleted_file_is_lost_data(bench: Bench) -> None:
    folder = bench.root / "in"
    for number in range(4):
        publish(folder / f"{number}.jsonl", encode("json", rows(number * 100, 8)))
    flow = copying(Folder(folder), bench)

    def delete_the_last(snapshot: JobSnapshot) -> None:
        if sum(snapshot.totals.inputs.values()):
            (folder / "3.jsonl").unlink(missing_ok=True)

    with pytest.raises(HeadgateError) as caught:
        bench.run(flow, max_batch=1, watch=delete_the_last)
    assert caught.value.code == "DATA_LOST"
    assert "3.jsonl" in caught.value.message
    # What was changed after it had been read is lost as well: either file may be reported first.
    publish(folder / "0.jsonl", encode("json", rows(7000, 200)))
    with pytest.raises(HeadgateError) as caught:
        bench.run(flow)
    assert caught.value.code == "DATA_LOST"
    done = bench.run(flow, on_data_loss="continue")
    assert done.state is JobState.FINISHED
    assert bench.bag("out") == bag(rows(0, 8) + rows(100, 8) + rows(200, 8))


def test_names_of_files_in_the_making_are_no_files(bench: Bench) -> None:
    folder = bench.root / "in"
    names = ("a.jsonl", "a b#c%20d?&=+.jsonl", "10:30 é😀.jsonl", "x/y=z/deep.jsonl")
    for number, name in enumerate(names):
        publish(folder / name, encode("json", rows(number, 1)))
    for name in (
        "_b.jsonl",
        ".c.jsonl",
        "d.jsonl.tmp",
        "e.jsonl._COPYING_",
        "_x/f.jsonl",
        ".g.crc",
    ):
        publish(folder / name, b"no JSON")
    publish(folder / "other.txt", b"no JSON")
    bench.run(copying(Folder(folder, glob="*.jsonl"), bench))
    assert bench.bag("out") == bag(rows(0, len(names)))
    assert bench.read("dead-letters") == []


def test_a_start_at_a_time_is_refused(bench: Bench) -> None:
    flow = copying(Folder(bench.root / "in"), bench)
    with pytest.raises(HeadgateError, match="earliest or latest"):
        bench.run(flow, start=("in=2026-11-15T10:00",))


@pytest.mark.long
def test_a_hundred_thousand_files_are_read_once(bench: Bench) -> None:
    """The ledger has few pages, however many looks there were."""
    folder, count = bench.root / "in", 100_000
    for number in range(count):
        file = folder / f"{number % 100}" / f"{number}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b'{"n": %d}\n' % number)
    begun = time.monotonic()
    done = bench.run(copying(Folder(folder), bench, schema="n BIGINT NOT NULL"))
    print(f"{time.monotonic() - begun:.0f} s")
    assert done.totals.inputs == {"in": count}
    assert bench.bag("out") == bag({"n": n} for n in range(count))
    begun = time.monotonic()
    done = bench.run(copying(Folder(folder), bench, schema="n BIGINT NOT NULL"))
    assert done.totals.inputs == {"in": 0}
    print(f"{time.monotonic() - begun:.0f} s for a start")
    assert len(list(bench.home.rglob("checkpoint/sources/in/ledger-v1-*.json"))) == 5


def test_many_pages_are_merged_and_mean_the_same(bench: Bench) -> None:
    """A page for each of 60 looks; the numbers do not follow names or times."""
    folder, flow = bench.root / "in", copying(Folder(bench.root / "in"), bench)
    publish(folder / "first.jsonl", encode("json", rows(0, 1)))
    bench.run(flow)
    kept = next(bench.home.rglob("checkpoint/sources/in"))
    for number in range(1, 61):
        file = folder / f"{number * 7 % 61}.jsonl"
        state = publish(file, encode("json", rows(number, 1))).stat()
        modified = state.st_mtime_ns // 1_000_000
        files = [{"path": file.name, "size": state.st_size, "modified": modified}]
        content = json.dumps({"format": 1, "files": files}).encode()
        page = kept / f"ledger-v1-{number:012}-{number + 1:012}.json"
        page.write_bytes(content)
        page.with_name(f"{page.name}.crc").write_text(render_sums(content))
    publish(folder / "last.jsonl", encode("json", rows(61, 1)))
    assert bench.run(flow).totals.inputs == {"in": 61}
    assert bench.bag("out") == bag(rows(0, 62))
    sizes = {page.name: len(json.loads(page.read_text())["files"]) for page in pages_in(kept)}
    assert max(sizes.values()) > 30
    publish(folder / "more.jsonl", encode("json", rows(62, 1)))
    assert bench.run(flow).totals.inputs == {"in": 1}
    # A page that is gone is found by its numbers, and the job ends before it reads anything.
    for page in pages_in(kept):
        page.unlink()
        page.with_name(f"{page.name}.crc").unlink()
    with pytest.raises(HeadgateError) as caught:
        bench.run(flow)
    assert caught.value.code == "TOPIC_LEDGER_BROKEN"
    assert bench.bag("out") == bag(rows(0, 63))


def pages_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("ledger-v1-*-*.json"))
