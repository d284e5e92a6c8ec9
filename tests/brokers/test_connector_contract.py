"""The contract of a connector on real logs: the same claims for every kind of topic."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, refused
from kafka_broker import KafkaBroker
from pulsar_broker import PulsarBroker
from typer.testing import CliRunner

from headgate import Flow
from headgate.cli.app import app
from headgate.connectors.contract.connector import Connector, Log, RecordCount
from headgate.connectors.contract.setup import TopicRole
from headgate.connectors.contract.written import Answer, Batches
from headgate.connectors.logs import parse_log
from headgate.connectors.registry import CONNECTORS, get_connector
from headgate.flow.topics import Topic
from headgate.jobs.audit.job_audit import AuditRequest
from headgate.jobs.audit.scope import Scope, find_scope
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import find_run
from headgate.jobs.runs.written_batches import find_written

# Tables and files have rows and no records, and tests of their own: test_postgres_sink.py,
# test_postgres_tables.py, test_folder_sources.py, test_folder_outputs.py.
OF_ROWS = {"folder", "postgres"}
FIRST = range(40)
SECOND = range(40, 60)
BROKEN = b"no json"
PARTITIONS = 2


@dataclass(frozen=True, slots=True)
class World:
    """A log with the topics of one job that has run twice.

    Attributes:
        between: What the job had read after its first start.
    """

    bench: Bench
    log: Log
    prefix: str
    between: Scope

    @property
    def job(self) -> str:
        """The job's name."""
        return f"{self.prefix}job"

    def topic(self, name: str) -> Topic:
        """Return a topic of the job."""
        return self.log.bind(self.prefix + name)

    @property
    def connector(self) -> Connector[Any]:
        """What serves the topics."""
        return get_connector(self.topic("in"))

    def numbers(self, name: str) -> list[int]:
        """Return what a topic's records hold, sorted."""
        records = read_all(self.connector, self.topic(name))
        return sorted(json.loads(value)["n"] for value in records if value != BROKEN)


def read_all(connector: Connector[Any], topic: Topic) -> list[bytes]:
    """Return the values of all records of a topic."""
    places = connector.open_places(topic)
    return [
        record.value or b"" for stretch in places.stretches() for record in places.read(stretch)
    ]


def lines(numbers: Iterable[int]) -> bytes:
    return b"".join(json.dumps({"n": n, "word": f"w{n}"}).encode() + b"\n" for n in numbers)


def key_values(_topic: str, content: bytes) -> Iterator[tuple[bytes | None, bytes | None]]:
    for line in content.splitlines():
        yield str(json.loads(line)["n"]).encode() if line != BROKEN else None, line


def copying(log: Log, prefix: str) -> Flow:
    """Return a flow that copies its input, and refuses what is no JSON."""
    flow = Flow(f"{prefix}job", dead_letters=log.bind(f"{prefix}letters"))
    source = flow.stream(log.bind(f"{prefix}in"), "n BIGINT NOT NULL, word STRING", uid="in")
    source.to(log.bind(f"{prefix}out"), key="n")
    return flow


@pytest.fixture(scope="module", params=sorted(CONNECTORS.keys() - OF_ROWS))
def world(
    request: pytest.FixtureRequest,
    kafka: KafkaBroker,
    pulsar: PulsarBroker,
    tmp_path_factory: pytest.TempPathFactory,
) -> World:
    """Run a job twice on a log, with records before each start."""
    bench = Bench(tmp_path_factory.mktemp(request.param))
    places = {"files": f"files:{bench.topics}", "kafka": kafka.url, "pulsar": pulsar.url}
    log, prefix = parse_log(places[request.param]), f"c{uuid.uuid4().hex[:8]}-"
    roles = {
        f"{prefix}in": TopicRole.STREAM,
        f"{prefix}out": TopicRole.OUTPUT,
        f"{prefix}letters": TopicRole.DEAD_LETTERS,
    }
    log.make_topics(roles, PARTITIONS)
    assert not log.make_topics(roles, PARTITIONS), "topics that exist are left alone"
    flow = copying(log, prefix)
    with log.open_sink({f"{prefix}in": TopicRole.STREAM}, key_values) as sink:
        sink(f"{prefix}in", lines(FIRST), len(FIRST))
        bench.run(flow)
        between = find_scope(JobFolder(bench.home, flow.name), lineage=None, at=None)
        sink(f"{prefix}in", lines(SECOND) + BROKEN + b"\n", len(SECOND) + 1)
    bench.run(flow)
    return World(bench, log, prefix, between)


def scope_of(world: World) -> Scope:
    return find_scope(JobFolder(world.bench.home, world.job), lineage=None, at=None)


def test_every_record_is_in_the_output_or_a_dead_letter_once(world: World) -> None:
    assert world.numbers("in") == [*FIRST, *SECOND]
    assert world.numbers("out") == [*FIRST, *SECOND]
    (letter,) = read_all(world.connector, world.topic("letters"))
    assert json.loads(letter)["topic"] == world.topic("in").name


def test_topics_are_listed_shown_and_tailed(world: World) -> None:
    topics = world.log.open_topics()
    name = world.topic("in").name
    (summary,) = [topic for topic in topics.list_topics(count=True) if topic.name == name]
    assert summary.partitions == PARTITIONS
    assert summary.records == len(FIRST) + len(SECOND) + 1
    assert topics.show(name, count=True, last_files=1).summary.records == summary.records
    assert topics.tail(world.topic("letters").name, last=5) == read_all(
        world.connector, world.topic("letters")
    )
    with refused("TOPIC_NOT_FOUND"):
        topics.show(f"{name}-x", count=False, last_files=1)


