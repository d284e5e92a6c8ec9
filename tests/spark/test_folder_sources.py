"""Jobs that read folders of data files: each row once, whatever happens in between."""

from __future__ import annotations


import pytest
from bench import Bench, bag
from folder_files import encode, file_name, publish, rows

from headgate import Files, Flow, Folder
from headgate.jobs.lifecycle.states import JobState

SCHEMA = "n BIGINT NOT NULL, text STRING"


def copying(source: Folder, bench: Bench, *, schema: str = SCHEMA, name: str = "copy") -> Flow:
    """Return a flow that writes what it reads as JSON lines."""
    flow = Flow(name, dead_letters=Files("dead-letters", dir=bench.topics / "dead-letters"))
    flow.stream(source, schema).to(Files("out", dir=bench.topics / "out"))
    return flow


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd", "snappy"])
@pytest.mark.parametrize("form", ["json", "parquet", "orc"])
def test_each_row_of_each_file_is_read_once(bench: Bench, form: str, compression: str) -> None:
    folder, expected = bench.root / "in", []
    for number in range(3):
        some = rows(number * 1000, 500)
        expected += some
        name = file_name(form, f"file {number}", compression)
        publish(folder / name, encode(form, some, compression=compression))
    # Small batches cut files anywhere.
    done = bench.run(copying(Folder(folder, format=form), bench), max_batch=4096)
    assert done.state is JobState.FINISHED
    assert bench.read("dead-letters") == []
    assert bench.bag("out") == bag(expected)
    more = rows(9000, 10)
    publish(folder / "later" / file_name(form, "more", compression), encode(form, more, compression=compression))
    bench.run(copying(Folder(folder, format=form), bench))
    assert bench.bag("out") == bag(expected + more)
