"""Output of commands: results on standard output, everything else on standard error.

Colours, frames and bars are for terminals only; a pipe gets plain text.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeVar

from rich.console import Console, JustifyMethod
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from headgate._codec import encode
from headgate._units import format_count

Shown = TypeVar("Shown")

_AGES = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
# A table row outside a terminal has no maximum length.
_ENDLESS = 100_000
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code != 9}


class _Terminal(Console):
    """A console that raises on a closed pipe."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def stdout() -> Console:
    """Return the console of results."""
    return _Terminal(highlight=False, markup=False, emoji=False)


def stderr() -> Console:
    """Return the console of messages, progress and errors."""
    return _Terminal(stderr=True, highlight=False, markup=False, emoji=False)


def say(text: str | Text) -> None:
    """Print a line of the result; the terminal wraps it, so that it can be copied whole."""
    stdout().print(text, soft_wrap=True)


def note(text: str | Text) -> None:
    """Print a line that is not part of the result, on standard error."""
    stderr().print(text, soft_wrap=True)


def warn(warning: str) -> None:
    """Print a warning on standard error; control characters are made visible."""
    note(Text.assemble(("warning", "bold yellow"), f": {visible(warning)}"))


def show(value: Shown, print_: Callable[[Shown], object], *, as_json: bool) -> None:
    """Print a result: as JSON, or by a function."""
    if as_json:
        print_json(value)
    else:
        print_(value)


def print_json(value: Any) -> None:
    """Print a value as JSON on one line."""
    sys.stdout.write(json.dumps(encode(value)) + "\n")


def print_json_note(value: Any) -> None:
    """Print a value that is not part of the result as JSON, on one line of standard error."""
    sys.stderr.write(json.dumps(value) + "\n")


def print_table(columns: Sequence[str | Right], rows: Sequence[Sequence[str | Text]]) -> None:
    """Print rows under headings; cells fold on a terminal and never in a pipe."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        right = isinstance(column, Right)
        justify: JustifyMethod = "right" if right else "left"
        table.add_column(str(column), justify=justify, no_wrap=right, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console = stdout()
    if console.is_terminal:
        console.print(table)
        return
    console.width = _ENDLESS
    with console.capture() as lines:
        console.print(table)
    for line in lines.get().splitlines():
        sys.stdout.write(line.rstrip() + "\n")


def print_section(columns: Sequence[str | Right], rows: Sequence[Sequence[str | Text]]) -> None:
    """Print a blank line and a table; nothing if there are no rows."""
    if rows:
        say("")
        print_table(columns, rows)


def print_facts(facts: Iterable[tuple[str, str]], *, width: int = 12) -> None:
    """Print a line for each label and value.

    Args:
        width: The width of the labels.
    """
    for label, value in facts:
        say(f"{label:<{width}}{value}")


class Right(str):
    """The heading of a column of numbers, aligned right."""

    __slots__ = ()


def format_age(moment: datetime | None, now: datetime | None = None) -> str:
    """Return the time since a moment, in its largest unit; a dash for None."""
    if moment is None:
        return "-"
    seconds = max(0, int(((now or datetime.now(UTC)) - moment).total_seconds()))
    size, unit = next((age_unit for age_unit in _AGES if seconds >= age_unit[0]), _AGES[-1])
    return f"{seconds // size}{unit}"


def visible(text: str) -> str:
    """Return text with control characters made visible."""
    return text.translate(_CONTROLS)


def format_time(moment: datetime) -> str:
    """Return a moment to the second."""
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def or_dash(value: Shown | None, format_: Callable[[Shown], str] = str) -> str:
    """Return a value as text; a dash for None."""
    return "-" if value is None else format_(value)


def plural(count: int, noun: str, ending: str = "s") -> str:
    """Return a count with its noun: `1 record`, `2,000 records`."""
    return f"{format_count(count)} {noun}{'' if count == 1 else ending}"


def open_bars(label: str) -> Progress:
    """Return bars on standard error that disappear at the end; only terminals show them.

    Args:
        label: The text before a bar, as rich formats it.
    """
    console = stderr()
    return Progress(
        TextColumn(label),
        BarColumn(bar_width=None, complete_style="cyan", finished_style="green"),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
        expand=True,
    )
