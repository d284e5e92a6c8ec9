"""Shared parts of the commands that send generated data: options, progress bars, the summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, TypeAlias

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
)
from rich.text import Text

from headgate._units import format_count
from headgate.cli.output import note, say, stderr
from headgate.cli.topics import describe_made
from headgate.connectors.topics import MadeTopic

AMOUNT = "Amount"
KIND = "Kind"

Partitions: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Partitions of new topics; by default 1, on Kafka and Pulsar 4.",
        show_default=False,
    ),
]
Rate: TypeAlias = Annotated[
    float | None,
    typer.Option(
        metavar="N",
        help="Records per second; by default full speed.",
        rich_help_panel=AMOUNT,
        show_default=False,
    ),
]
Quiet: TypeAlias = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print only errors (and --json).")
]


class _Speed(ProgressColumn):
    """Acknowledged records per second since the topic's first record."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{format_count(round(speed))}/s", justify="right")


class Bars:
    """A bar for each topic that receives records."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._summary: str | None = None
        self._tasks: dict[str, TaskID] = {}

    def show(self, topics: Mapping[str, tuple[int, int]], summary: str) -> None:
        """Move the bars to the acknowledged counts.

        Args:
            topics: Acknowledged and total records of each topic.
            summary: The counts so far as a sentence.
        """
        self._summary = summary
        for topic, (sent, total) in topics.items():
            if total and topic not in self._tasks:
                self._tasks[topic] = self._progress.add_task(topic, total=total)
            if topic in self._tasks:
                self._progress.update(self._tasks[topic], completed=sent)

    def interrupt(self) -> None:
        """Print the acknowledged counts after an interrupt."""
        self._progress.stop()
        if self._summary is not None:
            note(f"{self._summary}, then was interrupted")


@contextmanager
def sending_bars(*, hidden: bool) -> Iterator[Bars]:
    """Open bars that disappear at the end; an interrupt is reported and raised again."""
    console = stderr()
    progress = Progress(
        TextColumn("{task.description:<6}"),
        BarColumn(bar_width=None, complete_style="cyan", finished_style="green"),
        MofNCompleteColumn(),
        _Speed(),
        console=console,
        disable=hidden or not console.is_terminal,
        expand=True,
    )
    with progress:
        bars = Bars(progress)
        try:
            yield bars
        except KeyboardInterrupt:
            bars.interrupt()
            raise


def tell_sent(records: int, seconds: float, *, where: str, made: Sequence[MadeTopic]) -> None:
    """Print the created topics, the number of acknowledged records, and the rate."""
    for topic in made:
        say(f"Created topic '{topic.name}' {describe_made(topic)}")
    rate = format_count(round(records / seconds if seconds else 0))
    say(f"{format_count(records)} records in {seconds:.1f}s, {rate} records/s, to {where}")
