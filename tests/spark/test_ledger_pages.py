"""The ledger's pages: merged while readers race, and all of them keep to the same numbers."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from bench import Bench, bag, refused
from eventually import eventually

from headgate import Flow
from headgate._artifacts import spark_jars
from headgate._kernel.jar import get_jars
from headgate.connectors.files.folder.ledger import read_ledger

_RACE = Path(__file__).with_name("java") / "LedgerRace.java"


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Give the class path of a reader's program."""
    folder = tmp_path_factory.mktemp("classes")
    found = os.pathsep.join([*map(str, get_jars([])), f"{spark_jars()}/*"])
    subprocess.run(["javac", "-cp", found, "-d", str(folder), str(_RACE)], check=True)
    return os.pathsep.join([str(folder), found])


@pytest.mark.long
def test_readers_that_race_agree_on_every_number_while_pages_are_merged(
    tmp_path: Path, classes: str
) -> None:
    topic, files = tmp_path / "topic", 250
    topic.mkdir()
    readers = [_reader(classes, topic, files) for _ in range(3)]
    for number in range(files):
        making = tmp_path / "making"
        making.write_text(f'{{"n": {number}}}\n')
        making.rename(topic / f"{number * 7919 % files}.jsonl")
        # One by one, so that there is a page for each; this reader races, too.
        _await_files(topic, number + 1)
    told = [reader.communicate(timeout=120)[0].split() for reader in readers]
    assert [reader.returncode for reader in readers] == [0, 0, 0]
    assert {*told[0]} == {f"{number}.jsonl" for number in range(files)}
    assert told[0] == told[1] == told[2] == [entry.path for entry in read_ledger(topic)]
    # Of 250 pages, these are left: up to 8 plain ones, and merged ones of sizes that grow.
    assert len(list((topic / "_ledger").iterdir())) < 25
    starts = [entry.start for entry in read_ledger(topic)]
    sizes = [entry.size for entry in read_ledger(topic)]
    assert starts == [sum(sizes[:number]) for number in range(files)]


def test_a_job_merges_the_pages_of_an_older_release_and_goes_on(bench: Bench) -> None:
    paths = [f"{number * 7 % 299}.jsonl" for number in range(299)]
    for path in paths:
        bench.put("in", [{"n": int(path.partition(".")[0])}], path=path)
    topic = bench.topics / "in"
    _write_plain(topic, paths)
    before = read_ledger(topic)

    bench.put("in", [{"n": -1}], path="new.jsonl")
    bench.run(_copying())

    names = sorted(file.name for file in (topic / "_ledger").iterdir())
    assert len(names) < 140, names
    after = read_ledger(topic)
    assert (after[:-1], after[-1].path) == (before, "new.jsonl")
    read = [json.loads((topic / entry.path).read_text()) for entry in after]
    assert bench.bag("out") == bag(read)
    # What a release writes that knows no merged pages.
    assert json.loads((topic / "_ledger" / f"{0:020d}.json").read_text())["format"] == 2

    # Left by a reader that slept while its page was written, read and merged by others.
    late = {"format": 1, "first": 3, "files": [{"path": "x", "size": 1, "start": 0, "seen": 1}]}
    (topic / "_ledger" / f"{3:020d}.json").write_text(json.dumps(late))
    bench.put("in", [{"n": -2}], path="newer.jsonl")
    bench.run(_copying())
    assert bench.bag("out") == bag([*read, {"n": -2}])
    assert [entry.path for entry in read_ledger(topic)][-2:] == ["new.jsonl", "newer.jsonl"]


@pytest.mark.parametrize("damage", ["garbage", "missing", "empty"])
def test_a_damaged_page_is_told_by_its_file_and_not_retried(bench: Bench, damage: str) -> None:
    for number in range(3):
        bench.put("in", [{"n": number}], path=f"{number}.jsonl")
    _write_plain(bench.topics / "in", [f"{number}.jsonl" for number in range(3)])
    page = bench.topics / "in" / "_ledger" / f"{1:020d}.json"
    match damage:
        case "garbage":
            page.write_bytes(b'{"format": 1, "fi\x00')
        case "missing":
            page.unlink()
        case "empty":
            page.write_text('{"format": 1, "first": 1, "files": []}')
    # A retry would wait for ever: the job's own strategy is one that never gives up.
    with refused("TOPIC_LEDGER_BROKEN") as caught:
        bench.run(_copying())
    assert str(page) in caught.value.message
    assert not bench.read("out")


def _await_files(topic: Path, count: int) -> None:
    eventually(lambda: len(read_ledger(topic)) >= count, every=0.001)


def _copying() -> Flow:
    flow = Flow("copying")
    flow.stream("in", "n BIGINT NOT NULL").select("n").to("out")
    return flow


def _reader(classes: str, topic: Path, files: int) -> subprocess.Popen[str]:
    command = ["java", "-Xmx128m", "-cp", classes, "io.headgate.kernel.files.LedgerRace"]
    return subprocess.Popen(
        [*command, str(topic), str(files), "8", "2"], stdout=subprocess.PIPE, text=True
    )


def _write_plain(topic: Path, paths: list[str]) -> None:
    """Number files as release 0.7 does that sees them one by one."""
    identity = {"format": 1, "id": "0" * 32, "created": 1, "partitions": 1}
    (topic / "_topic.json").write_text(json.dumps(identity))
    ledger = topic / "_ledger"
    ledger.mkdir()
    start = 0
    for number, path in enumerate(paths):
        size = (topic / path).stat().st_size
        entry = {"path": path, "size": size, "start": start, "seen": 1}
        page = {"format": 1, "first": number, "files": [entry]}
        (ledger / f"{number:020d}.json").write_text(json.dumps(page))
        start += size
