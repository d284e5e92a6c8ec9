"""How a local broker is started, stopped and looked at, whatever its kind.

DIR/
  lock          held while a command starts or stops the broker
  broker.json   the process that serves here, or did last, and its ports
  log/          broker.log, which rolls, and what its process printed
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from headgate._artifacts import Progress
from headgate._clock import Clock, SystemClock
from headgate.brokers.broker import HOST, LOG, Broker, BrokerOptions, BrokerState, is_free
from headgate.brokers.process import Process, alone_in, find_process, stop_process
from headgate.errors import Domain, HeadgateError

OUTPUT = "log/broker.out"
FILE = "broker.json"
STOPS_WITHIN = timedelta(seconds=30)
_LOOK_EVERY = timedelta(milliseconds=100)
# A machine that is busy with something else takes its time.
_STARTS_WITHIN = timedelta(seconds=120)
# How often one that is stuck is started in all.
_TRIES = 3


class Server(Protocol):
    """What a kind of broker knows of itself."""

    @property
    def kind(self) -> str:
        """What it is called by commands."""

    @property
    def name(self) -> str:
        """What it is called by people."""

    @property
    def data(self) -> str:
        """The folder of its records, in its own folder; there once it was made."""

    def find_client(self, folder: Path) -> Path | None:
        """Return the file that clients of a secured one need; None for an open one."""

    def address(self, facts: Mapping[str, str | int]) -> str:
        """Return the host and the port for clients."""

    def url(self, folder: Path, facts: Mapping[str, str | int]) -> str:
        """Return what `--on` takes."""

    def is_serving(self, folder: Path, facts: Mapping[str, str | int]) -> bool:
        """Tell whether it answers its clients."""

    def is_stuck(self, folder: Path, clock: Clock) -> bool:
        """Tell whether it serves but never will as it should, until it is started once more."""

    def launch(
        self,
        folder: Path,
        options: BrokerOptions,
        last: Mapping[str, str | int],
        told: Progress,
        clock: Clock,
    ) -> Process:
        """Start its process, after all that a first start needs.

        Args:
            last: The facts of the process before; empty at the first start.
        """


def start(
    server: Server, options: BrokerOptions, *, progress: Progress | None, clock: Clock | None
) -> tuple[Broker, bool]:
    """Return a broker that serves, and whether this call started it.

    One that runs already stays as it is. The broker outlives the process that started it.

    Args:
        progress: Told a line for each file that has to be fetched first, and what comes after.

    Raises:
        HeadgateError: BROKER_RUNNING where it runs otherwise than it is asked for,
            BROKER_SECURITY_FIXED, BROKER_PORT_TAKEN, BROKER_NOT_STARTED, and what `resolve` raises.
    """
    clock, told = clock or SystemClock(), progress or _nobody
    folder = options.data.absolute()
    with alone_in(folder):
        known = find_process(folder / FILE)
        _check_security(server, folder, options)
        if known is not None and known.is_alive:
            _check_ports(server, known, options)
            state = wait(server, folder, known, clock)
            if state is BrokerState.STARTING:
                found = f"process {known.pid} is there and does not answer, and says"
                raise not_started(server, folder, found, last_words(folder))
            # One that was just killed may take a moment to be over, and is started anew.
            if state is BrokerState.RUNNING:
                return look(server, folder), False
        last = {} if known is None else known.facts
        for _ in range(_TRIES):
            process = server.launch(folder, options, last, told, clock)
            if wait(server, folder, process, clock) is not BrokerState.RUNNING:
                stop_process(process, grace=STOPS_WITHIN, clock=clock)
                raise not_started(server, folder, "it does not serve, and says", last_words(folder))
            if not server.is_stuck(folder, clock):
                return look(server, folder), True
            told("the broker is stuck, and is started once more")
            stop_process(process, grace=STOPS_WITHIN, clock=clock)
            last = process.facts
        raise not_started(server, folder, f"it was stuck {_TRIES} times", last_words(folder))


def stop(server: Server, data: Path, *, clock: Clock | None) -> tuple[Broker, bool]:
    """Return a broker that is stopped, and whether this call stopped it; its records stay."""
    folder = data.absolute()
    if not folder.is_dir():
        return look(server, folder), False
    with alone_in(folder):
        process = find_process(folder / FILE)
        was_alive = process is not None and process.is_alive
        if process is not None and was_alive:
            stop_process(process, grace=STOPS_WITHIN, clock=clock or SystemClock())
        return look(server, folder), was_alive


def look(server: Server, data: Path) -> Broker:
    """Return the broker of a folder as it is now."""
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
        address=server.address(process.facts),
        url=server.url(folder, process.facts),
        pid=process.pid if is_alive else None,
        since=process.since if is_alive else None,
        client=server.find_client(folder),
    )


def wait(server: Server, folder: Path, process: Process, clock: Clock) -> BrokerState:
    """Return what became of a broker: it runs, it is over, or it starts for longer than it may."""
    deadline = clock.monotonic() + _STARTS_WITHIN.total_seconds()
    while process.is_alive:
        if server.is_serving(folder, process.facts):
            return BrokerState.RUNNING
        if clock.monotonic() >= deadline:
            return BrokerState.STARTING
        clock.sleep(_LOOK_EVERY)
    return BrokerState.STOPPED


def check_free(server: Server, port: int, options: BrokerOptions) -> None:
    """Refuse a port that was asked for and that another program has."""
    if not is_free(HOST, port):
        raise HeadgateError(
            "BROKER_PORT_TAKEN",
            f"cannot start {server.name} on port {port}: another program listens there",
            hint=f"headgate broker start {server.kind} --port 0 --data {options.data}"
            + (" --secure" if options.secure else ""),
        )


def last_words(folder: Path) -> str:
    """Return the line that tells most likely why a broker ended."""
    lines: list[str] = []
    for file in (folder / LOG, folder / OUTPUT):
        if file.is_file():
            lines += file.read_text(encoding="utf-8", errors="replace").splitlines()[-400:]
    return _pick(lines)


def not_started(server: Server, folder: Path, found: str, said: str) -> HeadgateError:
    """Return the error of a broker that does not come up."""
    return HeadgateError(
        "BROKER_NOT_STARTED",
        f"cannot start {server.name} in {folder}: {found}: {said.strip()}",
        hint=f"headgate broker logs {server.kind} --data {folder}",
        domain=Domain.EXTERNAL,
    )


def _state(server: Server, folder: Path, process: Process) -> BrokerState:
    is_serving = server.is_serving(folder, process.facts)
    return BrokerState.RUNNING if is_serving else BrokerState.STARTING


def _find_log(folder: Path) -> Path:
    """Return the broker's log, or what its process printed where it never got to write one."""
    log = folder / LOG
    return log if log.is_file() or not (folder / OUTPUT).is_file() else folder / OUTPUT


def _check_ports(server: Server, known: Process, options: BrokerOptions) -> None:
    for port, fact in ((options.port, "port"), (options.admin_port, "admin")):
        serves_at = known.facts.get(fact)
        if port not in (None, 0, serves_at):
            raise HeadgateError(
                "BROKER_RUNNING",
                f"cannot start {server.name} on port {port}: it runs already in {options.data},"
                f" on port {serves_at} (process {known.pid})",
                hint=f"headgate broker stop {server.kind} --data {options.data}",
            )


def _check_security(server: Server, folder: Path, options: BrokerOptions) -> None:
    if options.secure and (folder / server.data).is_dir() and server.find_client(folder) is None:
        raise HeadgateError(
            "BROKER_SECURITY_FIXED",
            f"cannot secure the broker in {options.data}: it was made without, and what secures a"
            " broker is made with its folder",
            hint=f"headgate broker start {server.kind} --secure --port 0"
            f" --data {options.data}-secure",
        )


def _pick(lines: Sequence[str]) -> str:
    told = [line for line in lines if line.strip()]
    bad = [line for line in told if " ERROR " in line or " FATAL " in line or "Exception" in line]
    return (bad or told or ["it said nothing"])[-1].strip()


def _nobody(line: str) -> None:
    pass
