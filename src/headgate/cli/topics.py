"""`headgate topics` and `headgate tail`: what topics there are, and what is in them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated, TypeAlias

import typer
from rich.highlighter import JSONHighlighter

from headgate._units import format_count, format_size
from headgate.cli.options import Json, On
from headgate.cli.output import (
    Right,
    format_age,
    print_json,
    print_table,
    say,
    stdout,
    visible,
)
from headgate.jobs.service import (
    DEFAULT_LOG,
    TopicDetails,
    TopicSummary,
    create_topic,
    follow_topic,
    list_topics,
    show_topic,
    tail_topic,
)

Name: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="The topic.")]
Count: TypeAlias = Annotated[
    bool, typer.Option("--count", help="Count the records too; reads every file.")
]


def register(app: typer.Typer) -> None:
    """Add the verbs to the app."""
    group = typer.Typer(rich_markup_mode="rich")
    group.callback(invoke_without_command=True)(_topics)
    group.command("list")(_list)
    group.command("show")(_show)
    group.command("create")(_create)
    app.add_typer(group, name="topics")
    app.command("tail")(_tail)


def _topics(
    context: typer.Context, on: On = DEFAULT_LOG, count: Count = False, as_json: Json = False
) -> None:
    """List, show and create topics.

    [bold]Examples[/bold]

      headgate topics  # the topics there are
      headgate topics --count  # and how many records each has
      headgate topics create orders --partitions 4
      headgate topics show orders
    """
    if context.invoked_subcommand is None:
        _list(on, count, as_json)
    elif count or as_json or on != DEFAULT_LOG:
        raise typer.BadParameter(f"options go after '{context.invoked_subcommand}'", context)


def _list(on: On = DEFAULT_LOG, count: Count = False, as_json: Json = False) -> None:
    """List the topics: partitions, files, size, and how long ago the last file came.

    [bold]Examples[/bold]

      headgate topics list --count
      headgate topics list --on files:/data/topics --json
    """
    found = list_topics(on, count=count)
    if as_json:
        print_json([topic.to_json() for topic in found])
    elif found:
        columns = ["topic", Right("partitions"), Right("files"), Right("size")]
        columns += [Right("records")] if count else []
        print_table([*columns, Right("newest")], [_row(topic) for topic in found])
    else:
        say(f"There are no topics in {on}; headgate topics create NAME makes one")


def _row(topic: TopicSummary) -> list[str]:
    row = [topic.name, format_count(topic.partitions), format_count(topic.files)]
    row.append(format_size(topic.size))
    if topic.records is not None:
        row.append(format_count(topic.records))
    return [*row, format_age(topic.newest)]


def _show(name: Name, on: On = DEFAULT_LOG, count: Count = False, as_json: Json = False) -> None:
    """Show one topic: where it is, its id, its size, and its last 10 files.

    [bold]Examples[/bold]

      headgate topics show orders
      headgate topics show orders --count --json
    """
    topic = show_topic(on, name, count=count)
    if as_json:
        print_json(topic.to_json())
        return
    for label, value in _facts(topic):
        say(f"{label:<11}{value}")
    if topic.last_files:
        say("")
        print_table(
            [Right("number"), "last files", Right("size"), Right("age")],
            [
                [
                    "-" if file.number is None else format_count(file.number),
                    file.path,
                    format_size(file.size),
                    format_age(file.published),
                ]
                for file in topic.last_files
            ],
        )


def _facts(topic: TopicDetails) -> Iterable[tuple[str, str]]:
    summary = topic.summary
    yield "topic", summary.name
    yield "where", str(topic.where)
    yield "id", topic.id or "none yet: the folder was made by hand"
    if topic.created is not None:
        yield "created", f"{topic.created:%Y-%m-%d %H:%M:%S} UTC"
    yield "partitions", format_count(summary.partitions)
    yield "files", f"{format_count(summary.files)}, {format_size(summary.size)}"
    yield "ledger", f"{format_count(topic.ledger)} files numbered by readers"
    if summary.records is not None:
        yield "records", format_count(summary.records)
    yield "newest", "-" if summary.newest is None else f"{format_age(summary.newest)} ago"


def _create(
    name: Name,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            metavar="N",
            help="How many partitions; by default 1.",
            show_default=False,
        ),
    ] = None,
    on: On = DEFAULT_LOG,
    as_json: Json = False,
) -> None:
    """Create a topic; one that is there already stays as it is.

    [bold]Examples[/bold]

      headgate topics create orders
      headgate topics create orders --partitions 4
    """
    topic = create_topic(on, name, partitions=partitions)
    if as_json:
        print_json(topic.to_json())
        return
    of = f"{topic.partitions} partition{'' if topic.partitions == 1 else 's'}"
    if topic.existed:
        say(f"Topic '{topic.name}' exists already, with {of}, in {topic.where}")
    else:
        say(f"Created topic '{topic.name}' with {of} in {topic.where}")


def _tail(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")],
    last: Annotated[
        int, typer.Option("-n", "--lines", metavar="N", min=0, help="How many records.")
    ] = 10,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Go on with new ones until Ctrl-C.")
    ] = False,
    on: On = DEFAULT_LOG,
    _as_json: Annotated[
        bool, typer.Option("--json", help="Records are printed as they are; errors as JSON.")
    ] = False,
) -> None:
    """Print the last records of a topic, one on a line, as they are.

    A pipe gets the records' own bytes; a terminal gets colours.

    [bold]Examples[/bold]

      headgate tail orders
      headgate tail enriched-orders -f
      headgate tail dead-letters -n 1000 | jq .reason
    """
    if not follow:
        _print_records(tail_topic(on, topic, last=last))
        return
    try:
        _print_records(follow_topic(on, topic, last=last))
    except KeyboardInterrupt:
        # The way to end it, and no failure.
        return


def _print_records(records: Iterable[bytes]) -> None:
    console = stdout()
    if console.is_terminal:
        colour = JSONHighlighter()
        for record in records:
            text = visible(record.decode("utf-8", errors="backslashreplace"))
            console.print(colour(text), soft_wrap=True)
        return
    for record in records:
        sys.stdout.buffer.write(record + b"\n")
        # A follower may wait long for the next one.
        sys.stdout.buffer.flush()
