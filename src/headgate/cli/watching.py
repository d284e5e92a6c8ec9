"""The commands that show a job's graph, events and failures."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated, Any

import typer

from headgate._units import format_count, format_size
from headgate.cli.job_options import Job
from headgate.cli.options import Home, Json, Server, TokenFile
from headgate.cli.output import Right, print_json, print_table, say, visible
from headgate.cli.place import open_home
from headgate.jobs.values import DEFAULT_HOME
from headgate.jobs.views.events import JobEvent
from headgate.jobs.views.exceptions import Exceptions, JobAttempt
from headgate.jobs.views.graph import GraphEdge, GraphNode, GraphView

_SECOND = timedelta(seconds=1)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("graph")(_graph)
    app.command("events")(_events)
    app.command("exceptions")(_exceptions)


def _graph(
    context: typer.Context,
    job: Job,
    home: Home = DEFAULT_HOME,
    server: Server = None,
    token_file: TokenFile = None,
    as_json: Json = False,
) -> None:
    """Show a job's flow with its traffic: rows, state, lag, how busy operators are.

    Counts cover the current or last start of the job. A dash means unknown.

    [bold]Examples[/bold]

      headgate graph order-enrichment
      headgate graph order-enrichment --json
    """
    view = open_home(context, home, server, token_file).graph(job)
    if as_json:
        print_json(view)
    elif not view.nodes:
        say(f"Job '{job}' has no graph yet: it has never run")
    else:
        _print_graph(view)


def _print_graph(view: GraphView) -> None:
    columns = ["node", "kind", Right("in"), Right("out"), Right("out/s")]
    columns += [Right("state rows"), Right("state"), Right("busy"), Right("lag")]
    print_table(columns, [_node(each) for each in view.nodes])
    say("")
    print_table(
        ["from", "to", "rows", "exchange", Right("records"), Right("per s")],
        [_edge(each) for each in view.edges],
    )


def _node(node: GraphNode) -> list[str]:
    facts = node.facts
    return [
        node.id,
        node.operator if node.kind == "operator" else node.kind,
        _count(facts.records_in),
        _count(facts.records_out),
        _rate(facts.out_per_s),
        _count(facts.state_rows),
        "-" if facts.state_bytes is None else format_size(facts.state_bytes),
        "-" if facts.busy is None else f"{facts.busy:.0%}",
        _lag(node),
    ]


def _lag(node: GraphNode) -> str:
    facts = node.facts
    if facts.lag_records is not None:
        return format_count(facts.lag_records)
    return "-" if facts.lag_bytes is None else format_size(facts.lag_bytes)


def _edge(edge: GraphEdge) -> list[str]:
    ends = [edge.source, edge.target, edge.label or "-", edge.exchange or "-"]
    return [*ends, _count(edge.records), _rate(edge.per_s)]


def _count(count: int | None) -> str:
    return "-" if count is None else format_count(count)


def _rate(rate: float | None) -> str:
    return "-" if rate is None else format_count(round(rate))


def _events(
    context: typer.Context,
    job: Job,
    after: Annotated[
        int, typer.Option("--after", min=0, metavar="N", help="Only events with a greater number.")
    ] = 0,
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help="Number of newest events.")
    ] = 50,
    home: Home = DEFAULT_HOME,
    server: Server = None,
    token_file: TokenFile = None,
    as_json: Json = False,
) -> None:
    """List the events of a job, oldest first: states, checkpoints, failures, requests.

    [bold]Examples[/bold]

      headgate events order-enrichment
      headgate events order-enrichment --after 120 --json
    """
    place = open_home(context, home, server, token_file)
    found = place.events(job, after=after, limit=limit)
    if as_json:
        print_json(found)
    elif not found.events:
        say(f"Job '{job}' has no events" + (f" after event {after}" if after else " yet"))
    else:
        print_table(
            [Right("number"), "at (UTC)", "event", "facts"],
            [
                [str(each.number), f"{each.at:%Y-%m-%d %H:%M:%S}", each.kind, _facts(each)]
                for each in found.events
            ],
        )


def _facts(event: JobEvent) -> str:
    return visible(", ".join(f"{name} {_plain(fact)}" for name, fact in event.facts.items()))


def _plain(fact: Any) -> str:
    return fact if isinstance(fact, str) else json.dumps(fact)


def _exceptions(
    context: typer.Context,
    job: Job,
    home: Home = DEFAULT_HOME,
    server: Server = None,
    token_file: TokenFile = None,
    as_json: Json = False,
) -> None:
    """Show the failures of a job, newest first and root cause first, and all attempts.

    [bold]Examples[/bold]

      headgate exceptions order-enrichment
      headgate exceptions order-enrichment --json
    """
    found = open_home(context, home, server, token_file).exceptions(job)
    if as_json:
        print_json(found)
        return
    for line in _failures(found):
        say(visible(line))
    if found.attempts:
        say("")
        print_table(
            [Right("attempt"), "started (UTC)", "state", Right("lasted"), "why"],
            [_attempt(each) for each in found.attempts],
        )


def _failures(found: Exceptions) -> Iterable[str]:
    if not found.failures:
        yield f"No attempt of job '{found.job}' has failed"
    for place, each in enumerate(found.failures):
        if place:
            yield ""
        yield each.root_cause or each.message
        yield f"  {each.at:%Y-%m-%d %H:%M:%S} UTC, attempt {each.attempt}, in the {each.where}"
        yield f"  {each.code}: {each.message}"
        if each.hint:
            yield f"  {each.hint}"
    if found.total > len(found.failures):
        yield f"and {format_count(found.total - len(found.failures))} older ones"


def _attempt(attempt: JobAttempt) -> list[str]:
    lasted = "-" if attempt.lasted is None else str(timedelta(seconds=attempt.lasted // _SECOND))
    started = f"{attempt.started:%Y-%m-%d %H:%M:%S}"
    return [str(attempt.number), started, attempt.state, lasted, visible(attempt.reason) or "-"]
