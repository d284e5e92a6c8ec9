"""A local Kafka broker: fetched, formatted, started and stopped.

DIR/
  lock                held while a command starts or stops the broker
  broker.json         the process that serves here, or did last, and its ports
  server.properties   what it is told
  log/                broker.log, which rolls, and what its process printed
  kafka/              its records, in Kafka's own form
  secure/             of a secured one: certificates, the password, a file for clients
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import uuid
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

from headgate._artifacts import Artifact, Progress, get_java, read_artifacts, resolve
from headgate._clock import Clock, SystemClock
from headgate.brokers.broker import Broker, BrokerOptions, BrokerState, find_ports, is_free
from headgate.brokers.certificates import find_security, make_security
from headgate.brokers.kafka_answer import is_serving
from headgate.brokers.kafka_settings import (
    DATA,
    HOST,
    LOG,
    LOG4J,
    Ports,
    Security,
    server_properties,
)
from headgate.brokers.process import Process, alone_in, find_process, start_process, stop_process
from headgate.errors import Domain, HeadgateError

VERSION = "4.3.1"
DEFAULT_PORT = 9092
_FILE = "broker.json"
_OUTPUT = "log/broker.out"
_LOOK_EVERY = timedelta(milliseconds=100)
_ANSWERS_WITHIN = timedelta(seconds=2)
# A machine that is busy with something else takes its time.
_STARTS_WITHIN = timedelta(seconds=120)
_STOPS_WITHIN = timedelta(seconds=30)


def broker_jars() -> tuple[Artifact, ...]:
    """Return the jars of the broker; the first one needs most of the others."""
    return read_artifacts(Path(__file__).with_name(f"kafka-{VERSION}.json"))


def start_kafka(
    options: BrokerOptions, *, progress: Progress | None = None, clock: Clock | None = None
) -> tuple[Broker, bool]:
    """Return a broker that serves, and whether this call started it.

    One that runs already stays as it is. The broker outlives the process that started it.

    Args:
        progress: Told a line for each jar that has to be fetched first, and what comes after.

    Raises:
        HeadgateError: BROKER_RUNNING where it runs otherwise than it is asked for,
            BROKER_SECURITY_FIXED, BROKER_PORT_TAKEN, BROKER_NOT_STARTED, and what `resolve` raises.
    """
    clock, told = clock or SystemClock(), progress or _nobody
    folder = options.data.absolute()
    with alone_in(folder):
        known = find_process(folder / _FILE)
        _check_security(folder, options)
        if known is not None and known.is_alive:
            _check_port(known, options)
            state = _wait(known, clock)
            if state is BrokerState.STARTING:
                found = f"process {known.pid} is there and does not answer, and says"
                raise _not_started(folder, found, _last_words(folder))
            # One that was just killed may take a moment to be over, and is started anew.
            if state is BrokerState.RUNNING:
                return look_at_kafka(folder), False
        process = _launch(folder, options, _choose_ports(options, known), told, clock)
        if _wait(process, clock) is not BrokerState.RUNNING:
            stop_process(process, grace=_STOPS_WITHIN, clock=clock)
            raise _not_started(folder, "it does not serve, and says", _last_words(folder))
        return look_at_kafka(folder), True


def stop_kafka(data: Path, *, clock: Clock | None = None) -> tuple[Broker, bool]:
    """Return a broker that is stopped, and whether this call stopped it; its records stay."""
    folder = data.absolute()
    if not folder.is_dir():
        return look_at_kafka(folder), False
    with alone_in(folder):
        process = find_process(folder / _FILE)
        was_alive = process is not None and process.is_alive
        if process is not None and was_alive:
            stop_process(process, grace=_STOPS_WITHIN, clock=clock or SystemClock())
        return look_at_kafka(folder), was_alive


def look_at_kafka(data: Path) -> Broker:
    """Return the broker of a folder as it is now."""
    folder = data.absolute()
    process = find_process(folder / _FILE)
    if process is None:
        return Broker(kind="kafka", state=BrokerState.STOPPED, data=folder, log=_find_log(folder))
    address = f"{HOST}:{process.facts['port']}"
    client = find_security(folder)
    is_alive = process.is_alive
    return Broker(
        kind="kafka",
        state=_state(process) if is_alive else BrokerState.STOPPED,
        data=folder,
        log=_find_log(folder),
        address=address,
        url=f"kafka://{address}" + ("" if client is None else f"?config={quote(str(client.file))}"),
        pid=process.pid if is_alive else None,
        since=process.since if is_alive else None,
        client=None if client is None else client.file,
    )


def _state(process: Process) -> BrokerState:
    return BrokerState.RUNNING if _is_serving(process) else BrokerState.STARTING


def _is_serving(process: Process) -> bool:
    return is_serving(HOST, int(process.facts["inside"]), within=_ANSWERS_WITHIN)


def _find_log(folder: Path) -> Path:
    """Return the broker's log, or what its process printed where it never got to write one."""
    log = folder / LOG
    return log if log.is_file() or not (folder / _OUTPUT).is_file() else folder / _OUTPUT


def _check_port(known: Process, options: BrokerOptions) -> None:
    serves_at = known.facts["port"]
    if options.port in (None, 0, serves_at):
        return
    raise HeadgateError(
        "BROKER_RUNNING",
        f"cannot start Kafka on port {options.port}: it runs already in {options.data}, on port"
        f" {serves_at} (process {known.pid})",
        hint=f"headgate broker stop kafka --data {options.data}",
    )


