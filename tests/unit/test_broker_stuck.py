"""A broker that serves but never will as it should is started once more, by itself."""

# ruff: noqa: ARG002 (stand-ins take what they are given)
from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from fake_clock import FakeClock

from headgate._clock import Clock
from headgate.brokers import lifecycle
from headgate.brokers.broker import BrokerOptions
from headgate.brokers.process import find_process
from headgate.brokers.pulsar_health import is_registering
from headgate.errors import HeadgateError

ENTRY = "/ledgers/available/127.0.0.1:24716"


class FakeServer:
    """A kind of broker whose first processes are stuck; each of them only sleeps."""

    kind = "fake"
    name = "Fake"
    data = "data"
    stop_signal = signal.SIGTERM

    def __init__(self, *, stuck: int) -> None:
        self._stuck = stuck
        self.launched: list[lifecycle.Facts] = []

    def url(self, folder: Path, facts: lifecycle.Facts) -> str:
        return f"fake://{lifecycle.address_of(facts)}"

    def is_serving(self, folder: Path, facts: lifecycle.Facts) -> bool:
        return True

    def is_stuck(self, folder: Path, clock: Clock) -> bool:
        return len(self.launched) <= self._stuck

    def prepare(self, start: lifecycle.Start) -> tuple[Sequence[str], lifecycle.Facts]:
        self.launched.append(start.last)
        return ["sleep", "600"], {"port": start.last.get("port", 7000 + len(self.launched))}


@pytest.fixture
def options(tmp_path: Path) -> Iterator[BrokerOptions]:
    yield BrokerOptions(data=tmp_path)
    lifecycle.stop(FakeServer(stuck=0), tmp_path, clock=None)


def test_a_broker_that_is_stuck_is_started_once_more_where_it_was(options: BrokerOptions) -> None:
    server, told = FakeServer(stuck=1), list[str]()
    broker, is_new = lifecycle.start(server, options, progress=told.append, clock=None)
    assert (is_new, broker.address) == (True, "127.0.0.1:7001")
    assert server.launched == [{}, {"port": 7001}]
    starting = "starting the broker"
    assert told == [starting, "the broker hangs and is restarted", starting]


def test_one_that_is_stuck_each_time_is_not_left_running(options: BrokerOptions) -> None:
    with pytest.raises(HeadgateError, match="hung 3 times") as raised:
        lifecycle.start(FakeServer(stuck=3), options, progress=None, clock=None)
    assert raised.value.code == "BROKER_NOT_STARTED"
    process = find_process(options.data / lifecycle.FILE)
    assert process is not None
    assert not process.is_alive


def test_a_storage_that_is_registered_on_and_on_is_told_from_its_log(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    _register(log, 30)
    assert is_registering(log, FakeClock(steps=[lambda: _register(log, 30)]))


def test_what_the_process_before_left_in_the_log_is_no_sign(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    _register(log, 30)
    assert not is_registering(log, FakeClock(steps=[lambda: _say(log, "INFO all is well")]))


def test_a_sound_start_and_a_log_that_is_rolled_are_no_sign(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    assert not is_registering(log, FakeClock(steps=()))
    _register(log, 2)
    assert not is_registering(log, FakeClock(steps=[lambda: _register(log, 2)]))
    _register(log, 30)
    assert not is_registering(log, FakeClock(steps=[log.unlink]))


def test_of_a_long_log_the_end_counts(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    _register(log, 5_000)
    _say(log, "INFO all is well\n" * 20_000)
    assert not is_registering(log, FakeClock(steps=[lambda: _register(log, 30)]))
    _register(log, 30)
    assert is_registering(log, FakeClock(steps=[lambda: _register(log, 30)]))


def _register(log: Path, times: int) -> None:
    start = log.stat().st_size if log.exists() else 0
    for number in range(times):
        _say(log, f"{start + number} INFO Lock on resource {ENTRY} was invalidated. state Valid")
        _say(log, f"{start + number} INFO Bookie 127.0.0.1:24716 deleted. path: {ENTRY}")


def _say(log: Path, line: str) -> None:
    with log.open("a") as out:
        out.write(f"{line}\n")