def test_records_of_a_file_are_published_with_their_keys(world: World, tmp_path: Path) -> None:
    name, file = f"{world.prefix}mine", tmp_path / "mine.jsonl"
    words = ['{"n": 1, "word": "a"}', '{"n": 2}', '{"n":1, "word": "Å"}']
    file.write_text("\n".join((*words, "{", words[0])))
    publish = ("publish", name, "--key", "n", "--on", str(world.log))
    missing = CliRunner().invoke(app, [*publish, str(file)])
    assert missing.stderr.startswith("error TOPIC_NOT_FOUND: ")
    broken = CliRunner().invoke(app, [*publish, str(file), "--create"])
    assert f"line 4 of {file} to topic '{name}': it is not JSON" in broken.stderr
    assert "the 3 records before it were sent, and none after it" in broken.stderr
    assert CliRunner().invoke(app, publish, input='{"n": 3}\n').stdout.startswith("Published 1 ")

    places = world.connector.open_places(world.log.bind(name))
    records = [record for stretch in places.stretches() for record in places.read(stretch)]
    values = [(record.value or b"").decode() for record in records]
    assert sorted(values) == sorted([*words, '{"n": 3}'])
    assert values.index(words[0]) < values.index(words[2])
    if world.connector.has_keys:
        keys = {value: record.key for value, record in zip(values, records, strict=True)}
        assert keys == {words[0]: b"1", words[1]: b"2", words[2]: b"1", '{"n": 3}': b"3"}


def test_a_record_is_found_again_by_its_place(world: World) -> None:
    places = world.connector.open_places(world.topic("out"))
    last = places.last(7)
    assert len(last) == 7
    assert places.find([record.place for record in last]) == {
        record.place: record for record in last
    }
    assert places.find(["0:999999999:0"]) == {}


def test_positions_are_ordered_and_counted(world: World) -> None:
    positions, topic = world.connector.positions, world.topic("in")
    before, after = world.between.ends["in"], scope_of(world).ends["in"]
    assert before is not None
    assert after is not None
    assert positions.has_reached(after, before)
    assert positions.has_reached(after, after)
    assert not positions.has_reached(before, after)
    count = positions.count_between(topic, before, after)
    assert count == RecordCount(len(SECOND) + 1)


@pytest.mark.parametrize(("start", "expected"), [("earliest", [*FIRST, *SECOND]), ("latest", [])])
def test_a_job_starts_where_it_is_told(world: World, start: str, expected: list[int]) -> None:
    name = world.prefix + start
    log = world.log
    outputs = {f"{name}-out": TopicRole.OUTPUT, f"{name}-letters": TopicRole.DEAD_LETTERS}
    log.make_topics(outputs, 1)
    flow = Flow(name, dead_letters=log.bind(f"{name}-letters"))
    source = flow.stream(world.topic("in"), "n BIGINT NOT NULL, word STRING", uid="in")
    source.to(log.bind(f"{name}-out"))
    world.bench.run(flow, start=(f"in={start}",))
    assert world.numbers(f"{start}-out") == expected


def test_what_was_written_is_known_by_batch(world: World) -> None:
    home = JobFolder(world.bench.home, world.job)
    run = find_run(home, str(home.find_present_run()))
    assert run is not None
    last = scope_of(world).batch
    out = world.topic("out").name

    def answer(first: int) -> Answer:
        return find_written(home, run, Batches(first, None, datetime.now(UTC)))[out].answer

    assert answer(last) is Answer.YES
    assert answer(last + 1) is Answer.NO


def test_an_audit_by_key_counts_every_record_and_finds_a_row_that_is_there_twice(
    world: World,
) -> None:
    request = AuditRequest(key=("n",))
    result = FolderHome(world.bench.home).audit(world.job, request).sources["in"]
    assert (result.records, result.lost, result.doubled) == (len(FIRST) + len(SECOND) + 1, 0, 0)
    places = world.connector.open_places(world.topic("out"))
    (row,) = places.last(1)
    with places.sending() as send:
        send([row])
    doubled = FolderHome(world.bench.home).audit(world.job, request).sources["in"].doubled
    # Rows in a folder belong to a run by their file's name, and this file has another name.
    assert doubled == (0 if world.connector.kind == "files" else 1)


def test_a_missing_topic_is_refused_or_made(world: World, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    flow = Flow("missing", dead_letters=world.topic("letters"))
    flow.stream(world.log.bind(f"{world.prefix}nowhere"), "n BIGINT").to(world.topic("out"))
    if world.log.folder is not None:
        bench.run(flow)
        assert (world.log.folder / f"{world.prefix}nowhere").is_dir()
        return
    with refused("TOPIC_MISSING"):
        bench.run(flow)


def test_a_log_out_of_reach_says_so(world: World) -> None:
    if world.log.folder is not None:
        pytest.skip("a folder is always in reach")
    scheme = str(world.log).partition("://")[0]
    admin = "?admin=http://127.0.0.1:1" if scheme == "pulsar" else ""
    topic = parse_log(f"{scheme}://127.0.0.1:1{admin}").bind("orders")
    with refused("BROKER_UNREACHABLE"):
        get_connector(topic).reach(topic, "read topic 'orders'")
