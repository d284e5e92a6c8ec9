"""Local brokers for whoever tries a flow: started, stopped and looked at by their kind."""

from __future__ import annotations

import enum
from pathlib import Path

from headgate._artifacts import Progress
from headgate.brokers.broker import Broker, BrokerOptions
from headgate.brokers.kafka import look_at_kafka, start_kafka, stop_kafka
from headgate.brokers.pulsar import look_at_pulsar, start_pulsar, stop_pulsar
from headgate.errors import HeadgateError
from headgate.jobs.home import DEFAULT_HOME

_BROKERS = DEFAULT_HOME / "brokers"


class BrokerKind(enum.StrEnum):
    """The brokers that can be started here."""

    KAFKA = "kafka"
    PULSAR = "pulsar"


_START = {BrokerKind.KAFKA: start_kafka, BrokerKind.PULSAR: start_pulsar}
_STOP = {BrokerKind.KAFKA: stop_kafka, BrokerKind.PULSAR: stop_pulsar}
_LOOK = {BrokerKind.KAFKA: look_at_kafka, BrokerKind.PULSAR: look_at_pulsar}


def broker_folder(kind: BrokerKind, data: Path | None) -> Path:
    """Return the folder of a broker: the one that was named, or its kind's own."""
    return _BROKERS / kind if data is None else data


def start_broker(
    kind: BrokerKind, options: BrokerOptions, *, progress: Progress | None = None
) -> tuple[Broker, bool]:
    """Return a broker that serves, and whether it was started by this call."""
    return _START[kind](options, progress=progress)


def stop_broker(kind: BrokerKind, data: Path) -> tuple[Broker, bool]:
    """Return a broker that is stopped, and whether it was stopped by this call."""
    return _STOP[kind](data)


def show_broker(kind: BrokerKind, data: Path) -> Broker:
    """Return the broker of a folder as it is now."""
    return _LOOK[kind](data)


def get_broker_log(kind: BrokerKind, data: Path) -> Path:
    """Return the file of a broker's log, or refuse with LOG_NOT_FOUND where it never started."""
    log = show_broker(kind, data).log
    if not log.is_file():
        raise HeadgateError(
            "LOG_NOT_FOUND",
            f"cannot read the log of broker {kind!s}: nothing was written to {log} yet",
            hint=f"headgate broker start {kind} --data {data}",
        )
    return log


def get_broker_url(kind: BrokerKind, data: Path) -> str:
    """Return what `--on` takes, or refuse with BROKER_NOT_FOUND where it never started."""
    url = show_broker(kind, data).url
    if url is None:
        raise HeadgateError(
            "BROKER_NOT_FOUND",
            f"cannot tell the address of broker {kind!s}: none was ever started in {data}",
            hint=f"headgate broker start {kind} --data {data}",
        )
    return url
