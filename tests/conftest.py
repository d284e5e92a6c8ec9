"""Fixtures for every folder of tests; brokers are started when a test first asks for one."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from console_shop import Visitor
    from kafka_broker import KafkaBroker
    from playwright.sync_api import Browser
    from postgres_server import Database, PostgresServer
    from pulsar_broker import PulsarBroker
    from s3_server import S3Server
    from upath import UPath

AnyBroker = TypeVar("AnyBroker", "KafkaBroker", "PulsarBroker", "PostgresServer")

# How long one example takes says more of the machine than of the code.
settings.register_profile("headgate", deadline=None)
settings.load_profile("headgate")
# Tests that run jobs in this process share one JVM, whichever of them is first.
os.environ.setdefault("HEADGATE_MODULES", "kafka,pulsar,postgres")
# Most JVMs of tests live for seconds: the second compiler would take a quarter of their CPU.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")
# Hundreds of processes import the package: compiling it takes a third of a second each time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# A terminal may say where its own topics are; those of tests are elsewhere.
os.environ.pop("HEADGATE_ON", None)


class FailuresAtOnce:
    """Names a test as soon as it fails: xdist reports at the end, and not if interrupted."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and reporter is not None:
            lines = report.longreprtext.splitlines()
            why = [line for line in lines if line.startswith("E ")] or lines[-1:]
            reporter.ensure_newline()
            reporter.write_line(f"FAILED {report.nodeid} ({report.when})", red=True)
            reporter.write_line("\n".join(why[:5]))


def pytest_configure(config: pytest.Config) -> None:
    """Report from the process that started the others."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailuresAtOnce(config))


# `make test` archives Spark's classes while tests begin. Half of the unit tests run meanwhile: they
# start no Spark. The others come last, since small files keep all processes busy to the end.
_FIRST_UNTIL = "test_m"

# Then come files that take minutes, the longest at the head: three run at a time, and one that is
# left for the end keeps a core waiting. A process with at most two tests left is given the next
# file, too: what follows a file with one or two long tests is short, and has more.
_LONG = (
    "brokers/test_process_faults.py",
    "spark/test_expressions.py",
    "brokers/test_join_faults.py",
    "spark/test_message_keys.py",
    "brokers/test_kafka_cluster.py",
    "brokers/test_kafka_faults.py",
    "console/test_console.py",
    "brokers/test_pulsar_faults.py",
    "spark/test_state_time_machine.py",
    "spark/test_docs.py",
)


# All files that use a shared broker run in one process, one after the other. Tests of brokers wait
# more than they work, so they come early, beside others. Even idle, a broker takes a tenth of a
# core: it is stopped after the last of them.
_SHARED = {
    "kafka": {"kafka", "secure_kafka"},
    "pulsar": {"pulsar", "secure_pulsar"},
    "postgres": {"postgres"},
}
_brokers: dict[str, KafkaBroker | PulsarBroker | PostgresServer] = {}
_stopped: set[str] = set()


# Before xdist's own hook, which reads the groups.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say what runs in one process, and in which order; within a file, tests keep theirs."""
    root = Path(__file__).parent
    used: dict[Path, set[str]] = {}
    for item in items:
        used.setdefault(item.path, set()).update(getattr(item, "fixturenames", ()))
    group = {path: _group(path, names) for path, names in used.items()}
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group[item.path]))
    order = [*(str(root / name) for name in _LONG), *_SHARED]
    rank = {name: number for number, name in enumerate(order)}

    def place(item: pytest.Item) -> int:
        is_first = item.path.parent == root / "unit" and item.path.name < _FIRST_UNTIL
        return -1 if is_first else rank.get(group[item.path], len(order))

    items.sort(key=place)


def _group(path: Path, fixtures: set[str]) -> str:
    """Return a name for what runs in one process: a file, or all that share a broker."""
    # Those that use both start a second Kafka, and not a second Pulsar.
    shared = [name for name, brokers in _SHARED.items() if brokers & fixtures]
    return shared[-1] if shared else str(path)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Start a shared broker again that was stopped: without groups, its tests may be anywhere."""
    for name in _stopped.intersection(getattr(item, "fixturenames", ())):
        _brokers[name].start()
        _stopped.discard(name)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Stop shared brokers after the last test of their group."""
    if nextitem is None or _find_group(nextitem) != _find_group(item):
        for name in _brokers.keys() - _stopped:
            _brokers[name].stop()
            _stopped.add(name)


def _find_group(item: pytest.Item) -> object:
    marker = item.get_closest_marker("xdist_group")
    return marker and marker.args[0]


@pytest.fixture
def seed() -> int:
    """Return what decides the moments of the kills: the same each time, or `random` ones.

    It is printed, so that a failure can be repeated.
    """
    given = os.environ.get("HEADGATE_SEED", "1")
    chosen = int.from_bytes(os.urandom(4)) if given == "random" else int(given)
    print(f"HEADGATE_SEED={chosen}")
    return chosen


@pytest.fixture
def kills() -> int:
    """Return how often a fault test kills a process at random: twice, more in `make test-all`."""
    return int(os.environ.get("HEADGATE_KILLS", "2"))


@pytest.fixture
def many_kills(kills: int) -> int:
    """Return how often the suites of functions and of joins kill: 40 times in `make test-all`."""
    return int(os.environ.get("HEADGATE_MANY_KILLS", kills))


@pytest.fixture
def broker_kills(kills: int) -> int:
    """Return how often a fault test of a broker kills a process at random, beside named moments."""
    return max(1, kills - 1)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """Give a Kafka broker for the whole run: tests use topics of their own, and let it run."""
    yield from _sharing("kafka", _serving(tmp_path_factory.mktemp("kafka"), secure=False))


