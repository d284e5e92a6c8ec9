"""`headgate dead-letters`: which records a job could not take, and sending them again."""

from __future__ import annotations

import enum
import getpass
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from headgate._units import format_count, format_size
from headgate.cli.job_options import Job
from headgate.cli.options import Home, Json, Server, TokenFile
from headgate.cli.output import (
    Right,
    format_age,
    note,
    print_json,
    print_table,
    say,
    stderr,
    visible,
)
from headgate.cli.place import open_jobs
from headgate.jobs.service import (
    DEFAULT_HOME,
    DeadLetter,
    DeadLetters,
    Replayed,
    ReplayProgress,
)

# Some records could not be sent, or nobody knows whether they were.
_NOT_ALL = 1
_DUMPED = 4096
_DETAIL = 60
_NAMED = 10


class Action(enum.StrEnum):
    """What can be done with dead letters."""

    LIST = "list"
    SHOW = "show"
    REPLAY = "replay"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("dead-letters")(_dead_letters)


def _dead_letters(
    context: typer.Context,
    job: Job,
    action: Annotated[
        Action, typer.Argument(help="What to do with them.", show_default=True)
    ] = Action.LIST,
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID...", help="Letters, as list names them.", show_default=False),
    ] = None,
    reason: Annotated[
        str | None,
        typer.Option(
            metavar="REASON",
            help="list, replay: of this reason alone, as BAD_JSON.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(metavar="N", min=0, help="list: how many of the newest.")
    ] = 20,
    raw: Annotated[
        bool, typer.Option("--raw", help="show: write the record's bytes and nothing else.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="replay: all of them.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="replay: say what would be sent, and send nothing.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="replay: those too that were or may have been sent.")
    ] = False,
    without_key: Annotated[
        bool,
        typer.Option(
            "--without-key",
            help="replay: send values without a key where the record is gone.",
        ),
    ] = False,
    into_tables: Annotated[
        bool,
        typer.Option(
            "--into-tables",
            help="replay: rows of tables without a version too, over newer ones.",
        ),
    ] = False,
    home: Home = DEFAULT_HOME,
    server: Server = None,
    token_file: TokenFile = None,
    as_json: Json = False,
) -> None:
    """Show the records that a job could not take, and send them again after a fix.

    A record goes back to the topic and the partition it came from, with its key and its headers,
    which are read again where it stood. Each is sent once: what was replayed is remembered in the
    job's folder.

    [bold]Examples[/bold]

      headgate dead-letters order-enrichment
      headgate dead-letters order-enrichment list --reason BAD_JSON --limit 5
      headgate dead-letters order-enrichment show 0:1042
      headgate dead-letters order-enrichment show 0:1042 --raw > record
      headgate dead-letters order-enrichment replay 0:1042 0:1043
      headgate dead-letters order-enrichment replay --reason WRONG_TYPE --dry-run
    """
    chosen = tuple(ids or ())
    jobs = open_jobs(context, home, server, token_file)
    match action:
        case Action.LIST:
            if chosen:
                raise typer.BadParameter("list takes no ids; show and replay do", context)
            found = jobs.list_dead_letters(job, reason=reason, limit=limit)
            _print_list(found, reason, as_json=as_json)
        case Action.SHOW:
            if len(chosen) != 1:
                raise typer.BadParameter("name one letter, as list names them", context)
            _print_one(jobs.get_dead_letter(job, chosen[0]), raw=raw, as_json=as_json)
        case Action.REPLAY:
            if not (chosen or reason or every):
                raise typer.BadParameter("name letters, --reason or --all", context)
            if chosen and every:
                raise typer.BadParameter("name letters or --all, not both", context)
            with _bar() as show:
                done = jobs.replay_dead_letters(
                    job,
                    ids=chosen,
                    reason=reason,
                    by=_user(),
                    again=again,
                    without_key=without_key,
                    into_tables=into_tables,
                    dry_run=dry_run,
                    progress=show,
                )
            _print_replayed(done, as_json=as_json)


def _print_list(found: DeadLetters, reason: str | None, *, as_json: bool) -> None:
    if as_json:
        print_json(found.to_json())
        return
    if not found.total:
        say(f"Job '{found.job}' has no dead letters in topic '{found.topic}', {found.log}")
        return
    least = "at least " if found.at_least else ""
    total = format_count(found.total)
    say(f"{least}{total} dead letters in topic '{found.topic}', {found.log}")
    say("")
    print_table(
        ["topic", "reason", Right("letters")],
        [[visible(each.topic), each.reason, format_count(each.count)] for each in found.counts],
    )
    if found.others:
        note(f"note: {format_count(found.others)} letters of the topic are of other jobs")
    if found.foreign:
        note(f"note: {format_count(found.foreign)} records of the topic are no dead letters")
    if found.letters:
        say("")
        print_table(
            ["id", Right("age"), "topic", "reason", "detail", Right("size"), "replayed"],
            [_row(each) for each in found.letters],
        )
    elif reason is not None:
        say("")
        say(f"None of the newest is of reason {reason.upper()}")


def _row(letter: DeadLetter) -> list[str | Text]:
    detail = letter.detail
    return [
        letter.id,
        format_age(letter.at),
        visible(letter.topic or letter.source),
        letter.reason,
        visible(detail if len(detail) <= _DETAIL else f"{detail[: _DETAIL - 1]}…"),
        format_size(letter.size),
        _replayed(letter),
    ]


def _replayed(letter: DeadLetter) -> str:
    if letter.replayed_at is None:
        return "-"
    if letter.in_doubt:
        return "in doubt"
    return f"{format_age(letter.replayed_at)} ago"


def _print_one(letter: DeadLetter, *, raw: bool, as_json: bool) -> None:
    if raw:
        sys.stdout.flush()
        sys.stdout.buffer.write(letter.raw or b"")
        sys.stdout.buffer.flush()
    elif as_json:
        print_json(letter.to_json())
    else:
        for name, value in _facts(letter):
            say(f"{name:<12}{visible(value)}")
        say("")
        _print_record(letter)


def _facts(letter: DeadLetter) -> Iterator[tuple[str, str]]:
    yield "id", letter.id
    yield "reason", letter.reason
    yield "detail", letter.detail
    yield ("operator" if letter.of_row else "source"), letter.source
    if letter.expression:
        yield "expression", letter.expression
    yield "topic", letter.topic or "unknown"
    yield "partition", str(letter.partition)
    yield "offset", str(letter.offset)
    if letter.record_at is not None:
        yield "record of", f"{letter.record_at:%Y-%m-%d %H:%M:%S} UTC"
    if letter.at is not None:
        yield "written", f"{letter.at:%Y-%m-%d %H:%M:%S} UTC"
    yield "size", f"{format_count(letter.size)} bytes"
    if letter.replayed_at is None:
        yield "replayed", "no"
    else:
        what = "in doubt, begun" if letter.in_doubt else "yes,"
        by = f" by {letter.replayed_by}"
        yield "replayed", f"{what} {letter.replayed_at:%Y-%m-%d %H:%M:%S} UTC{by}"


def _print_record(letter: DeadLetter) -> None:
    what = "row" if letter.of_row else "record"
    if letter.raw is None:
        say(f"The {what} has no value")
        return
    if letter.is_text:
        for line in letter.text.splitlines() or [""]:
            say(visible(line))
    else:
        for line in dump(letter.raw[:_DUMPED]):
            say(line)
        if len(letter.raw) > _DUMPED:
            note(f"note: the first {_DUMPED} bytes; --raw writes all")
    if letter.cut:
        kept, size = format_count(len(letter.raw)), format_count(letter.size)
        note(f"note: the {what} was cut: {kept} of its {size} bytes are kept here")


def dump(raw: bytes) -> Iterator[str]:
    """Yield lines with 16 bytes each: where they are, as numbers, and as characters."""
    for start in range(0, len(raw), 16):
        some = raw[start : start + 16]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in some)
        yield f"{start:08x}  {some[:8].hex(' '):<23}  {some[8:].hex(' '):<23}  {shown}"


