"""Start, stop and status of a local broker of any kind.

DIR/
  lock          held while a command starts or stops the broker
  broker.json   the current or last process, and its ports
  log/          broker.log, which rolls, and the output of the process
"""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol, TypeAlias

from headgate._artifacts import Progress
from headgate._clock import Clock, SystemClock
from headgate.brokers.broker import HOST, LOG, Broker, BrokerOptions, BrokerState, is_free
from headgate.brokers.process import (
    Process,
    alone_in,
    collect,
    find_process,
    start_process,
    stop_process,
)
from headgate.brokers.security import find_client
from headgate.errors import Domain, HeadgateError

OUTPUT = "log/broker.out"
FILE = "broker.json"
STOPS_WITHIN = timedelta(seconds=30)
_LOOK_EVERY = timedelta(milliseconds=100)
# A busy machine takes longer.
_STARTS_WITHIN = timedelta(seconds=120)
# The maximum number of starts of a broker that hangs.
_TRIES = 3


Facts: TypeAlias = Mapping[str, str | int]
"""The ports of a broker's process, by name."""


@dataclass(frozen=True, slots=True)
class Start:
    """A start of a broker.

    Attributes:
        folder: The broker's folder, as an absolute path.
        last: The facts of the last process; empty at the first start.
        progress: Called with a line for each step.
    """

    folder: Path
    options: BrokerOptions
    last: Facts
    progress: Progress
    clock: Clock


class Server(Protocol):
    """The part of a broker's lifecycle that depends on its kind.

    Attributes:
        kind: Its name in commands.
        name: Its name for people.
        data: The folder of its records in its own folder; exists after the first start.
        stop_signal: The signal at which it exits.
    """

    kind: str
    name: str
    data: str
    stop_signal: signal.Signals

    def url(self, folder: Path, facts: Facts) -> str:
        """Return the value for `--on`."""

    def is_serving(self, folder: Path, facts: Facts) -> bool:
        """Return True if it responds to clients."""

    def is_stuck(self, folder: Path, clock: Clock) -> bool:
        """Return True if it responds but needs a restart to work properly."""

    def prepare(self, start: Start) -> tuple[Sequence[str], Facts]:
        """Do everything that a start needs; return the command, and the facts to store."""


def start(
    server: Server,
    options: BrokerOptions,
    *,
    progress: Progress | None = None,
    clock: Clock | None = None,
) -> tuple[Broker, bool]:
    """Return a running broker, and whether this call started it.

    A broker that is already running is unchanged. It outlives the process that started it.

    Args:
        progress: Called with a line for each file that is fetched first, and for later steps.

    Raises:
        HeadgateError: BROKER_RUNNING if it runs with other options, BROKER_SECURITY_FIXED,
            BROKER_PORT_TAKEN, BROKER_NOT_STARTED, and the errors of `resolve`.
    """
    clock, report = clock or SystemClock(), progress or (lambda _line: None)
    folder = options.data.absolute()
    with alone_in(folder):
        known = find_process(folder / FILE)
        _check_security(server, folder, options)
        if known is not None and known.is_alive:
            _check_ports(server, known, options)
            state = wait(server, folder, known, clock)
            if state is BrokerState.STARTING:
                problem = f"process {known.pid} exists and does not respond; its log ends with"
                raise not_started(server, folder, problem, last_words(folder))
            # A broker that was just killed may need a moment to exit; it is started again.
            if state is BrokerState.RUNNING:
                return look(server, folder), False
        last = {} if known is None else known.facts
        if known is not None:
            collect(known.pid)
        for _ in range(_TRIES):
            process = _launch(server, Start(folder, options, last, report, clock))
            if wait(server, folder, process, clock) is not BrokerState.RUNNING:
                stop_process(process, by=server.stop_signal, grace=STOPS_WITHIN, clock=clock)
                raise not_started(
                    server, folder, "it does not respond; its log ends with", last_words(folder)
                )
            if not server.is_stuck(folder, clock):
                return look(server, folder), True
            report("the broker hangs and is restarted")
            stop_process(process, by=server.stop_signal, grace=STOPS_WITHIN, clock=clock)
            last = process.facts
        raise not_started(server, folder, f"it hung {_TRIES} times", last_words(folder))


def _launch(server: Server, start: Start) -> Process:
    output = start.folder / OUTPUT
    output.parent.mkdir(exist_ok=True)
    command, facts = server.prepare(start)
    start.progress("starting the broker")
    return start_process(
        command, start.folder / FILE, output=output, facts=facts, clock=start.clock
    )