@pytest.fixture(scope="session")
def secure_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """Give a Kafka broker that wants TLS and a password, for the whole run."""
    folder = tmp_path_factory.mktemp("secure-kafka")
    yield from _sharing("secure_kafka", _serving(folder, secure=True))


@pytest.fixture(scope="module")
def module_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """Give a Kafka broker to the tests of one file; they ask for `own_kafka`."""
    yield from _serving(tmp_path_factory.mktemp("own-kafka"), secure=False)


@pytest.fixture
def own_kafka(module_kafka: KafkaBroker) -> Iterator[KafkaBroker]:
    """Give a Kafka broker without topics to one test alone, which may stop and kill it."""
    module_kafka.start()
    yield module_kafka
    module_kafka.start()
    module_kafka.drop_topics()


@pytest.fixture(scope="session")
def pulsar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PulsarBroker]:
    """Give a Pulsar broker for the whole run: tests use topics of their own, and let it run."""
    # It has transactions, and the others have none, as by default.
    settings = {"transactionCoordinatorEnabled": "true"}
    folder = tmp_path_factory.mktemp("pulsar")
    yield from _sharing("pulsar", _serving_pulsar(folder, secure=False, settings=settings))


@pytest.fixture(scope="session")
def secure_pulsar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PulsarBroker]:
    """Give a Pulsar broker that wants TLS and a token, for the whole run."""
    folder = tmp_path_factory.mktemp("secure-pulsar")
    yield from _sharing("secure_pulsar", _serving_pulsar(folder, secure=True))


@pytest.fixture(scope="module")
def module_pulsar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PulsarBroker]:
    """Give a Pulsar broker to the tests of one file; they ask for `own_pulsar`."""
    # A blank, since Pulsar makes addresses of paths.
    yield from _serving_pulsar(tmp_path_factory.mktemp("own") / "own pulsar", secure=False)


@pytest.fixture
def own_pulsar(module_pulsar: PulsarBroker) -> Iterator[PulsarBroker]:
    """Give a Pulsar broker without topics to one test alone, which may stop and kill it."""
    module_pulsar.start()
    yield module_pulsar
    module_pulsar.start()
    module_pulsar.drop_topics()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """Give a PostgreSQL server for the whole run: tests use databases of their own."""
    yield from _sharing("postgres", _serving_postgres(tmp_path_factory.mktemp("postgres")))


@pytest.fixture
def database(postgres: PostgresServer) -> Database:
    """Give an empty database to one test alone."""
    return postgres.make_database()


@pytest.fixture
def own_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """Give a PostgreSQL server to one test alone, which may stop and kill it."""
    yield from _serving_postgres(tmp_path_factory.mktemp("own-postgres"))


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Give an S3 server for the whole run: tests use prefixes of their own, and let it run."""
    yield from _serving_s3(tmp_path_factory.mktemp("s3"))


@pytest.fixture
def own_s3(tmp_path: Path) -> Iterator[S3Server]:
    """Give an S3 server to one test alone, which may pause it."""
    yield from _serving_s3(tmp_path)


@pytest.fixture
def s3_place(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[UPath]:
    """Give a place on the S3 server to one test alone; the process has the server's key."""
    from headgate._locations import parse_location
    from headgate._s3 import S3Files

    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    S3Files.clear_instance_cache()
    place = parse_location(s3.url(f"test-{uuid.uuid4().hex[:12]}"))
    assert not isinstance(place, Path)
    yield place
    S3Files.clear_instance_cache()


@pytest.fixture
def shared_place(tmp_path: Path) -> UPath:
    """Give a folder as hosts that share it see it."""
    from headgate._locations import parse_location

    (tmp_path / "mount").mkdir()
    place = parse_location(f"shared://{tmp_path / 'mount'}")
    assert not isinstance(place, Path)
    return place


@pytest.fixture(params=["s3_place", "shared_place"])
def store_place(request: pytest.FixtureRequest) -> UPath:
    """Give a place on each kind of store to one test alone."""
    place: UPath = request.getfixturevalue(request.param)
    return place


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give a browser for the console."""
    from console_shop import chromium

    with chromium() as browser:
        yield browser


@pytest.fixture
def visitor(page: Visitor) -> Iterator[Visitor]:
    """Give somebody whose pages load nothing from elsewhere, and have no errors of their own."""
    page.requests.clear()
    page.errors.clear()
    yield page
    assert page.strangers() == []
    assert page.errors == []


def _sharing(name: str, brokers: Iterator[AnyBroker]) -> Iterator[AnyBroker]:
    for broker in brokers:
        _brokers[name] = broker
        yield broker
    del _brokers[name]


def _serving(data: Path, *, secure: bool) -> Iterator[KafkaBroker]:
    # Not at the top: a run without brokers needs no client of theirs.
    from kafka_broker import KafkaBroker

    broker = KafkaBroker(data, secure=secure)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


def _serving_postgres(data: Path) -> Iterator[PostgresServer]:
    from postgres_server import PostgresServer

    server = PostgresServer(data)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def _serving_s3(folder: Path) -> Iterator[S3Server]:
    from s3_server import S3Server

    server = S3Server(folder / "s3.log")
    try:
        server.start()
        yield server
    finally:
        server.stop()


def _serving_pulsar(
    data: Path, *, secure: bool, settings: Mapping[str, str] | None = None
) -> Iterator[PulsarBroker]:
    from pulsar_broker import PulsarBroker

    broker = PulsarBroker(data, secure=secure, settings=settings or {})
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()
