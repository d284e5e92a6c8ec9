"""The commands that show a job's graph, events and failures."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated, Any

import typer

from headgate._units import format_count, format_size
from headgate.cli.parts.output import (
    Right,
    format_time,
    note,
    or_dash,
    plural,
    print_section,
    print_table,
    say,
    visible,
)
from headgate.cli.parts.place import Job, Place
from headgate.jobs.views.events import Events, JobEvent
from headgate.jobs.views.exceptions import Exceptions, JobAttempt
from headgate.jobs.views.graph import GraphEdge, GraphNode, GraphView

_SECOND = timedelta(seconds=1)


def graph(job: Job, *, place: Place) -> None:
    """Show a job's flow with its traffic: rows, state, lag, how busy operators are.

    Counts cover the current or last start of the job. A dash means unknown.

    [bold]Examples[/bold]

      headgate graph order-enrichment
      headgate graph order-enrichment --json
    """
    place.show(place.home.graph(job), lambda view: _print_graph(view, job))


def _print_graph(view: GraphView, job: str) -> None:
    if not view.nodes:
        say(f"Job '{job}' has no graph yet: it has never run")
        return
    columns = ["node", "kind", Right("in"), Right("out"), Right("out/s")]
    columns += [Right("state rows"), Right("state"), Right("busy"), Right("lag")]
    print_table(columns, [_node(node) for node in view.nodes])
    print_section(
        ["from", "to", "rows", "exchange", Right("records"), Right("per s")],
        [_edge(edge) for edge in view.edges],
    )


def _node(node: GraphNode) -> list[str]:
    facts = node.facts
    size = or_dash(facts.lag_bytes, format_size)
    return [
        f"{node.id} ({visible(node.name)})" if node.name else node.id,
        node.operator if node.kind == "operator" else node.kind,
        or_dash(facts.records_in, format_count),
        or_dash(facts.records_out, format_count),
        or_dash(facts.out_per_s, _rate),
        or_dash(facts.state_rows, format_count),
        or_dash(facts.state_bytes, format_size),
        or_dash(facts.busy, "{:.0%}".format),
        size if facts.lag_records is None else format_count(facts.lag_records),
    ]


def _edge(edge: GraphEdge) -> list[str]:
    ends = [edge.source, edge.target, edge.label or "-", edge.exchange or "-"]
    return [*ends, or_dash(edge.records, format_count), or_dash(edge.per_s, _rate)]


def _rate(rate: float) -> str:
    return format_count(round(rate))


def events(
    job: Job,
    *,
    after: Annotated[
        int | None,
        typer.Option(
            "--after", min=0, metavar="N", help="Page forward: the first events after this number."
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(
            "--limit", min=1, metavar="N", help="Number of events; the newest without --after."
        ),
    ] = 50,
    place: Place,
) -> None:
    """List the events of a job, oldest first: states, checkpoints, failures, requests.

    [bold]Examples[/bold]

      headgate events order-enrichment
      headgate events order-enrichment --after 0 --limit 100
      headgate events order-enrichment --after 120 --json
    """
    none = f"Job '{job}' has no events" + (f" after event {after}" if after else " yet")
    page = place.home.events(job, after=after, limit=limit)
    place.show(page, _print_events if page.events else lambda _: say(none))


def _print_events(page: Events) -> None:
    print_table(
        [Right("number"), "at (UTC)", "event", "facts"],
        [
            [str(event.number), format_time(event.at), event.kind, _facts(event)]
            for event in page.events
        ],
    )
    # A server of an older release does not report the last number.
    if 0 < page.last < page.total:
        left = plural(page.total - page.last, "more event")
        note(f"{left}: headgate events {page.job} --after {page.last}")


def _facts(event: JobEvent) -> str:
    return visible(", ".join(f"{name} {_plain(fact)}" for name, fact in event.facts.items()))


def _plain(fact: Any) -> str:
    return fact if isinstance(fact, str) else json.dumps(fact)


def exceptions(
    job: Job,
    *,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also print the stack traces.")
    ] = False,
    place: Place,
) -> None:
    """Show the failures of a job, newest first and root cause first, and all attempts.

    Stack traces of the last 20 failures are stored; --json always contains them.

    [bold]Examples[/bold]

      headgate exceptions order-enrichment
      headgate exceptions order-enrichment --verbose
      headgate exceptions order-enrichment --json
    """
    place.show(place.home.exceptions(job), lambda page: _print_exceptions(page, verbose=verbose))


def _print_exceptions(page: Exceptions, *, verbose: bool) -> None:
    for line in _failures(page, verbose=verbose):
        say(visible(line))
    print_section(
        [Right("attempt"), "started (UTC)", "state", Right("lasted"), "why"],
        [_attempt(attempt) for attempt in page.attempts],
    )


def _failures(page: Exceptions, *, verbose: bool) -> Iterable[str]:
    if not page.failures:
        yield f"No attempt of job '{page.job}' has failed"
    for number, failure in enumerate(page.failures):
        if number:
            yield ""
        yield failure.root_cause or failure.message
        yield f"  {format_time(failure.at)} UTC, attempt {failure.attempt}, in the {failure.where}"
        yield f"  {failure.code}: {failure.message}"
        if failure.hint:
            yield f"  {failure.hint}"
        if verbose:
            yield from (f"    {line}" for line in failure.trace.splitlines())
    if page.total > len(page.failures):
        yield f"and {format_count(page.total - len(page.failures))} older ones"


def _attempt(attempt: JobAttempt) -> list[str]:
    lasted = or_dash(attempt.lasted, lambda span: str(timedelta(seconds=span // _SECOND)))
    started, reason = format_time(attempt.started), visible(attempt.reason) or "-"
    return [str(attempt.number), started, attempt.state, lasted, reason]
