"""Progress bars on the terminal."""

from __future__ import annotations

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from headgate.cli.output import stderr


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
