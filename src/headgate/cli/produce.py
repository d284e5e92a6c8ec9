"""`headgate produce`: made-up data to try flows with."""

from __future__ import annotations

from typing import Annotated

import typer

from headgate.cli.options import Json, On
from headgate.cli.output import print_json, say
from headgate.cli.produce_visits import send_visits
from headgate.cli.sending import (
    HOW_MUCH,
    WHAT_KIND,
    Partitions,
    Quiet,
    sending_bars,
    tell_sent,
)
from headgate.jobs.service import (
    DEFAULT_LOG,
    Produced,
    StoreOptions,
    StoreProgress,
    produce_store,
)

_DEFAULTS = StoreOptions()


def register(app: typer.Typer) -> None:
    """Add the verbs to the app."""
    group = typer.Typer(rich_markup_mode="rich", no_args_is_help=True)
    group.callback()(_produce)
    group.command("store")(_store)
    group.command("visits")(send_visits)
    app.add_typer(group, name="produce")


def _produce() -> None:
    """Fill topics with made-up data, the same for the same seed."""


def _store(
    users: Annotated[
        int, typer.Option(metavar="N", help="How many users.", rich_help_panel=HOW_MUCH)
    ] = _DEFAULTS.users,
    items: Annotated[
        int, typer.Option(metavar="N", help="How many items.", rich_help_panel=HOW_MUCH)
    ] = _DEFAULTS.items,
    orders: Annotated[
        int, typer.Option(metavar="N", help="How many orders.", rich_help_panel=HOW_MUCH)
    ] = _DEFAULTS.orders,
    updates: Annotated[
        int, typer.Option(metavar="N", help="Changes of users.", rich_help_panel=HOW_MUCH)
    ] = _DEFAULTS.updates,
    rate: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="Orders per second; full speed if left out.",
            rich_help_panel=HOW_MUCH,
            show_default=False,
        ),
    ] = None,
    unknown: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Orders whose user or item does not exist.",
            rich_help_panel=WHAT_KIND,
        ),
    ] = _DEFAULTS.unknown,
    bad: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Order records that cannot be decoded.",
            rich_help_panel=WHAT_KIND,
        ),
    ] = _DEFAULTS.bad,
    deletes: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Updates that delete the user.",
            rich_help_panel=WHAT_KIND,
        ),
    ] = _DEFAULTS.deletes,
    seed: Annotated[
        int,
        typer.Option(metavar="N", help="Another seed, another store.", rich_help_panel=WHAT_KIND),
    ] = _DEFAULTS.seed,
    number: Annotated[
        int,
        typer.Option(
            "--round",
            metavar="N",
            help="From 1 on: only updates and orders, which continue after the round before.",
            rich_help_panel=WHAT_KIND,
        ),
    ] = _DEFAULTS.round,
    on: On = DEFAULT_LOG,
    partitions: Partitions = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Send a store's users, items and orders to the topics of these names.

    Topics that are missing are made. On Kafka and Pulsar records have keys (the id of a user or an
    item, an order's invoice), users and items are kept for ever (on Kafka they are compacted too),
    orders are kept for 7 days, and a user that is deleted is a record without a value.

    [bold]Examples[/bold]

      headgate produce store  # all at full speed
      headgate produce store --orders 100000 --rate 2000
      headgate produce store --round 1 --orders 50000 --updates 1000 --deletes 0.1
      headgate produce store --on kafka://localhost:9092 --partitions 8
      headgate produce store --on pulsar://localhost:6650
    """
    options = StoreOptions(
        users=users,
        items=items,
        orders=orders,
        unknown=unknown,
        bad=bad,
        seed=seed,
        updates=updates,
        round=number,
        deletes=deletes,
        partitions=partitions,
    )
    produced = show_production(on, options, rate=rate, quiet=quiet)
    if as_json:
        print_json(produced.to_json())
    elif not quiet:
        _tell(produced)


def show_production(
    on: str, options: StoreOptions, *, rate: float | None = None, quiet: bool = False
) -> Produced:
    """Send a round of store data with a bar for each topic, and return the counts.

    Args:
        on: The log, as `--on` names it.
        options: What to send.
        rate: Orders per second; None is full speed.
        quiet: Show no bars; there are none without a terminal either.
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


def _tell(produced: Produced) -> None:
    tell_sent(produced.sent.records, produced.seconds, where=produced.where, made=produced.made)
    if produced.updates:
        say(f"Among the user records are '{produced.updates}' updates")
    say(produced.sent.summary)
