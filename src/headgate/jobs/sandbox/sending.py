"""Sends generated data to the topics of a log: the part that all producers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from headgate._clock import Clock
from headgate.connectors.contract.connector import KeyValues, Sink
from headgate.connectors.contract.setup import TopicRole
from headgate.connectors.contract.topics import MadeTopic
from headgate.connectors.logs import parse_log

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Sending(Generic[C]):
    """The acknowledged counts, their duration, and the created topics."""

    sent: C
    seconds: float
    made: tuple[MadeTopic, ...]


def send_round(
    on: str,
    roles: Mapping[str, TopicRole],
    partitions: int | None,
    key_values: KeyValues,
    send: Callable[[Sink], C],
    *,
    rate: float | None,
    clock: Clock,
) -> Sending[C]:
    """Create the missing topics, send a round of data, and return the counts.

    Args:
        on: The log, as a value of `--on`.
        send: Sends the data to a sink, and returns the acknowledged counts.
    """
    from headgate.producers.pace import Pace

    # A rate that is refused must not leave topics behind.
    Pace(rate, clock)
    log = parse_log(on)
    made = log.make_topics(roles, partitions)
    with log.open_sink(roles, key_values) as sink:
        started = clock.monotonic()
        sent = send(sink)
        return Sending(sent, clock.monotonic() - started, made)
