"""The commands that show jobs: jobs, show, lag."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from rich.text import Text

from headgate._units import format_count, format_size
from headgate.cli.parts.output import (
    Right,
    format_age,
    note,
    or_dash,
    plural,
    print_facts,
    print_section,
    print_table,
    say,
    visible,
    warn,
)
from headgate.cli.parts.place import Job, Place, whole
from headgate.cli.parts.status import lag_text, source_lags, state_style
from headgate.cli.views.checkpoints import checkpoint_rows
from headgate.jobs.views.job import DEAD, JobDetails, JobView


def jobs(*, place: Place) -> None:
    """List the jobs: state, attempt, uptime, rate, lag and last checkpoint.

    Jobs that need attention come first. A job is DEAD if its supervisor was killed; 'headgate
    start' restarts it.

    [bold]Examples[/bold]

      headgate jobs
      headgate jobs --json
      headgate jobs --server http://build-7:8270
    """
    views = place.home.jobs()
    if views:
        place.show(views, _print_jobs)
    else:
        nothing = f"There are no jobs in {place.home.where}; headgate run FLOW starts one"
        place.show(views, lambda _: say(nothing))


def _print_jobs(views: Sequence[JobView]) -> None:
    columns = ["job", "state", Right("attempt"), Right("uptime"), Right("records/s")]
    print_table(
        [*columns, Right("lag"), "checkpoint", Right("age")], [_row(view) for view in views]
    )
    for view in views:
        if view.reason and view.todo:
            note(f"{view.name} is {_state(view)}: {visible(view.reason)}")
            note(Text.assemble(("hint", "bold cyan"), f": {view.todo}"))


def _row(view: JobView) -> list[str | Text]:
    return [
        view.name,
        Text(_state(view), style="red" if view.is_failing else state_style(view.state)),
        format_count(view.attempt),
        or_dash(view.uptime, _uptime),
        format_count(view.records_per_s),
        lag_text(view.lag_bytes, view.lag_records, view.lag),
        view.checkpoint or "-",
        format_age(view.checkpoint_at),
    ]


def _state(view: JobView) -> str:
    failures = f" after {plural(view.failures, 'failure')}" if view.failures else ""
    return f"{view.state}{failures}"


def _uptime(uptime: timedelta) -> str:
    return whole(max(uptime, timedelta(0)))


def show(job: Job, *, place: Place) -> None:
    """Show one job: its status, the end of its last attempt, its settings and checkpoints.

    [bold]Examples[/bold]

      headgate show order-enrichment
      headgate show order-enrichment --json
    """
    details = place.home.details(job)
    place.show(details, _print_details)


def _print_details(details: JobDetails) -> None:
    status = details.view.status
    print_facts(_facts(details))
    failure = status.get("last_failure")
    if failure:
        _say_failure(failure)
    print_section(["", "topic or operator", Right("records"), Right("size")], _counts(status))
    _say_event_times(status)
    print_section(*checkpoint_rows(details.checkpoints))
    if details.unlisted:
        warn(f"the checkpoints are not listed: {details.unlisted}")
    print_section(
        ["setting", "value", "from"],
        [
            [name, or_dash(setting["value"]), setting["from"]]
            for name, setting in details.settings.items()
        ],
    )


def _facts(details: JobDetails) -> Iterable[tuple[str, str]]:
    view, status = details.view, details.view.status
    yield "job", view.name
    since = f" for {format_age(view.since)}" if view.since else ""
    yield "state", f"{view.state}{since}"
    if view.failures:
        yield "failures", f"{format_count(view.failures)} in a row"
    if view.reason:
        yield "reason", visible(view.reason)
    if view.todo:
        yield "to do", view.todo
    if status.get("notice"):
        yield "warning", visible(str(status["notice"]))
    restarts = int(status.get("restarts") or 0)
    yield "attempt", f"{view.attempt}, after {plural(restarts, 'restart')}"
    if status.get("restart_after_s") is not None:
        yield "restart", f"after {status['restart_after_s']:g}s"
    if view.is_alive:
        yield "uptime", or_dash(view.uptime, _uptime)
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
        yield "watermark", f"{_to_second(status['watermark'])} UTC{held}"
    error = status.get("intent_error")
    if error:
        yield "last wish", visible(f"{error['code']} {error['message']}")


def _say_failure(failure: Mapping[str, Any]) -> None:
    say("")
    say(f"Attempt {failure['attempt']} ended at {_to_second(failure['at'])} UTC:")
    say(f"  {failure['code']}: {visible(failure['message'])}")
    say(f"  root cause: {visible(failure['root_cause'])} (in the {failure['where']})")


def _counts(status: Mapping[str, Any]) -> list[list[str]]:
    """Return the rows in, out and in state, with the lag of sources and the size of state."""
    lags, sizes = source_lags(status), status.get("state_bytes") or {}
    left = {name: f"{lag} left" for name, lag in lags.items()}
    state = {name: format_size(size) for name, size in sizes.items()}
    return [
        [head, name, format_count(count), more.get(name, missing)]
        for head, counts, more, missing in (
            ("in", "inputs", left, ""),
            ("out", "outputs", {}, ""),
            ("state", "state_rows", state, format_size(0)),
        )
        for name, count in sorted((status.get(counts) or {}).items())
    ]


def _say_event_times(status: Mapping[str, Any]) -> None:
    """Print the event time of each partition if there are several."""
    rows = [
        [
            stream,
            visible(name),
            or_dash(partition["time"], _to_second),
            "idle" if partition["idle"] else "",
        ]
        for stream, times in sorted((status.get("event_times") or {}).items())
        for name, partition in sorted(times["partitions"].items())
    ]
    if len(rows) > 1:
        print_section(["stream", "partition", "event time (UTC)", ""], rows)


def _to_second(moment: str) -> str:
    return moment[:19].replace("T", " ")


def lag(job: Job, *, place: Place) -> None:
    """Show the lag of each source: bytes of files, records of Kafka and their age.

    As of the job's last batch; for a stopped job, as of its end.

    [bold]Examples[/bold]

      headgate lag order-enrichment
      headgate lag order-enrichment --json
    """
    view = place.home.job(job)
    status = view.status
    content = {
        "job": view.name,
        "state": view.state,
        "at": status.get("at"),
        **{name: status.get(name) or {} for name in ("lag_bytes", "lag_records", "lag_s")},
        "total_bytes": view.lag_bytes,
        "total_records": view.lag_records,
    }
    place.show(content, lambda _: _print_lag(view))


def _print_lag(view: JobView) -> None:
    lags = source_lags(view.status)
    if not lags:
        say(f"Job '{view.name}' has read nothing yet; it is {view.state}")
        return
    total = lag_text(view.lag_bytes, view.lag_records, view.lag)
    print_table(["source", Right("left to read")], [*map(list, lags.items()), ["all", total]])
    if view.is_final or view.state == DEAD:
        note(f"as of its end: job '{view.name}' is {view.state}")
