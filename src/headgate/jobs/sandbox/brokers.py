"""Local brokers to try a flow on: start, stop and status by kind."""

from __future__ import annotations

import enum
from pathlib import Path

from headgate._artifacts import Progress
from headgate.brokers import lifecycle
from headgate.brokers.broker import Broker, BrokerOptions
from headgate.brokers.kafka import KAFKA
from headgate.brokers.postgres.server import POSTGRES
from headgate.brokers.pulsar import PULSAR
from headgate.errors import HeadgateError
from headgate.jobs.values import DEFAULT_HOME

_BROKERS = DEFAULT_HOME / "brokers"


class BrokerKind(enum.StrEnum):
    """The brokers that can be started here."""

    KAFKA = "kafka"
    PULSAR = "pulsar"
    POSTGRES = "postgres"


_SERVERS: dict[BrokerKind, lifecycle.Server] = {
    BrokerKind.KAFKA: KAFKA,
    BrokerKind.PULSAR: PULSAR,
    BrokerKind.POSTGRES: POSTGRES,
}


def broker_folder(kind: BrokerKind, data: Path | None) -> Path:
    """Return the folder of a broker: the given one, or the default of its kind."""
    return _BROKERS / kind if data is None else data


def start_broker(
    kind: BrokerKind, options: BrokerOptions, *, progress: Progress | None = None
) -> tuple[Broker, bool]:
    """Return a running broker, and whether this call started it."""
    return lifecycle.start(_SERVERS[kind], options, progress=progress)


def stop_broker(kind: BrokerKind, data: Path) -> tuple[Broker, bool]:
    """Return a stopped broker, and whether this call stopped it."""
    return lifecycle.stop(_SERVERS[kind], data)


def show_broker(kind: BrokerKind, data: Path) -> Broker:
    """Return the current status of a folder's broker."""
    return lifecycle.look(_SERVERS[kind], data)


def get_broker_log(kind: BrokerKind, data: Path) -> Path:
    """Return the file of a broker's log, or raise LOG_NOT_FOUND if it was never started."""
    log = show_broker(kind, data).log
    if not log.is_file():
        raise HeadgateError(
            "LOG_NOT_FOUND",
            f"cannot read the log of broker {kind!s}: {log} does not exist yet",
            hint=f"headgate broker start {kind} --data {data}",
        )
    return log


def get_broker_url(kind: BrokerKind, data: Path) -> str:
    """Return the value for `--on`, or raise BROKER_NOT_FOUND if it was never started."""
    url = show_broker(kind, data).url
    if url is None:
        raise HeadgateError(
            "BROKER_NOT_FOUND",
            f"cannot find the address of broker {kind!s}: it was never started in {data}",
            hint=f"headgate broker start {kind} --data {data}",
        )
    return url