def stop(server: Server, data: Path, *, clock: Clock | None = None) -> tuple[Broker, bool]:
    """Return a stopped broker, and whether this call stopped it; its records stay."""
    folder = data.absolute()
    if not folder.is_dir():
        return look(server, folder), False
    with alone_in(folder):
        process = find_process(folder / FILE)
        was_alive = process is not None and process.is_alive
        if process is not None and was_alive:
            stop_process(
                process, by=server.stop_signal, grace=STOPS_WITHIN, clock=clock or SystemClock()
            )
        return look(server, folder), was_alive


def look(server: Server, data: Path) -> Broker:
    """Return the current status of a folder's broker."""
    folder = data.absolute()
    process, log = find_process(folder / FILE), _find_log(folder)
    if process is None:
        return Broker(kind=server.kind, state=BrokerState.STOPPED, data=folder, log=log)
    is_alive = process.is_alive
    return Broker(
        kind=server.kind,
        state=_state(server, folder, process) if is_alive else BrokerState.STOPPED,
        data=folder,
        log=log,
        address=address_of(process.facts),
        url=server.url(folder, process.facts),
        pid=process.pid if is_alive else None,
        since=process.since if is_alive else None,
        client=find_client(folder),
    )


def address_of(facts: Facts) -> str:
    """Return the host and the port for clients."""
    return f"{HOST}:{facts['port']}"


def choose_port(server: Server, options: BrokerOptions, last: int, free: int) -> int:
    """Return the port for clients; the last port, unless the options name another.

    Raises:
        HeadgateError: BROKER_PORT_TAKEN.
    """
    port = (last if options.port is None else options.port) or free
    check_free(server, port, options)
    return port


def wait(server: Server, folder: Path, process: Process, clock: Clock) -> BrokerState:
    """Return the outcome of a start: the broker runs, has exited, or takes too long."""
    deadline = clock.monotonic() + _STARTS_WITHIN.total_seconds()
    while process.is_alive:
        if server.is_serving(folder, process.facts):
            return BrokerState.RUNNING
        if clock.monotonic() >= deadline:
            return BrokerState.STARTING
        clock.sleep(_LOOK_EVERY)
    return BrokerState.STOPPED


def check_free(server: Server, port: int, options: BrokerOptions) -> None:
    """Refuse a requested port that another program uses."""
    if not is_free(HOST, port):
        raise HeadgateError(
            "BROKER_PORT_TAKEN",
            f"cannot start {server.name} on port {port}: another program listens there",
            hint=f"headgate broker start {server.kind} --port 0 --data {options.data}"
            + (" --secure" if options.secure else ""),
        )


def last_words(folder: Path) -> str:
    """Return the line that most likely names the reason why a broker exited."""
    lines: list[str] = []
    for file in (folder / LOG, folder / OUTPUT):
        if file.is_file():
            lines += file.read_text(encoding="utf-8", errors="replace").splitlines()[-400:]
    texts = [line for line in lines if line.strip()]
    bad = [line for line in texts if " ERROR " in line or " FATAL " in line or "Exception" in line]
    return (bad or texts or ["nothing"])[-1].strip()


def not_started(server: Server, folder: Path, problem: str, said: str) -> HeadgateError:
    """Return the error for a broker that does not start."""
    return HeadgateError(
        "BROKER_NOT_STARTED",
        f"cannot start {server.name} in {folder}: {problem}: {said.strip()}",
        hint=f"headgate broker logs {server.kind} --data {folder}",
        domain=Domain.EXTERNAL,
    )


def _state(server: Server, folder: Path, process: Process) -> BrokerState:
    is_serving = server.is_serving(folder, process.facts)
    return BrokerState.RUNNING if is_serving else BrokerState.STARTING


def _find_log(folder: Path) -> Path:
    """Return the broker's log, or the output of its process if it never wrote a log."""
    log = folder / LOG
    return log if log.is_file() or not (folder / OUTPUT).is_file() else folder / OUTPUT


def _check_ports(server: Server, known: Process, options: BrokerOptions) -> None:
    for port, fact in ((options.port, "port"), (options.admin_port, "admin")):
        serves_at = known.facts.get(fact)
        if port not in (None, 0, serves_at):
            raise HeadgateError(
                "BROKER_RUNNING",
                f"cannot start {server.name} on port {port}: it already runs in "
                f"{options.data}, on port {serves_at} (process {known.pid})",
                hint=f"headgate broker stop {server.kind} --data {options.data}",
            )


def _check_security(server: Server, folder: Path, options: BrokerOptions) -> None:
    if options.secure and (folder / server.data).is_dir() and find_client(folder) is None:
        raise HeadgateError(
            "BROKER_SECURITY_FIXED",
            f"cannot secure the broker in {options.data}: its folder was created without "
            "security, which the first start decides",
            hint=f"headgate broker start {server.kind} --secure --port 0"
            f" --data {options.data}-secure",
        )
