"""`headgate produce`: generated data to try flows with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, TypeAlias

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
)
from rich.text import Text

from headgate._units import format_count
from headgate.cli.parts.options import FieldOption, Json, On, takes_fields
from headgate.cli.parts.output import note, print_json, say, stderr
from headgate.cli.topics.topics import describe_made
from headgate.connectors.contract.topics import MadeTopic
from headgate.connectors.logs import DEFAULT_LOG
from headgate.jobs.sandbox.store import Produced, StoreOptions, StoreProgress, produce_store
from headgate.jobs.sandbox.visits import (
    ProducedVisits,
    VisitsOptions,
    VisitsProgress,
    produce_visits,
)

_AMOUNT = "Amount"
_KIND = "Kind"

_Partitions: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Partitions of new topics; by default 1, on Kafka and Pulsar 4."
    ),
]
_Rate: TypeAlias = Annotated[
    float | None,
    typer.Option(
        metavar="N", help="Records per second; by default full speed.", rich_help_panel=_AMOUNT
    ),
]
_Quiet: TypeAlias = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print only errors (and --json).")
]
_STORE = (
    FieldOption("users", "N", "Number of users.", _AMOUNT),
    FieldOption("items", "N", "Number of items.", _AMOUNT),
    FieldOption("orders", "N", "Number of orders.", _AMOUNT),
    FieldOption("updates", "N", "Number of changes of users.", _AMOUNT),
    FieldOption("unknown", "SHARE", "Orders whose user or item does not exist.", _KIND),
    FieldOption("bad", "SHARE", "Order records that cannot be decoded.", _KIND),
    FieldOption("deletes", "SHARE", "Updates that delete the user.", _KIND),
    FieldOption("seed", "N", "Another seed gives another store.", _KIND),
    FieldOption("round", "N", "From 1 on: only updates and orders, after the last round.", _KIND),
)
_VISITS = (
    FieldOption("count", "N", "Number of events.", _AMOUNT),
    FieldOption("visits", "N", "Number of visits of these events.", _AMOUNT),
    FieldOption("span", "DURATION", "Event time that they cover.", _AMOUNT),
    FieldOption("late", "SHARE", "Events that are 30 to 60 minutes of event time late.", _KIND),
    FieldOption("out_of_order", "DURATION", "Maximum disorder of the other events.", _KIND),
    FieldOption("seed", "N", "Another seed gives other visits.", _KIND),
    FieldOption("round", "N", "From 1 on: event times continue after the last round.", _KIND),
)


def produce() -> None:
    """Fill topics with generated data, which is the same for the same seed."""


@takes_fields(StoreOptions, _STORE)
def store(
    options: StoreOptions,
    rate: _Rate = None,
    on: On = DEFAULT_LOG,
    partitions: _Partitions = None,
    quiet: _Quiet = False,
    as_json: Json = False,
) -> None:
    """Send a store's users, items and orders to the topics of these names.

    Missing topics are created. On Kafka and Pulsar records have keys (the id of a user or an item,
    the invoice of an order), users and items are kept for ever (and compacted on Kafka), orders are
    kept for 7 days, and a deleted user is a record without a value. --rate applies to orders.

    [bold]Examples[/bold]

      headgate produce store  # all at full speed
      headgate produce store --orders 100000 --rate 2000
      headgate produce store --round 1 --orders 50000 --updates 1000 --deletes 0.1
      headgate produce store --on kafka://localhost:9092 --partitions 8
      headgate produce store --on pulsar://localhost:6650
    """
    chosen = replace(options, partitions=partitions)
    produced = show_production(on, chosen, rate=rate, quiet=quiet)
    if as_json:
        print_json(produced.to_json())
    elif not quiet:
        _tell_store(produced)


@takes_fields(VisitsOptions, _VISITS)
def visits(
    options: VisitsOptions,
    rate: _Rate = None,
    on: On = DEFAULT_LOG,
    partitions: _Partitions = None,
    quiet: _Quiet = False,
    as_json: Json = False,
) -> None:
    """Send the events of visits to the topic visits: event_id, visit_id, event_time and page.

    Event times are epoch milliseconds and start at 2025-09-04T10:00:00Z, at any rate. A missing
    topic is created. On brokers the visit is the key of a record, and records are kept for 7 days.

    [bold]Examples[/bold]

      headgate produce visits  # 2 hours of 100 visits
      headgate produce visits --rate 100 --late 0.05
      headgate produce visits --round 1  # the next 2 hours
      headgate produce visits --on kafka://localhost:9092 --partitions 8
      headgate produce visits --on pulsar://localhost:6650
    """
    with _sending_bars(hidden=quiet) as bars:

        def show(latest: VisitsProgress) -> None:
            bars.show({"visits": (latest.sent, latest.total)}, _visits_summary(latest.sent))

        chosen = replace(options, partitions=partitions)
        produced = produce_visits(on, chosen, rate=rate, progress=show)
    if as_json:
        print_json(produced)
    elif not quiet:
        _tell_visits(produced)


def show_production(
    on: str, options: StoreOptions, *, rate: float | None = None, quiet: bool = False
) -> Produced:
    """Send a round of store data with a bar for each topic, and return the counts.

    Args:
        on: The log, as a value of `--on`.
        options: The data to send.
        rate: Orders per second; None for full speed.
        quiet: Show no bars, which only terminals have.
    """
    with _sending_bars(hidden=quiet) as bars:

        def show(latest: StoreProgress) -> None:
            topics = ("users", "items", "orders")
            counts = {
                topic: (getattr(latest.sent, topic), getattr(latest.total, topic))
                for topic in topics
            }
            bars.show(counts, latest.sent.summary)

        return produce_store(on, options, rate=rate, progress=show)


def _tell_store(produced: Produced) -> None:
    _tell_sent(produced.sent.records, produced.seconds, where=produced.where, made=produced.made)
    if produced.updates:
        say(f"Among the user records are '{produced.updates}' updates")
    say(produced.sent.summary)


def _tell_visits(produced: ProducedVisits) -> None:
    _tell_sent(produced.sent, produced.seconds, where=produced.where, made=produced.made)
    times = (f"{moment:%Y-%m-%dT%H:%M:%S}" for moment in (produced.begin, produced.end))
    say(f"Event times from {' to '.join(times)} UTC, '{produced.late}' events late")
    say(_visits_summary(produced.sent))


def _visits_summary(sent: int) -> str:
    return f"Sent '{sent}' visit records" if sent else "Sent no records"


class _Speed(ProgressColumn):
    """Acknowledged records per second since the topic's first record."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{format_count(round(speed))}/s", justify="right")


