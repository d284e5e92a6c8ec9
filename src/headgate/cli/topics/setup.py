"""`headgate setup`: creates the topics of a flow before its first run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

import typer

from headgate._units import format_count
from headgate.cli.parts.options import FlowFile, Json, takes_settings
from headgate.cli.parts.output import Right, or_dash, print_table, say, show, warn
from headgate.cli.topics.topics import format_kept
from headgate.connectors.contract.setup import SetupOptions
from headgate.jobs.topics.setup import FlowSetup, FlowTopic, set_up

Partitions: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--partitions",
        metavar="N",
        min=1,
        help="Number of partitions of new topics.",
        show_default="4",
    ),
]
Retention: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--retention",
        metavar="DURATION",
        help="Kafka, Pulsar: retention of streams, outputs and dead letters; infinite keeps them "
        "for ever.",
        show_default="7d",
    ),
]
Replication: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--replication",
        metavar="N",
        min=1,
        help="Kafka: number of replicas.",
        show_default="3, or the number of brokers",
    ),
]


@takes_settings("setup")
def setup(
    flow: FlowFile,
    *,
    settings: Mapping[str, Any],
    partitions: Partitions = None,
    retention: Retention = None,
    replication: Replication = None,
    as_json: Json = False,
) -> None:
    """Create the missing topics of a flow; existing topics are unchanged.

    On Kafka, tables are compacted and kept for ever; streams, outputs and dead letters have a
    retention; and headgate-epochs, which exactly-once needs, is created. On Pulsar, tenant and
    namespace are created too, tables are kept for ever, and output topics get a JSON schema of
    their columns and deduplication, also those that exist without. Input topics get no schema: the
    first producer registers its own. Existing topics that do not fit cause a warning.

    A headgate.toml can set the log and the profile, as for 'headgate run'.

    [bold]Examples[/bold]

      headgate setup examples/orders/flow.py
      headgate setup examples/orders/flow.py --on kafka://localhost:9092 --partitions 8
      headgate setup examples/orders/flow.py --on pulsar://localhost:6650/shop/prod
    """
    options = SetupOptions(partitions=partitions, retention=retention, replication=replication)
    show(
        set_up(flow, settings["on"], options, profile=settings["profile"]),
        _print_setup,
        as_json=as_json,
    )


def _print_setup(made: FlowSetup) -> None:
    guarded = any(topic.made.deduplicated is not None for topic in made.topics)
    more = ["deduplicated", "schema"] if guarded else []
    columns = ["topic", "is", "state", Right("partitions"), "kept", *more, "where"]
    print_table(columns, [_row(topic, guarded=guarded) for topic in made.topics])
    for left in made.left_out:
        say(f"Not created: {left}")
    for topic in made.topics:
        for change in topic.made.changes:
            say(f"Topic '{topic.made.name}' existed, and {change}")
        for warning in topic.warnings:
            was_there = "existed, and " if topic.made.existed else ""
            warn(f"topic '{topic.made.name}' {was_there}{warning}")


def _row(topic: FlowTopic, *, guarded: bool) -> list[str]:
    made = topic.made
    return [
        made.name,
        topic.role.value,
        "existed" if made.existed else "made",
        format_count(made.partitions),
        "for ever" if made.retention is None else format_kept(made),
        *([or_dash(made.deduplicated, _yes_no), made.schema or "-"] if guarded else []),
        made.where,
    ]


def _yes_no(value: bool) -> str:
    return "yes" if value else "no"
