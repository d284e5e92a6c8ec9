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
from headgate.cli.parts.output import (
    Right,
    format_age,
    format_time,
    note,
    open_bars,
    plural,
    print_facts,
    print_section,
    say,
    visible,
)
from headgate.cli.parts.place import Job, Place
from headgate.jobs.dead_letters.letter import DeadLetter
from headgate.jobs.dead_letters.listing import DeadLetters
from headgate.jobs.dead_letters.replay import Replayed, ReplayProgress, ReplayRequest

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


_Ids: TypeAlias = Annotated[
    list[str] | None, typer.Argument(metavar="ID...", help="Ids of letters, as shown by list.")
]
_Reason: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="REASON", help="list, replay: only letters with this reason, such as BAD_JSON."
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
    bool, typer.Option("--again", help="replay: include letters that were or may have been sent.")
]
_WithoutKey: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--without-key", help="replay: send values without a key if the record was deleted."
    ),
]
_IntoTables: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--into-tables", help="replay: include rows of tables without a version, over newer ones."
    ),
]


def dead_letters(
    job: Job,
    action: Annotated[Action, typer.Argument(help="The action.", show_default=True)] = Action.LIST,
    ids: _Ids = None,
    *,
    reason: _Reason = None,
    limit: _Limit = 20,
    raw: _Raw = False,
    every: Annotated[bool, typer.Option("--all", help="replay: all letters.")] = False,
    dry_run: _DryRun = False,
    again: _Again = False,
    without_key: _WithoutKey = False,
    into_tables: _IntoTables = False,
    place: Place,
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
    match action:
        case Action.LIST:
            place.refuse({"list takes no ids; show and replay do": bool(chosen)})
            letters = place.home.dead_letters(job, reason=reason, limit=limit)
            place.show(letters, lambda _: _print_list(letters, reason))
        case Action.SHOW:
            place.refuse({"give one id, as shown by list": len(chosen) != 1})
            letter = place.home.dead_letter(job, chosen[0])
            if raw:
                _write_raw(letter)
            else:
                place.show(letter, _print_one)
        case Action.REPLAY:
            place.refuse({"give ids, --reason or --all": not (chosen or reason or every)})
            place.refuse({"give ids or --all, not both": bool(chosen) and every})
            with _bar() as progress:
                request = ReplayRequest(
                    ids=chosen,
                    reason=reason,
                    again=again,
                    without_key=without_key,
                    into_tables=into_tables,
                    dry_run=dry_run,
                )
                done = place.home.replay_dead_letters(job, request, by=_user(), progress=progress)
            place.show(done, _say_replayed)
            if done.refused_total or done.in_doubt:
                raise typer.Exit(_NOT_ALL)


def _write_raw(letter: DeadLetter) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(letter.raw or b"")
    sys.stdout.buffer.flush()


def _print_list(page: DeadLetters, reason: str | None) -> None:
    if not page.total:
        say(f"Job '{page.job}' has no dead letters in topic '{page.topic}', {page.log}")
        return
    least = "at least " if page.at_least else ""
    say(f"{least}{format_count(page.total)} dead letters in topic '{page.topic}', {page.log}")
    print_section(
        ["topic", "reason", Right("letters")],
        [[visible(row.topic), row.reason, format_count(row.count)] for row in page.counts],
    )
    if page.others:
        note(f"note: {format_count(page.others)} letters in the topic belong to other jobs")
    if page.foreign:
        note(f"note: {format_count(page.foreign)} records in the topic are not dead letters")
    print_section(
        ["id", Right("age"), "topic", "reason", "detail", Right("size"), "replayed"],
        [_row(letter) for letter in page.letters],
    )
    if not page.letters and reason is not None:
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


def _print_one(letter: DeadLetter) -> None:
    print_facts((name, visible(value)) for name, value in _facts(letter))
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
        yield "record of", f"{format_time(letter.record_at)} UTC"
    if letter.at is not None:
        yield "written", f"{format_time(letter.at)} UTC"
    yield "size", f"{format_count(letter.size)} bytes"
    if letter.replayed_at is None:
        yield "replayed", "no"
    else:
        what = "in doubt, begun" if letter.in_doubt else "yes,"
        by = f" by {letter.replayed_by}"
        yield "replayed", f"{what} {format_time(letter.replayed_at)} UTC{by}"


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


def _say_replayed(done: Replayed) -> None:
    to = ", ".join(f"{format_count(count)} to '{topic}'" for topic, count in done.sent.items())
    verb = "would be sent" if done.dry_run else "sent and acknowledged"
    say(f"{plural(done.total, 'record')} {verb}{f': {to}' if to else ''}")
    if done.without_key:
        say(f"{format_count(done.without_key)} of them without a message key")
    if done.skipped:
        say(
            f"{plural(done.skipped, 'record')} skipped: already replayed (--again sends them again)"
        )
    if done.in_doubt:
        say(
            f"{plural(done.in_doubt, 'record')} skipped: an interrupted replay may have sent them "
            f"(--again sends them): {_some(done.doubts, done.in_doubt)}"
        )
    for refusal in done.named[:_NAMED]:
        say(Text(f"refused {refusal.id}: {visible(refusal.words)}", style="red"))
    if done.refused_total > _NAMED:
        say(f"refused {format_count(done.refused_total)} in total")


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
