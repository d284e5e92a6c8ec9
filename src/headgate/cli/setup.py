"""`headgate setup`: the topics of a flow, made before its first run."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from headgate._units import format_count
from headgate.cli.options import ON_VARIABLE, Json
from headgate.cli.output import Right, note, print_json, print_table, say
from headgate.cli.topics import format_kept
from headgate.jobs.service import FlowTopic, SetupOptions, set_up


def register(app: typer.Typer) -> None:
    """Add the verb to the app."""
    app.command("setup")(_setup)


def _setup(
    flow: Annotated[
        str, typer.Argument(metavar="FLOW", help="A flow's file: flow.py, or flow.py:name.")
    ],
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="LOG",
            envvar=ON_VARIABLE,
            help="Where the topics are: files:DIR, kafka://HOST:9092, pulsar://HOST:6650; by "
            "default what headgate.toml says.",
            show_default=False,
        ),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            metavar="N",
            min=1,
            help="Of topics that are missing; by default 4.",
            show_default=False,
        ),
    ] = None,
    retention: Annotated[
        str | None,
        typer.Option(
            "--retention",
            metavar="DURATION",
            help="Kafka, Pulsar: how long streams, outputs and dead letters are kept: 7d (the "
            "default), 12h, infinite.",
            show_default=False,
        ),
    ] = None,
    replication: Annotated[
        int | None,
        typer.Option(
            "--replication",
            metavar="N",
            min=1,
            help="Kafka: copies; by default 3, or as many as there are brokers.",
            show_default=False,
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option("--profile", metavar="NAME", help="A profile of headgate.toml."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make the topics of a flow that are missing; those that are there stay as they are.

    On Kafka, tables are compacted and kept for ever; streams, outputs and dead letters are kept
    for a while; and headgate-epochs is made, in which exactly-once keeps its books. On Pulsar,
    tenant and namespace are made too, tables are kept for ever, topics get a JSON schema of their
    columns, and those that the flow writes get deduplication; of these two, a topic that is there
    gets what it lacks. A topic that is there and will not do is warned of.

    [bold]Examples[/bold]

      headgate setup examples/orders/flow.py
      headgate setup examples/orders/flow.py --on kafka://localhost:9092 --partitions 8
      headgate setup examples/orders/flow.py --on pulsar://localhost:6650/shop/prod
    """
    options = SetupOptions(partitions=partitions, retention=retention, replication=replication)
    made = set_up(flow, on, options, profile=profile)
    if as_json:
        print_json(made.to_json())
        return
    guarded = any(topic.made.deduplicated is not None for topic in made.topics)
    more = ["deduplicated", "schema"] if guarded else []
    columns = ["topic", "is", "state", Right("partitions"), "kept", *more, "where"]
    print_table(columns, [_row(topic, guarded=guarded) for topic in made.topics])
    for left in made.left_out:
        say(f"Not made: {left}")
    for topic in made.topics:
        for change in topic.made.changes:
            say(f"Topic '{topic.made.name}' was there, and {change}")
        for warning in topic.warnings:
            was_there = "was there, and " if topic.made.existed else ""
            told = f": topic '{topic.made.name}' {was_there}{warning}"
            note(Text.assemble(("warning", "bold yellow"), told))


def _row(topic: FlowTopic, *, guarded: bool) -> list[str]:
    made = topic.made
    return [
        made.name,
        topic.role.value,
        "was there" if made.existed else "made",
        format_count(made.partitions),
        "for ever" if made.retention is None else format_kept(made),
        *([_answer(made.deduplicated), made.schema or "-"] if guarded else []),
        made.where,
    ]


def _answer(value: bool | None) -> str:
    return "-" if value is None else "yes" if value else "no"
