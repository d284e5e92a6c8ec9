"""`headgate produce visits`: events that come out of order, and a few that come too late."""

from __future__ import annotations

from typing import Annotated

import typer

from headgate._units import format_duration, parse_duration
from headgate.cli.options import Json, On
from headgate.cli.output import print_json, say
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
    ProducedVisits,
    VisitsOptions,
    VisitsProgress,
    produce_visits,
)

_DEFAULTS = VisitsOptions()


def send_visits(
    count: Annotated[
        int, typer.Option(metavar="N", help="How many events.", rich_help_panel=HOW_MUCH)
    ] = _DEFAULTS.count,
    visits: Annotated[
        int,
        typer.Option(metavar="N", help="How many visits they are of.", rich_help_panel=HOW_MUCH),
    ] = _DEFAULTS.visits,
    rate: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="Events per second; full speed if left out.",
            rich_help_panel=HOW_MUCH,
            show_default=False,
        ),
    ] = None,
    span: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="How much event time they cover.",
            rich_help_panel=HOW_MUCH,
        ),
    ] = format_duration(_DEFAULTS.span),
    late: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Events that come 30 to 60 minutes of event time too late.",
            rich_help_panel=WHAT_KIND,
        ),
    ] = _DEFAULTS.late,
    out_of_order: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="How far the times of the others lie back at most.",
            rich_help_panel=WHAT_KIND,
        ),
    ] = format_duration(_DEFAULTS.out_of_order),
    seed: Annotated[
        int,
        typer.Option(metavar="N", help="Another seed, other visits.", rich_help_panel=WHAT_KIND),
    ] = _DEFAULTS.seed,
    number: Annotated[
        int,
        typer.Option(
            "--round",
            metavar="N",
            help="From 1 on: event times continue after the round before.",
            rich_help_panel=WHAT_KIND,
        ),
    ] = _DEFAULTS.round,
    on: On = DEFAULT_LOG,
    partitions: Partitions = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Send the events of visits to the topic visits: event_id, visit_id, event_time and page.

    Event times are epoch milliseconds and move forward from 2025-09-04T10:00:00Z, however fast
    the events are sent. A topic that is missing is made. On brokers the visit is the key of a
    record, and records are kept for 7 days.

    [bold]Examples[/bold]

      headgate produce visits  # 2 hours of 100 visits
      headgate produce visits --rate 100 --late 0.05
      headgate produce visits --round 1  # the next 2 hours
      headgate produce visits --on kafka://localhost:9092 --partitions 8
      headgate produce visits --on pulsar://localhost:6650
    """
    options = VisitsOptions(
        count=count,
        visits=visits,
        late=late,
        out_of_order=parse_duration(out_of_order),
        span=parse_duration(span),
        seed=seed,
        round=number,
        partitions=partitions,
    )
    with sending_bars(hidden=quiet) as bars:

        def show(latest: VisitsProgress) -> None:
            bars.show({"visits": (latest.sent, latest.total)}, _summary(latest.sent))

        produced = produce_visits(on, options, rate=rate, progress=show)
    if as_json:
        print_json(produced)
    elif not quiet:
        _tell(produced)


def _tell(produced: ProducedVisits) -> None:
    tell_sent(produced.sent, produced.seconds, where=produced.where, made=produced.made)
    times = (f"{moment:%Y-%m-%dT%H:%M:%S}" for moment in (produced.begin, produced.end))
    say(f"Event times from {' to '.join(times)} UTC, '{produced.late}' events late")
    say(_summary(produced.sent))


def _summary(sent: int) -> str:
    return f"Sent '{sent}' visit records" if sent else "Sent no records"