class _Bars:
    """A bar for each topic that receives records."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._summary: str | None = None
        self._tasks: dict[str, TaskID] = {}

    def show(self, topics: Mapping[str, tuple[int, int]], summary: str) -> None:
        """Move the bars to the acknowledged counts.

        Args:
            topics: Acknowledged and total records of each topic.
            summary: The counts so far as a sentence.
        """
        self._summary = summary
        for topic, (sent, total) in topics.items():
            if total and topic not in self._tasks:
                self._tasks[topic] = self._progress.add_task(topic, total=total)
            if topic in self._tasks:
                self._progress.update(self._tasks[topic], completed=sent)

    def interrupt(self) -> None:
        """Print the acknowledged counts after an interrupt."""
        self._progress.stop()
        if self._summary is not None:
            note(f"{self._summary}, then was interrupted")


@contextmanager
def _sending_bars(*, hidden: bool) -> Iterator[_Bars]:
    """Open bars that disappear at the end; an interrupt is reported and raised again."""
    console = stderr()
    progress = Progress(
        TextColumn("{task.description:<6}"),
        BarColumn(bar_width=None, complete_style="cyan", finished_style="green"),
        MofNCompleteColumn(),
        _Speed(),
        console=console,
        disable=hidden or not console.is_terminal,
        expand=True,
    )
    with progress:
        bars = _Bars(progress)
        try:
            yield bars
        except KeyboardInterrupt:
            bars.interrupt()
            raise


def _tell_sent(records: int, seconds: float, *, where: str, made: Sequence[MadeTopic]) -> None:
    """Print the created topics, the number of acknowledged records, and the rate."""
    for topic in made:
        say(f"Created topic '{topic.name}' {describe_made(topic)}")
    rate = format_count(round(records / seconds if seconds else 0))
    say(f"{format_count(records)} records in {seconds:.1f}s, {rate} records/s, to {where}")
