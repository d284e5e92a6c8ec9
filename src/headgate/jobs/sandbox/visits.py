"""Fills a topic with the generated events of visits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import timedelta

from headgate._clock import Clock, SystemClock
from headgate._codec import Moment, RoundedNumber, alias, left_out_while, shaped
from headgate.connectors.contract.connector import Sink
from headgate.connectors.contract.setup import TopicRole
from headgate.connectors.contract.topics import MadeTopic
from headgate.jobs.sandbox.sending import send_round


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitsOptions:
    """The amount and kind of events; as `headgate.producers.visits.VisitsShape`.

    Attributes:
        partitions: Partitions of a new topic; None for 1 on embedded topics, else 4.
    """

    count: int = 10_000
    visits: int = 100
    late: float = 0.01
    out_of_order: timedelta = timedelta(seconds=30)
    span: timedelta = timedelta(hours=2)
    seed: int = 7
    round: int = 0
    partitions: int | None = None


@dataclass(frozen=True, slots=True)
class VisitsProgress:
    """The acknowledged events so far, and the total."""

    sent: int
    total: int


@dataclass(frozen=True, slots=True)
class ProducedVisits:
    """The acknowledged events, and their duration.

    Attributes:
        sent: The number of events.
        late: The number of late events.
        begin: The time of the round's first event.
        end: The time of the next round's first event.
        seconds: From the first record to the last acknowledgement.
        where: The log, as a value of `--on`.
        made: The new topic on a broker.
    """

    sent: int = field(metadata=alias("visits"))
    late: int
    begin: Moment
    end: Moment
    seconds: RoundedNumber
    where: str
    made: tuple[MadeTopic, ...] = field(default=(), metadata=left_out_while(()))

    __get_pydantic_core_schema__ = shaped(
        computed={"records": "records", "records_per_s": "records_per_s"}
    )

    @property
    def records(self) -> int:
        """Records of all topics."""
        return self.sent

    @property
    def records_per_s(self) -> int:
        """Records per second over the whole sending."""
        return round(self.sent / self.seconds) if self.seconds else 0


def produce_visits(
    on: str,
    options: VisitsOptions,
    *,
    rate: float | None = None,
    progress: Callable[[VisitsProgress], None] = lambda _: None,
    clock: Clock | None = None,
) -> ProducedVisits:
    """Send a round of events to the topic visits, and return the counts.

    A missing topic is created. On embedded topics slices of events rotate over the partitions; on
    brokers the visit is the key of a record.

    Args:
        on: The log, as a value of `--on`.
        options: The data to send.
        rate: Events per second; None for full speed.
        progress: Called once before the first record and after each acknowledgement.
        clock: Measures the rate and the duration.
    """
    # These load numpy, for which a help text must not wait.
    from headgate.producers.pace import send_visits
    from headgate.producers.visits import TOPIC, VisitsShape, count_late, visit_key_values

    clock = clock or SystemClock()
    given = asdict(options)
    partitions = given.pop("partitions")
    shape = VisitsShape(**given)

    def send(sink: Sink) -> int:
        progress(VisitsProgress(0, shape.count))
        return send_visits(
            shape,
            lambda lines, records: sink(TOPIC, lines, records),
            clock=clock,
            rate=rate,
            progress=lambda so_far: progress(VisitsProgress(so_far, shape.count)),
        )

    round_ = send_round(
        on,
        {TOPIC: TopicRole.STREAM},
        partitions,
        lambda _, lines: visit_key_values(lines),
        send,
        rate=rate,
        clock=clock,
    )
    late = count_late(shape)
    return ProducedVisits(
        round_.sent, late, shape.begin, shape.end, round_.seconds, on, round_.made
    )
