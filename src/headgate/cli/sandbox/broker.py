"""`headgate broker`: a real broker on this machine, to try flows and for tests."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.text import Text

from headgate._codec import encode
from headgate._units import parse_size
from headgate.brokers.broker import Broker, BrokerOptions, BrokerState
from headgate.cli.parts.options import Follow, Json, Lines
from headgate.cli.parts.output import format_age, note, print_json, say, show, stderr
from headgate.cli.views.logs import print_log
from headgate.jobs.sandbox.brokers import (
    BrokerKind,
    broker_folder,
    get_broker_log,
    get_broker_url,
    show_broker,
    start_broker,
    stop_broker,
)
from headgate.jobs.views.logs import follow_log, tail_log

Kind: TypeAlias = Annotated[
    BrokerKind, typer.Argument(metavar="KIND", help="kafka, pulsar or postgres.")
]
Data: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="The broker's folder; by default .headgate/brokers/KIND.",
        file_okay=False,
    ),
]
_NAMES = {BrokerKind.KAFKA: "Kafka", BrokerKind.PULSAR: "Pulsar", BrokerKind.POSTGRES: "PostgreSQL"}


def broker() -> None:
    """Start and stop a broker on this machine, to try flows.

    It is a real broker for development and tests: one background process, on 127.0.0.1 only,
    without replication.

    [bold]Examples[/bold]

      headgate broker start kafka
      headgate broker start pulsar
      headgate broker start postgres
      headgate broker status kafka
      headgate broker logs kafka -f
      headgate broker stop kafka
    """


_Port: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--port",
        metavar="N",
        min=0,
        max=65535,
        help="Port for clients; by default the last one, or 9092 (Kafka), 6650 (Pulsar, 6651 "
        "secured), 5432 (PostgreSQL); 0 takes a free port.",
    ),
]
_AdminPort: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--admin-port",
        metavar="N",
        min=0,
        max=65535,
        help="Port of Pulsar's admin API; by default the last one, or 8080 (8443 secured), or "
        "a free port.",
    ),
]
_Memory: TypeAlias = Annotated[
    str,
    typer.Option("--memory", metavar="SIZE", help="Heap size of the broker; not for PostgreSQL."),
]
_Secure: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--secure", help="Require TLS and a generated password or token; PostgreSQL: a password."
    ),
]
_Settings: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting of the broker; may be repeated."),
]


def start(
    kind: Kind,
    port: _Port = None,
    admin_port: _AdminPort = None,
    data: Data = None,
    memory: _Memory = "512MiB",
    secure: _Secure = False,
    settings: _Settings = None,
    as_json: Json = False,
) -> None:
    """Start a broker in the background, and return when it responds.

    The first start downloads it (Kafka 45 MB, Pulsar 245 MB, PostgreSQL 15 MB); later starts need
    no network. A running broker is unchanged. The broker outlives this terminal, and its records
    outlive the broker.

    [bold]Examples[/bold]

      headgate broker start kafka
      headgate broker start pulsar --admin-port 8081
      headgate broker start kafka --port 0 --data /tmp/trial
      headgate broker start kafka --secure --data .headgate/brokers/kafka-secure --port 9093
    """
    if admin_port is not None and kind is not BrokerKind.PULSAR:
        raise typer.BadParameter(f"--admin-port is an option of Pulsar, not of {_NAMES[kind]}")
    options = BrokerOptions(
        data=broker_folder(kind, data),
        port=port,
        admin_port=admin_port,
        memory=parse_size(memory),
        secure=secure,
        settings=_parse_settings(settings or []),
    )
    with _progress(quiet=as_json) as progress:
        broker, started = start_broker(kind, options, progress=progress)
    if as_json:
        print_json({**encode(broker), "started": started})
        return
    say(f"{_NAMES[kind]} {'is running' if started else 'is already running'} at {broker.address}")
    _print_facts(broker)
    say(Text("\nWhat to try next", style="bold"))
    for command in _next(kind, f"{broker.url}"):
        say(f"  {command}")
    say(f"  headgate broker stop {kind}{_data(data)}")


def _next(kind: BrokerKind, url: str) -> list[str]:
    """Return what to try with a broker that has just been started."""
    on = shlex.quote(url)
    if kind is BrokerKind.POSTGRES:
        return [f"psql {on}"]
    return [
        f"headgate produce store --orders 20000 --on {on}",
        f"headgate run examples/orders/flow.py --on {on}",
    ]


def stop(kind: Kind, data: Data = None, as_json: Json = False) -> None:
    """Stop a broker, and wait until it has exited; its records stay.

    [bold]Examples[/bold]

      headgate broker stop kafka
    """
    broker, stopped = stop_broker(kind, broker_folder(kind, data))
    if as_json:
        print_json({**encode(broker), "stopped": stopped})
    elif stopped:
        say(f"{_NAMES[kind]} has stopped; its records stay in {_near(broker.data)}")
    else:
        say(f"{_NAMES[kind]} is not running in {_near(broker.data)}")


def status(kind: Kind, data: Data = None, as_json: Json = False) -> None:
    """Show whether a broker is running, and its address.

    [bold]Examples[/bold]

      headgate broker status kafka
      headgate broker status kafka --json
    """
    broker = show_broker(kind, broker_folder(kind, data))
    show(broker, lambda _: _print_status(kind, broker, data), as_json=as_json)


def _print_status(kind: BrokerKind, broker: Broker, data: Path | None) -> None:
    at = "" if broker.state is BrokerState.STOPPED else f" at {broker.address}"
    say(f"{_NAMES[kind]} is {broker.state.value}{at}")
    _print_facts(broker)
    if broker.state is BrokerState.STOPPED:
        say(f"headgate broker start {kind}{_data(data)} starts it")


def url(kind: Kind, data: Data = None, as_json: Json = False) -> None:
    """Print the address of a broker as a value for --on.

    [bold]Examples[/bold]

      export HEADGATE_ON=$(headgate broker url pulsar)
      headgate topics list --on $(headgate broker url kafka)
    """
    url = get_broker_url(kind, broker_folder(kind, data))
    show({"url": url}, lambda _: print(url), as_json=as_json)


def logs(
    kind: Kind,
    lines: Lines = 50,
    follow: Follow = False,
    data: Data = None,
    as_json: Json = False,  # noqa: ARG001 - errors are JSON then; lines are what they are
) -> None:
    """Print the last lines of a broker's log.

    [bold]Examples[/bold]

      headgate broker logs kafka -n 100
      headgate broker logs kafka -f
    """
    read = follow_log if follow else tail_log
    print_log(read(get_broker_log(kind, broker_folder(kind, data)), last=lines), follow=follow)


@contextlib.contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Open a function for progress: one changing line on a terminal, plain lines elsewhere."""
    console = stderr()
    if quiet:
        yield lambda _: None
    elif console.is_terminal:
        with console.status("checking the broker") as status:
            yield status.update
    else:
        yield note


def _print_facts(broker: Broker) -> None:
    if broker.pid is not None:
        say(f"  process  {broker.pid}, for {format_age(broker.since)}")
    say(f"  data     {_near(broker.data)}")
    if broker.log.is_file():
        say(f"  log      {_near(broker.log)}")
    if broker.client is not None:
        say(f"  clients  {_near(broker.client)}")


def _parse_settings(given: list[str]) -> dict[str, str]:
    bad = [setting for setting in given if "=" not in setting]
    if bad:
        raise typer.BadParameter(f"--set must be NAME=VALUE, got {bad[0]!r}")
    return {name.strip(): value for name, _, value in (setting.partition("=") for setting in given)}


def _data(data: Path | None) -> str:
    return "" if data is None else f" --data {shlex.quote(str(data))}"


def _near(path: Path) -> str:
    """Return a path relative to the current folder if it is inside it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
