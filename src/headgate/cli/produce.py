"""`headgate produce`: made-up data to try flows with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

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
from headgate.cli.options import Json, On
from headgate.cli.output import note, print_json, say, stderr
from headgate.cli.topics import describe_made
from headgate.jobs.service import (
    DEFAULT_LOG,
    Produced,
    StoreOptions,
    StoreProgress,
    produce_store,
)

_DEFAULTS = StoreOptions()
_HOW_MUCH = "How much"
_WHAT_KIND = "What kind"


def register(app: typer.Typer) -> None:
    """Add the verbs to the app."""
    group = typer.Typer(rich_markup_mode="rich", no_args_is_help=True)
    group.callback()(_produce)
    group.command("store")(_store)
    app.add_typer(group, name="produce")


def _produce() -> None:
    """Fill topics with made-up data, the same for the same seed."""


def _store(
    users: Annotated[
        int, typer.Option(metavar="N", help="How many users.", rich_help_panel=_HOW_MUCH)
    ] = _DEFAULTS.users,
    items: Annotated[
        int, typer.Option(metavar="N", help="How many items.", rich_help_panel=_HOW_MUCH)
    ] = _DEFAULTS.items,
    orders: Annotated[
        int, typer.Option(metavar="N", help="How many orders.", rich_help_panel=_HOW_MUCH)
    ] = _DEFAULTS.orders,
    updates: Annotated[
        int, typer.Option(metavar="N", help="Changes of users.", rich_help_panel=_HOW_MUCH)
    ] = _DEFAULTS.updates,
    rate: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="Orders per second; full speed if left out.",
            rich_help_panel=_HOW_MUCH,
            show_default=False,
        ),
    ] = None,
    unknown: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Orders whose user or item does not exist.",
            rich_help_panel=_WHAT_KIND,
        ),
    ] = _DEFAULTS.unknown,
    bad: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Order records that cannot be decoded.",
            rich_help_panel=_WHAT_KIND,
        ),
    ] = _DEFAULTS.bad,
    deletes: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Updates that delete the user.",
            rich_help_panel=_WHAT_KIND,
        ),
    ] = _DEFAULTS.deletes,
    seed: Annotated[
        int,
        typer.Option(metavar="N", help="Another seed, another store.", rich_help_panel=_WHAT_KIND),
    ] = _DEFAULTS.seed,
    number: Annotated[
        int,
        typer.Option(
            "--round",
            metavar="N",
            help="From 1 on: only updates and orders, which continue after the round before.",
            rich_help_panel=_WHAT_KIND,
        ),
    ] = _DEFAULTS.round,
    on: On = DEFAULT_LOG,
    partitions: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Of topics that are missing; by default 1, on Kafka 4.",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing but errors (and --json).")
    ] = False,
    as_json: Json = False,
) -> None:
    """Send a store's users, items and orders to the topics of these names.

    Topics that are missing are made. On Kafka records have keys (the id of a user or an item, an
    order's invoice), users and items are compacted and kept for ever, orders are kept for 7 days,
    and a user that is deleted is a record without a value.

    [bold]Examples[/bold]

      headgate produce store  # all at full speed
      headgate produce store --orders 100000 --rate 2000
      headgate produce store --round 1 --orders 50000 --updates 1000 --deletes 0.1
      headgate produce store --on kafka://localhost:9092 --partitions 8
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
    with _bars(hidden=quiet) as bars:
        try:
            return produce_store(on, options, rate=rate, progress=bars.show)
        except KeyboardInterrupt:
            bars.interrupt()
            raise


def _tell(produced: Produced) -> None:
    for topic in produced.made:
        say(f"Created topic '{topic.name}' {describe_made(topic)}")
    rate = format_count(round(produced.records_per_s))
    records = format_count(produced.sent.records)
    say(f"{records} records in {produced.seconds:.1f}s, {rate} records/s, to {produced.where}")
    if produced.updates:
        say(f"Among the user records are '{produced.updates}' updates")
    say(produced.sent.summary)


class _Speed(ProgressColumn):
    """Acknowledged records per second since the topic's first one."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{format_count(round(speed))}/s", justify="right")


class _Bars:
    """A bar for each topic that gets records."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._latest: StoreProgress | None = None
        self._tasks: dict[str, TaskID] = {}

    def show(self, latest: StoreProgress) -> None:
        """Move the bars to what has been acknowledged."""
        self._latest = latest
        for topic in ("users", "items", "orders"):
            total, sent = getattr(latest.total, topic), getattr(latest.sent, topic)
            if total and topic not in self._tasks:
                self._tasks[topic] = self._progress.add_task(topic, total=total)
            if topic in self._tasks:
                self._progress.update(self._tasks[topic], completed=sent)

    def interrupt(self) -> None:
        """Tell what had been acknowledged when the user had enough."""
        self._progress.stop()
        if self._latest is not None:
            note(f"{self._latest.sent.summary}, then was interrupted")


@contextmanager
def _bars(*, hidden: bool) -> Iterator[_Bars]:
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
        yield _Bars(progress)
