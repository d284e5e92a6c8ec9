"""Filling a topic with the made-up events of visits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from headgate._clock import Clock, SystemClock
from headgate._codec import Moment, RoundedNumber, alias, left_out_while, shaped
from headgate.connectors.logs import parse_log
from headgate.connectors.setup import TopicRole
from headgate.connectors.topics import MadeTopic


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitsOptions:
    """How many events, and of what kind; as `headgate.producers.visits.VisitsShape`.

    Attributes:
        partitions: Of a topic that is missing; None is 1 on embedded topics, else 4.
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
    """How far the sending has come: what was acknowledged, of what."""

    sent: int
    total: int


@dataclass(frozen=True, slots=True)
class ProducedVisits:
    """What was acknowledged, and how fast.

    Attributes:
        sent: How many events.
        late: How many of them are late.
        begin: When the round's first event happens.
        end: When the next round's first event happens.
        seconds: From the first record to the last acknowledgement.
        where: The log, as `--on` names it.
        made: The topic, if it was missing and making it is more than making a folder.
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

    A topic that is missing is made. On embedded topics slices of events take the partitions in
    turn; on brokers the visit is the key of a record.

    Args:
        on: The log, as `--on` names it.
        options: What to send.
        rate: Events per second; None is full speed.
        progress: Called once before the first record and after each acknowledgement.
        clock: Keeps the rate and takes the time.
    """
    # numpy comes with these; whoever only asks for help does not wait for it.
    from headgate.producers.pace import Pace, send_visits
    from headgate.producers.visits import TOPIC, VisitsShape, count_late, visit_key_values

    clock = clock or SystemClock()
    shape = VisitsShape(
        count=options.count,
        visits=options.visits,
        late=options.late,
        out_of_order=options.out_of_order,
        span=options.span,
        seed=options.seed,
        round=options.round,
    )
    # A rate that is refused must not leave a topic behind.
    Pace(rate, clock)
    log = parse_log(on)
    roles = {TOPIC: TopicRole.STREAM}
    made = log.make_topics(roles, options.partitions)
    with log.open_sink(roles, lambda _, lines: visit_key_values(lines)) as sink:
        progress(VisitsProgress(0, shape.count))
        started = clock.monotonic()
        sent = send_visits(
            shape,
            lambda lines, records: sink(TOPIC, lines, records),
            clock=clock,
            rate=rate,
            progress=lambda so_far: progress(VisitsProgress(so_far, shape.count)),
        )
        seconds = clock.monotonic() - started
    return ProducedVisits(sent, count_late(shape), shape.begin, shape.end, seconds, on, made)
