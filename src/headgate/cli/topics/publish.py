"""`headgate publish`: sends one's own records to a topic."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from headgate._units import format_count
from headgate.cli.parts.options import Json, On
from headgate.cli.parts.output import note, plural, say, show, stderr
from headgate.connectors.logs import DEFAULT_LOG
from headgate.errors import HeadgateError
from headgate.jobs.topics.publication import (
    STANDARD_INPUT,
    Publication,
    Published,
    PublishProgress,
    publish_records,
)

# The pause between two lines of progress where there is no terminal.
_LINE_EVERY_S = 10.0


def publish(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")],
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="File of records; - is standard input.")
    ] = STANDARD_INPUT,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="FIELD", help="Kafka, Pulsar: field with the record's key."),
    ] = None,
    create: Annotated[
        bool, typer.Option("--create", help="Create the topic if it is missing.")
    ] = False,
    on: On = DEFAULT_LOG,
    as_json: Json = False,
) -> None:
    """Send your own records to a topic: one JSON object per line.

    Records are sent unchanged and in order, as they arrive; blank lines are skipped. A line that is
    not a JSON object ends the command: the lines before it were sent, and none after it. The error
    names the line and how many records were sent. Embedded topics have no keys.

    [bold]Examples[/bold]

      headgate publish orders orders.jsonl
      echo '{"id": 1, "name": "Ada"}' | headgate publish users --create
      headgate publish users users.jsonl --key id --on kafka://localhost:9092
      tail -f app.log | headgate publish events --on pulsar://localhost:6650
    """
    given = Publication(topic=topic, on=on, file=file, key=key, create=create)
    with _open_input(file) as source, _showing(topic, _find_size(file)) as shown:
        published = publish_records(given, source, progress=shown.show)
    show(published, _print_published, as_json=as_json)


def _print_published(published: Published) -> None:
    if published.created:
        say(f"Created topic '{published.topic}' in {published.where}")
    rate = format_count(published.records_per_s)
    say(
        f"Published {plural(published.records, 'record')} to topic '{published.topic}' in "
        f"{published.seconds:.1f}s, {rate} records/s"
    )


@contextmanager
def _open_input(file: str) -> Iterator[BinaryIO]:
    if file == STANDARD_INPUT:
        if sys.stdin.isatty():
            note("Type one JSON object per line; Ctrl-D ends the input")
        yield sys.stdin.buffer
        return
    path = Path(file)
    if path.is_dir() or not path.exists():
        raise HeadgateError(
            "INPUT_NOT_FOUND",
            f"cannot publish {file}: it must be a file, and it "
            f"{'is a folder' if path.is_dir() else 'does not exist'}",
            hint="name a file of JSON lines, or - for standard input",
        )
    with path.open("rb") as source:
        yield source


def _find_size(file: str) -> int | None:
    """Return the size of the input, or None if it is not known in advance."""
    path = Path(file)
    return path.stat().st_size if file != STANDARD_INPUT and path.is_file() else None


class _Shown:
    """The progress of a publication: a bar in a terminal, else a line now and then."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task
        self._sent = 0
        self._last_line = time.monotonic()

    def show(self, latest: PublishProgress) -> None:
        """Show the acknowledged records."""
        self._sent = latest.records
        if not self._progress.disable:
            self._progress.update(self._task, completed=latest.size, sent=self._text())
        elif time.monotonic() - self._last_line >= _LINE_EVERY_S:
            self._last_line = time.monotonic()
            note(f"{self._text()} so far")

    def interrupt(self) -> None:
        """Print the acknowledged records after an interrupt."""
        self._progress.stop()
        note(f"Published {self._text()}, then was interrupted")

    def _text(self) -> str:
        return plural(self._sent, "record")


@contextmanager
def _showing(topic: str, size: int | None) -> Iterator[_Shown]:
    """Show progress that disappears at the end; an interrupt is reported and raised again."""
    console = stderr()
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None, complete_style="cyan", finished_style="green"),
        TextColumn("{task.fields[sent]}"),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
        expand=True,
    )
    with progress:
        shown = _Shown(progress, progress.add_task(topic, total=size, sent=""))
        try:
            yield shown
        except KeyboardInterrupt:
            shown.interrupt()
            raise
