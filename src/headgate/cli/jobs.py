"""The commands that show jobs: jobs, show, lag."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import typer
from rich.text import Text

from headgate._units import format_count, format_size
from headgate.cli.checkpoints import checkpoint_rows
from headgate.cli.job_options import Job, whole
from headgate.cli.lag import lag_text, source_lags
from headgate.cli.options import Home, Json, Server, TokenFile
from headgate.cli.output import Right, format_age, note, print_json, print_table, say, visible
from headgate.cli.place import open_home
from headgate.cli.status import state_style
from headgate.jobs.values import DEFAULT_HOME
from headgate.jobs.views.job import DEAD, JobDetails, JobView


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("jobs")(_jobs)
    app.command("show")(_show)
    app.command("lag")(_lag)


def _jobs(
    context: typer.Context,
    home: Home = DEFAULT_HOME,
    server: Server = None,
    token_file: TokenFile = None,
    as_json: Json = False,
) -> None:
    """List the jobs: state, attempt, uptime, rate, lag and last checkpoint.

    A job is DEAD if its supervisor was killed; 'headgate start' restarts it.

    [bold]Examples[/bold]

      headgate jobs
      headgate jobs --json
      headgate jobs --server http://build-7:8270
    """
    place = open_home(context, home, server, token_file)
    found = place.jobs()
    if as_json:
        print_json(found)
        return
    if not found:
        say(f"There are no jobs in {place.where}; headgate run FLOW starts one")
        return
    columns = ["job", "state", Right("attempt"), Right("uptime"), Right("records/s")]
    print_table(
        [*columns, Right("lag"), "checkpoint", Right("age")], [_row(each) for each in found]
    )
    for each in found:
        if each.reason and each.todo:
            note(f"{each.name} is {each.state}: {visible(each.reason)}")
            note(Text.assemble(("hint", "bold cyan"), f": {each.todo}"))


def _row(view: JobView) -> list[str | Text]:
    return [
        view.name,
        Text(view.state, style=state_style(view.state)),
        format_count(view.attempt),
        _uptime(view),
        format_count(view.records_per_s),
        lag_text(view.lag_bytes, view.lag_records, view.lag),
        view.checkpoint or "-",
        format_age(view.checkpoint_at),
    ]


def _uptime(view: JobView) -> str:
    return "-" if view.uptime is None else whole(max(view.uptime, timedelta(0)))


def _show(
    context: typer.Context,
    job: Job,
    home: Home = DEFAULT_HOME,
    server: Server = None,
    token_file: TokenFile = None,
    as_json: Json = False,
) -> None:
    """Show one job: its status, the end of its last attempt, its settings and checkpoints.

    [bold]Examples[/bold]

      headgate show order-enrichment
      headgate show order-enrichment --json
    """
    details = open_home(context, home, server, token_file).details(job)
    if as_json:
        print_json(details)
        return
    for label, value in _facts(details):
        say(f"{label:<12}{value}")
    failure = details.view.status.get("last_failure")
    if failure:
        _say_failure(failure)
    _say_counts(details.view.status)
    _say_event_times(details.view.status)
    if details.checkpoints:
        say("")
        columns, rows = checkpoint_rows(details.checkpoints)
        print_table(columns, rows)
    if details.settings:
        say("")
        print_table(
            ["setting", "value", "from"],
            [
                [name, _value(each["value"]), each["from"]]
                for name, each in details.settings.items()
            ],
        )


def _facts(details: JobDetails) -> Iterable[tuple[str, str]]:
    view, status = details.view, details.view.status
    yield "job", view.name
    since = f" for {format_age(view.since)}" if view.since else ""
    yield "state", f"{view.state}{since}"
    if view.reason:
        yield "reason", visible(view.reason)
    if view.todo:
        yield "to do", view.todo
    if status.get("notice"):
        yield "warning", visible(str(status["notice"]))
    restarts = int(status.get("restarts") or 0)
    yield "attempt", f"{view.attempt}, after {restarts} restart{'' if restarts == 1 else 's'}"
    if status.get("restart_after_s") is not None:
        yield "restart", f"after {status['restart_after_s']:g}s"
    if view.is_alive:
        yield "uptime", _uptime(view)
        yield "supervisor", f"process {status.get('pid')}, driver {status.get('child') or 'none'}"
    if status.get("lineage"):
        resumed = status.get("resumed_from")
        yield "run", f"{status['lineage']}{f', resumed from {resumed}' if resumed else ''}"
    yield "flow", details.flow or "not known before an attempt runs"
    yield "folder", str(details.folder)
    if status.get("batch") is not None:
        rate = format_count(view.records_per_s)
        yield "batch", f"{format_count(status['batch'])}, {rate} records/s"
    if status.get("watermark"):
        holder = status.get("held_back_by")
        held = f", held back by {visible(holder)}" if holder else ""
        yield "watermark", f"{status['watermark'][:19].replace('T', ' ')} UTC{held}"
    error = status.get("intent_error")
    if error:
        yield "last wish", visible(f"{error['code']} {error['message']}")


def _say_failure(failure: Mapping[str, Any]) -> None:
    say("")
    say(f"Attempt {failure['attempt']} ended at {failure['at'][:19].replace('T', ' ')} UTC:")
    say(f"  {failure['code']}: {visible(failure['message'])}")
    say(f"  root cause: {visible(failure['root_cause'])} (in the {failure['where']})")


def _say_counts(status: Mapping[str, Any]) -> None:
    lags = source_lags(status)
    rows = [
        ["in", name, format_count(count), f"{lags[name]} left" if name in lags else ""]
        for name, count in sorted((status.get("inputs") or {}).items())
    ]
    rows += [
        ["out", name, format_count(count), ""]
        for name, count in sorted((status.get("outputs") or {}).items())
    ]
    sizes: Mapping[str, int] = status.get("state_bytes") or {}
    rows += [
        ["state", name, format_count(count), format_size(sizes.get(name, 0))]
        for name, count in sorted((status.get("state_rows") or {}).items())
    ]
    if rows:
        say("")
        print_table(["", "topic or operator", Right("records"), Right("size")], rows)


def _say_event_times(status: Mapping[str, Any]) -> None:
    """Print the event time of each partition if there are several."""
    rows = [
        [stream, visible(name), _moment(each["time"]), "idle" if each["idle"] else ""]
        for stream, told in sorted((status.get("event_times") or {}).items())
        for name, each in sorted(told["partitions"].items())
    ]
    if len(rows) > 1:
        say("")
        print_table(["stream", "partition", "event time (UTC)", ""], rows)


def _moment(text: str | None) -> str:
    return "-" if text is None else text[:19].replace("T", " ")


def _value(value: Any) -> str:
    return "-" if value is None else str(value)


def _lag(
    context: typer.Context,
    job: Job,
    home: Home = DEFAULT_HOME,
    server: Server = None,
    token_file: TokenFile = None,
    as_json: Json = False,
) -> None:
    """Show the lag of each source: bytes of files, records of Kafka and their age.

    As of the job's last batch; for a stopped job, as of its end.

    [bold]Examples[/bold]

      headgate lag order-enrichment
      headgate lag order-enrichment --json
    """
    view = open_home(context, home, server, token_file).job(job)
    status = view.status
    lags = source_lags(status)
    if as_json:
        print_json(
            {
                "job": view.name,
                "state": view.state,
                "at": status.get("at"),
                "lag_bytes": status.get("lag_bytes") or {},
                "lag_records": status.get("lag_records") or {},
                "lag_s": status.get("lag_s") or {},
                "total_bytes": view.lag_bytes,
                "total_records": view.lag_records,
            }
        )
        return
    if not lags:
        say(f"Job '{view.name}' has read nothing yet; it is {view.state}")
        return
    total = lag_text(view.lag_bytes, view.lag_records, view.lag)
    print_table(["source", Right("left to read")], [*map(list, lags.items()), ["all", total]])
    if view.is_final or view.state == DEAD:
        note(f"as of its end: job '{view.name}' is {view.state}")
