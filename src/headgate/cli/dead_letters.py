"""`headgate dead-letters`: records that a job could not process, and their replay."""

from __future__ import annotations

import enum
import getpass
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, TypeAlias

import typer
from rich.text import Text

from headgate._units import format_count, format_size
from headgate.cli.bars import open_bars
from headgate.cli.job_options import Job
from headgate.cli.options import Home, Json, Server, TokenFile
from headgate.cli.output import (
    Right,
    format_age,
    note,
    print_json,
    print_table,
    say,
    visible,
)
from headgate.cli.place import open_home
from headgate.jobs.dead_letters.letter import DeadLetter
from headgate.jobs.dead_letters.listing import DeadLetters
from headgate.jobs.dead_letters.replay import Replayed, ReplayProgress, ReplayRequest
from headgate.jobs.values import DEFAULT_HOME

# Some records could not be sent, or may not have arrived.
_NOT_ALL = 1
_DUMPED = 4096
_DETAIL = 60
_NAMED = 10


class Action(enum.StrEnum):
    """The actions on dead letters."""

    LIST = "list"
    SHOW = "show"
    REPLAY = "replay"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("dead-letters")(_dead_letters)


_Ids: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID...", help="Ids of letters, as shown by list.", show_default=False),
]
_Reason: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="REASON",
        help="list, replay: only letters with this reason, such as BAD_JSON.",
        show_default=False,
    ),
]
_Limit: TypeAlias = Annotated[
    int, typer.Option(metavar="N", min=0, help="list: number of newest letters.")
]
_Raw: TypeAlias = Annotated[
    bool, typer.Option("--raw", help="show: write only the record's bytes.")
]
_DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="replay: show what would be sent, and send nothing.")
]
_Again: TypeAlias = Annotated[
    bool,
    typer.Option("--again", help="replay: include letters that were or may have been sent."),
]
_WithoutKey: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--without-key",
        help="replay: send values without a key if the record was deleted.",
    ),
]
_IntoTables: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--into-tables",
        help="replay: include rows of tables without a version, over newer ones.",
    ),
]


def _dead_letters(
    context: typer.Context,
    job: Job,
    action: Annotated[Action, typer.Argument(help="The action.", show_default=True)] = Action.LIST,
    ids: _Ids = None,
    reason: _Reason = None,
    limit: _Limit = 20,
    raw: _Raw = False,
    every: Annotated[bool, typer.Option("--all", help="replay: all letters.")] = False,
    dry_run: _DryRun = False,
    again: _Again = False,
    without_key: _WithoutKey = False,
    into_tables: _IntoTables = False,
    home: Home = DEFAULT_HOME,
    server: Server = None,
    token_file: TokenFile = None,
    as_json: Json = False,
) -> None:
    """Show the records that a job could not process, and replay them after a fix.

    A record goes back to its topic and partition, with its key and headers, which are read again
    from the topic. Each record is sent once: the job's folder stores what was replayed.

    [bold]Examples[/bold]

      headgate dead-letters order-enrichment
      headgate dead-letters order-enrichment list --reason BAD_JSON --limit 5
      headgate dead-letters order-enrichment show 0:1042
      headgate dead-letters order-enrichment show 0:1042 --raw > record
      headgate dead-letters order-enrichment replay 0:1042 0:1043
      headgate dead-letters order-enrichment replay --reason WRONG_TYPE --dry-run
    """
    chosen = tuple(ids or ())
    place = open_home(context, home, server, token_file)
    match action:
        case Action.LIST:
            if chosen:
                raise typer.BadParameter("list takes no ids; show and replay do", context)
            found = place.dead_letters(job, reason=reason, limit=limit)
            _print_list(found, reason, as_json=as_json)
        case Action.SHOW:
            if len(chosen) != 1:
                raise typer.BadParameter("give one id, as shown by list", context)
            _print_one(place.dead_letter(job, chosen[0]), raw=raw, as_json=as_json)
        case Action.REPLAY:
            _check_replay(context, chosen, reason, every=every)
            with _bar() as show:
                request = ReplayRequest(
                    ids=chosen,
                    reason=reason,
                    again=again,
                    without_key=without_key,
                    into_tables=into_tables,
                    dry_run=dry_run,
                )
                done = place.replay_dead_letters(job, request, by=_user(), progress=show)
            _print_replayed(done, as_json=as_json)


def _check_replay(
    context: typer.Context, ids: Sequence[str], reason: str | None, *, every: bool
) -> None:
    if not (ids or reason or every):
        raise typer.BadParameter("give ids, --reason or --all", context)
    if ids and every:
        raise typer.BadParameter("give ids or --all, not both", context)


def _print_list(found: DeadLetters, reason: str | None, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
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
        note(f"note: {format_count(found.others)} letters in the topic belong to other jobs")
    if found.foreign:
        note(f"note: {format_count(found.foreign)} records in the topic are not dead letters")
    if found.letters:
        say("")
        print_table(
            ["id", Right("age"), "topic", "reason", "detail", Right("size"), "replayed"],
            [_row(each) for each in found.letters],
        )
    elif reason is not None:
        say("")
        say(f"None of the newest letters has reason {reason.upper()}")


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
        print_json(letter)
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
            note(f"note: only the first {_DUMPED} bytes; --raw writes all")
    if letter.cut:
        kept, size = format_count(len(letter.raw)), format_count(letter.size)
        note(f"note: the {what} was truncated: {kept} of its {size} bytes are stored")


def dump(raw: bytes) -> Iterator[str]:
    """Yield lines of 16 bytes each: offset, hexadecimal, and characters."""
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
        say(f"{_records(done.skipped)} skipped: already replayed (--again sends them again)")
    if done.in_doubt:
        say(
            f"{_records(done.in_doubt)} skipped: an interrupted replay may have sent them "
            f"(--again sends them): {_some(done.doubts, done.in_doubt)}"
        )
    for refusal in done.named[:_NAMED]:
        say(Text(f"refused {refusal.id}: {visible(refusal.words)}", style="red"))
    if done.refused_total > _NAMED:
        say(f"refused {format_count(done.refused_total)} in total")


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
    progress = open_bars("{task.description}")
    task = progress.add_task("letters", total=None)

    def show(latest: ReplayProgress) -> None:
        sent = f"letters, {format_count(latest.sent)} sent"
        progress.update(task, completed=latest.looked_at, total=latest.total, description=sent)

    with progress:
        yield show
