"""`headgate produce`: generated data to try flows with."""

from __future__ import annotations

from dataclasses import replace

import typer

from headgate.cli.option_tables import FieldOption, takes_fields
from headgate.cli.options import Json, On
from headgate.cli.output import print_json, say
from headgate.cli.sending import (
    AMOUNT,
    KIND,
    Partitions,
    Quiet,
    Rate,
    sending_bars,
    tell_sent,
)
from headgate.connectors.logs import DEFAULT_LOG
from headgate.jobs.sandbox.store import Produced, StoreOptions, StoreProgress, produce_store
from headgate.jobs.sandbox.visits import (
    ProducedVisits,
    VisitsOptions,
    VisitsProgress,
    produce_visits,
)

_STORE = (
    FieldOption("users", "N", "Number of users.", AMOUNT),
    FieldOption("items", "N", "Number of items.", AMOUNT),
    FieldOption("orders", "N", "Number of orders.", AMOUNT),
    FieldOption("updates", "N", "Number of changes of users.", AMOUNT),
    FieldOption("unknown", "SHARE", "Orders whose user or item does not exist.", KIND),
    FieldOption("bad", "SHARE", "Order records that cannot be decoded.", KIND),
    FieldOption("deletes", "SHARE", "Updates that delete the user.", KIND),
    FieldOption("seed", "N", "Another seed gives another store.", KIND),
    FieldOption("round", "N", "From 1 on: only updates and orders, after the last round.", KIND),
)
_VISITS = (
    FieldOption("count", "N", "Number of events.", AMOUNT),
    FieldOption("visits", "N", "Number of visits of these events.", AMOUNT),
    FieldOption("span", "DURATION", "Event time that they cover.", AMOUNT),
    FieldOption("late", "SHARE", "Events that are 30 to 60 minutes of event time late.", KIND),
    FieldOption("out_of_order", "DURATION", "Maximum disorder of the other events.", KIND),
    FieldOption("seed", "N", "Another seed gives other visits.", KIND),
    FieldOption("round", "N", "From 1 on: event times continue after the last round.", KIND),
)


def register(app: typer.Typer) -> None:
    """Add the commands to the app."""
    group = typer.Typer(rich_markup_mode="rich", no_args_is_help=True)
    group.callback()(_produce)
    group.command("store")(_store)
    group.command("visits")(_visits)
    app.add_typer(group, name="produce")


def _produce() -> None:
    """Fill topics with generated data, which is the same for the same seed."""


@takes_fields(StoreOptions, _STORE)
def _store(
    options: StoreOptions,
    rate: Rate = None,
    on: On = DEFAULT_LOG,
    partitions: Partitions = None,
    quiet: Quiet = False,
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
def _visits(
    options: VisitsOptions,
    rate: Rate = None,
    on: On = DEFAULT_LOG,
    partitions: Partitions = None,
    quiet: Quiet = False,
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
    with sending_bars(hidden=quiet) as bars:

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
    with sending_bars(hidden=quiet) as bars:

        def show(latest: StoreProgress) -> None:
            topics = ("users", "items", "orders")
            counts = {
                topic: (getattr(latest.sent, topic), getattr(latest.total, topic))
                for topic in topics
            }
            bars.show(counts, latest.sent.summary)

        return produce_store(on, options, rate=rate, progress=show)


def _tell_store(produced: Produced) -> None:
    tell_sent(produced.sent.records, produced.seconds, where=produced.where, made=produced.made)
    if produced.updates:
        say(f"Among the user records are '{produced.updates}' updates")
    say(produced.sent.summary)


def _tell_visits(produced: ProducedVisits) -> None:
    tell_sent(produced.sent, produced.seconds, where=produced.where, made=produced.made)
    times = (f"{moment:%Y-%m-%dT%H:%M:%S}" for moment in (produced.begin, produced.end))
    say(f"Event times from {' to '.join(times)} UTC, '{produced.late}' events late")
    say(_visits_summary(produced.sent))


def _visits_summary(sent: int) -> str:
    return f"Sent '{sent}' visit records" if sent else "Sent no records"