def _print_replayed(done: Replayed, *, as_json: bool) -> None:
    if as_json:
        print_json(done)
    else:
        _say_replayed(done)
    if done.refused_total or done.in_doubt:
        raise typer.Exit(_NOT_ALL)


def _say_replayed(done: Replayed) -> None:
    to = ", ".join(f"{format_count(count)} to '{topic}'" for topic, count in done.sent.items())
    verb = "would be sent" if done.dry_run else "sent and acknowledged"
    say(f"{_records(done.total)} {verb}{f': {to}' if to else ''}")
    if done.without_key:
        say(f"{format_count(done.without_key)} of them without a message key")
    if done.skipped:
        say(f"{_records(done.skipped)} left out: replayed before (--again sends them again)")
    if done.in_doubt:
        say(
            f"{_records(done.in_doubt)} left out: a replay of them broke off, so that they may "
            f"have arrived (--again sends them): {_some(done.doubts, done.in_doubt)}"
        )
    for each in done.named[:_NAMED]:
        say(Text(f"refused {each.id}: {visible(each.words)}", style="red"))
    if done.refused_total > _NAMED:
        say(f"refused {format_count(done.refused_total)} in all")


def _records(count: int) -> str:
    return f"{format_count(count)} record{'' if count == 1 else 's'}"


def _some(ids: Sequence[str], total: int) -> str:
    return ", ".join(ids[:_NAMED]) + (", ..." if total > _NAMED else "")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "cli"


@contextmanager
def _bar() -> Iterator[Callable[[ReplayProgress], None]]:
    console = stderr()
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None, complete_style="cyan", finished_style="green"),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
        expand=True,
    )
    task = progress.add_task("letters", total=None)

    def show(latest: ReplayProgress) -> None:
        sent = f"letters, {format_count(latest.sent)} sent"
        progress.update(task, completed=latest.looked_at, total=latest.total, description=sent)

    with progress:
        yield show