def _check_security(folder: Path, options: BrokerOptions) -> None:
    if options.secure and (folder / DATA).is_dir() and find_security(folder) is None:
        raise HeadgateError(
            "BROKER_SECURITY_FIXED",
            f"cannot secure the broker in {options.data}: it was made without, and its users are"
            " made with its folder",
            hint=f"headgate broker start kafka --secure --port 0 --data {options.data}-secure",
        )


def _get_security(folder: Path, options: BrokerOptions, told: Progress) -> Security | None:
    known = find_security(folder)
    if known is None and options.secure:
        told("making certificates and a password")
        known = make_security(folder)
    return None if known is None else known.security


def _choose_ports(options: BrokerOptions, known: Process | None) -> Ports:
    """Return where to listen: where it did last, as far as nobody else does by now."""
    last = {} if known is None else known.facts
    free = find_ports(HOST, 3)
    clients = last.get("port", DEFAULT_PORT) if options.port is None else options.port
    clients = int(clients) or free[0]
    if not is_free(HOST, clients):
        raise HeadgateError(
            "BROKER_PORT_TAKEN",
            f"cannot start Kafka on port {clients}: another program listens there",
            hint=f"headgate broker start kafka --port 0 --data {options.data}",
        )
    controller = int(last.get("controller", free[1]))
    controller = controller if is_free(HOST, controller) else free[1]
    is_secure = options.secure or find_security(options.data.absolute()) is not None
    return Ports(clients, controller, free[2] if is_secure else clients)


def _launch(
    folder: Path, options: BrokerOptions, ports: Ports, told: Progress, clock: Clock
) -> Process:
    """Start the broker's process, after all that a first start needs."""
    jars = broker_jars()
    class_path = os.pathsep.join(map(str, resolve(jars, progress=told, root=jars[0])))
    (folder / "log").mkdir(exist_ok=True)
    security = _get_security(folder, options, told)
    _write_private(folder / "log4j2.properties", LOG4J)
    if not (folder / DATA).is_dir():
        told("making the broker's folder")
        _format(folder, ports, class_path, security)
    text = server_properties(ports, data=DATA, settings=options.settings, security=security)
    _write_private(folder / "server.properties", text)
    told("starting the broker")
    return start_process(
        [*_java(class_path, memory=options.memory), "kafka.Kafka", "server.properties"],
        folder / _FILE,
        output=folder / _OUTPUT,
        facts={"port": ports.clients, "controller": ports.controller, "inside": ports.inside},
        clock=clock,
    )


def _java(class_path: str, *, memory: int) -> list[str]:
    options = [f"-Xmx{memory}", "-XX:+ExitOnOutOfMemoryError", "-Djava.awt.headless=true"]
    options += ["-Dlog4j2.configurationFile=log4j2.properties"]
    return [get_java("start Kafka"), *options, "-cp", class_path]


def _format(folder: Path, ports: Ports, class_path: str, security: Security | None) -> None:
    """Make the folder of records; it has its name only once it is whole."""
    making = f".{DATA}.making"
    settings = folder / f"{making}.properties"
    # What an earlier try left; nobody else is in the folder now.
    shutil.rmtree(folder / making, ignore_errors=True)
    text = server_properties(ports, data=making, settings={}, security=security)
    _write_private(settings, text)
    command = [*_java(class_path, memory=256 * 1024**2), "kafka.tools.StorageTool", "format"]
    command += ["--config", settings.name, "--cluster-id", _cluster_id(), "--standalone"]
    for user in [] if security is None else security.scram_users:
        command += ["--add-scram", user]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    settings.unlink()
    if done.returncode != 0:
        raise _not_started(folder, "its folder cannot be made", done.stderr or done.stdout)
    (folder / making).rename(folder / DATA)


def _cluster_id() -> str:
    text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # A leading dash would be taken for an option.
    return f"h{text[1:]}" if text.startswith("-") else text


def _wait(process: Process, clock: Clock) -> BrokerState:
    """Return what became of a broker: it runs, it is over, or it starts for longer than it may."""
    deadline = clock.monotonic() + _STARTS_WITHIN.total_seconds()
    while process.is_alive:
        if _is_serving(process):
            return BrokerState.RUNNING
        if clock.monotonic() >= deadline:
            return BrokerState.STARTING
        clock.sleep(_LOOK_EVERY)
    return BrokerState.STOPPED


def _last_words(folder: Path) -> str:
    lines: list[str] = []
    for file in (folder / LOG, folder / _OUTPUT):
        if file.is_file():
            lines += file.read_text(encoding="utf-8", errors="replace").splitlines()[-400:]
    return _pick(lines)


def _pick(lines: Sequence[str]) -> str:
    """Return the line that tells most likely why a broker ended."""
    told = [line for line in lines if line.strip()]
    bad = [line for line in told if " ERROR " in line or " FATAL " in line or "Exception" in line]
    return (bad or told or ["it said nothing"])[-1].strip()


def _not_started(folder: Path, found: str, said: str) -> HeadgateError:
    return HeadgateError(
        "BROKER_NOT_STARTED",
        f"cannot start Kafka in {folder}: {found}: {said.strip()}",
        hint=f"headgate broker logs kafka --data {folder}",
        domain=Domain.EXTERNAL,
    )


def _write_private(file: Path, text: str) -> None:
    """Replace a file that nobody else may read: a secured broker's settings hold passwords."""
    making = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    with os.fdopen(os.open(making, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as sink:
        sink.write(text)
    making.replace(file)


def _nobody(line: str) -> None:
    pass
