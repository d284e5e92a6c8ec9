"""`headgate topics` and `headgate tail`: the topics of a log, and their records."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, TypeAlias

import typer
from rich.highlighter import JSONHighlighter

from headgate._units import format_count, format_size
from headgate.cli.parts.options import Json, On
from headgate.cli.parts.output import (
    Right,
    format_age,
    format_time,
    or_dash,
    plural,
    print_facts,
    print_section,
    print_table,
    say,
    show,
    stdout,
    visible,
)
from headgate.cli.parts.place import Remote, was_typed
from headgate.connectors.contract.topics import (
    LedgerPart,
    MadeTopic,
    TopicDetails,
    TopicPart,
    TopicSummary,
)
from headgate.connectors.logs import DEFAULT_LOG
from headgate.jobs.topics.listing import (
    create_topic,
    follow_topic,
    list_topics,
    show_topic,
    tail_topic,
)

_Name: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="Name of the topic.")]
_Count: TypeAlias = Annotated[
    bool, typer.Option("--count", help="Count the records too, which reads them all.")
]
# The options of `headgate topics` without a subcommand.
_LISTING = ("on", "count", "server", "token_file", "as_json")


def topics(
    on: On = DEFAULT_LOG, count: _Count = False, *, remote: Remote, as_json: Json = False
) -> None:
    """List, show and create topics.

    [bold]Examples[/bold]

      headgate topics  # the topics there are
      headgate topics --count  # and how many records each has
      headgate topics create orders --partitions 4
      headgate topics show orders
    """
    context = remote.context
    if context.invoked_subcommand is None:
        list_all(on, count, remote=remote, as_json=as_json)
    elif any(was_typed(context, name) for name in _LISTING):
        raise typer.BadParameter(f"options go after '{context.invoked_subcommand}'", context)


def list_all(
    on: On = DEFAULT_LOG, count: _Count = False, *, remote: Remote, as_json: Json = False
) -> None:
    """List the topics: partitions, files, size, and the age of the last file.

    On Kafka: partitions, records, replicas, retention, and the age of the newest record. Offsets
    have gaps, so the number of records is an upper bound; --count gives the exact number. On
    Pulsar: partitions, entries (each a record or a batch), size, retention, and the age of the
    newest entry.

    [bold]Examples[/bold]

      headgate topics list --count
      headgate topics list --on files:/data/topics --json
      headgate topics list --on kafka://localhost:9092
      headgate topics list --on pulsar://localhost:6650/shop/prod
      headgate topics list --server http://localhost:8270  # of the log it was started with
    """
    server = remote.find_server(not_with="count")
    if server is None:
        listed = list_topics(on, count=count)
        nothing = f"There are no topics in {on}; {_create_command(on)} creates one"
    else:
        listed = server.list_topics()
        nothing = f"There are no topics in the log of {server.where}"
    show(listed, _print_list if listed else lambda _: say(nothing), as_json=as_json)


def _print_list(listed: Sequence[TopicSummary]) -> None:
    print_table(_columns(listed[0]), [_row(topic) for topic in listed])


def _create_command(on: str) -> str:
    return f"headgate topics create NAME{'' if on == DEFAULT_LOG else f' --on {shlex.quote(on)}'}"


def _columns(first: TopicSummary) -> list[str | Right]:
    own: list[str | Right]
    if first.entries is not None:
        own = [Right("entries"), Right("size"), Right("kept")]
    elif first.files is None:
        own = [Right("at most"), Right("replicas"), Right("kept")]
    else:
        own = [Right("files"), Right("size")]
    counted = [] if first.records is None else [Right("records")]
    return ["topic", Right("partitions"), *own, *counted, Right("newest")]


def _row(topic: TopicSummary) -> list[str]:
    row = [topic.name, format_count(topic.partitions)]
    if topic.entries is not None:
        row += [format_count(topic.entries), format_size(topic.size or 0), format_kept(topic)]
    elif topic.files is None:
        row += [format_count(topic.at_most or 0), format_count(topic.replication or 0)]
        row.append(format_kept(topic))
    else:
        row += [format_count(topic.files), format_size(topic.size or 0)]
    if topic.records is not None:
        row.append(format_count(topic.records))
    return [*row, format_age(topic.newest)]


def format_kept(topic: TopicSummary | MadeTopic) -> str:
    """Return the retention of a topic in a few words."""
    kept = {"infinite": "for ever", "0s": "until read"}.get(
        str(topic.retention), str(topic.retention)
    )
    return f"compacted, {kept}" if topic.compacted else kept


def show_one(
    name: _Name, on: On = DEFAULT_LOG, count: _Count = False, as_json: Json = False
) -> None:
    """Show one topic: its location, id, size, and last 10 files.

    On Kafka: its id, retention, and the offsets and replicas of each partition. On Pulsar: its full
    name, retention, deduplication, schema, the ledgers of each partition, and the subscriptions.

    [bold]Examples[/bold]

      headgate topics show orders
      headgate topics show orders --count --json
      headgate topics show orders --on kafka://localhost:9092
      headgate topics show orders --on pulsar://localhost:6650
    """
    show(show_topic(on, name, count=count), _print_topic, as_json=as_json)


def _print_topic(topic: TopicDetails) -> None:
    print_facts(_facts(topic), width=11)
    print_section(
        [Right("number"), "last files", Right("size"), Right("age")],
        [
            [
                or_dash(file.number, format_count),
                file.path,
                format_size(file.size),
                format_age(file.published),
            ]
            for file in topic.last_files
        ],
    )
    heads: tuple[str, ...] = ("partition", "first", "next", "leader", "in sync", "newest")
    if topic.subscriptions is not None:
        heads = ("partition", "first", "next", "ledgers", "entries", "size", "newest")
    print_section([Right(head) for head in heads], [_part_row(part) for part in topic.parts or ()])
    print_section(
        ["subscription", Right("unread entries"), Right("consumers")],
        [
            [
                subscription.name,
                format_count(subscription.unread),
                format_count(subscription.consumers),
            ]
            for subscription in topic.subscriptions or ()
        ],
    )


def _part_row(part: TopicPart | LedgerPart) -> list[str]:
    if isinstance(part, LedgerPart):
        return [
            format_count(part.number),
            part.first,
            part.next,
            format_count(part.ledgers),
            format_count(part.entries),
            format_size(part.size),
            format_age(part.newest),
        ]
    return [
        format_count(part.number),
        format_count(part.first),
        format_count(part.next),
        "none" if part.leader is None else str(part.leader),
        f"{part.in_sync} of {part.replicas}",
        format_age(part.newest),
    ]


def _facts(topic: TopicDetails) -> Iterable[tuple[str, str]]:
    summary = topic.summary
    yield "topic", summary.name
    yield "where", topic.where
    yield "id", topic.id or "none yet: the folder was created by hand"
    if topic.created is not None:
        yield "created", f"{format_time(topic.created)} UTC"
    yield "partitions", format_count(summary.partitions)
    if topic.ledger is not None:
        yield "files", f"{format_count(summary.files or 0)}, {format_size(summary.size or 0)}"
        yield "ledger", f"{format_count(topic.ledger)} files numbered by readers"
    elif summary.entries is not None:
        yield "kept", format_kept(summary)
        yield "entries", f"{format_count(summary.entries)}, {format_size(summary.size or 0)}"
        yield "repeats", "dropped" if summary.deduplicated else "stored: deduplication is off"
        yield "schema", summary.schema or "none"
    else:
        yield "replicas", format_count(summary.replication or 0)
        yield "kept", format_kept(summary)
        yield "offsets", f"{format_count(summary.at_most or 0)}, an upper bound of the records"
    if summary.records is not None:
        yield "records", format_count(summary.records)
    yield "newest", or_dash(summary.newest, lambda newest: f"{format_age(newest)} ago")


_Partitions: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--partitions",
        metavar="N",
        help="Number of partitions; by default 1, or the brokers' default.",
    ),
]
_Retention: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--retention", metavar="DURATION", help="Kafka, Pulsar: retention: 7d, 12h, infinite."
    ),
]
_Compact: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--compact",
        help="Kafka: keep the last record of each key, for a table. Pulsar: keep all, and let "
        "readers ask for the last record of each key.",
    ),
]
_Deduplicate: TypeAlias = Annotated[
    bool,
    typer.Option("--deduplicate", help="Pulsar: drop a producer's duplicates, for exactly-once."),
]
_Replication: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--replication",
        metavar="N",
        help="Kafka: number of replicas; by default 3, or the number of brokers.",
    ),
]


def create(
    name: _Name,
    partitions: _Partitions = None,
    retention: _Retention = None,
    compact: _Compact = False,
    deduplicate: _Deduplicate = False,
    replication: _Replication = None,
    on: On = DEFAULT_LOG,
    as_json: Json = False,
) -> None:
    """Create a topic; an existing one is unchanged.

    [bold]Examples[/bold]

      headgate topics create orders
      headgate topics create orders --partitions 4
      headgate topics create users --compact --on kafka://localhost:9092
      headgate topics create enriched --deduplicate --on pulsar://localhost:6650
    """
    topic = create_topic(
        on,
        name,
        partitions=partitions,
        retention=retention,
        compact=compact,
        replication=replication,
        deduplicate=deduplicate,
    )
    made = describe_made(topic)
    exists = f"Topic '{topic.name}' exists already, {made}"
    created = f"Created topic '{topic.name}' {made}"
    show(topic, lambda _: say(exists if topic.existed else created), as_json=as_json)


def describe_made(topic: MadeTopic) -> str:
    """Return the number of partitions, the retention and the location of a topic."""
    of = f"with {plural(topic.partitions, 'partition')}"
    if topic.retention is None:
        return f"{of}, in {topic.where}" if topic.existed else f"{of} in {topic.where}"
    kept = "for ever" if str(topic.retention) == "infinite" else f"for {topic.retention}"
    mark = "compacted, " if topic.compacted else "deduplicated, " if topic.deduplicated else ""
    return f"{of}, {mark}kept {kept}, in {topic.where}"


def tail(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")],
    last: Annotated[
        int, typer.Option("-n", "--lines", metavar="N", min=0, help="Number of records.")
    ] = 10,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Print new records until Ctrl-C.")
    ] = False,
    on: On = DEFAULT_LOG,
    *,
    remote: Remote,
    _as_json: Annotated[
        bool, typer.Option("--json", help="Print errors as JSON; records are printed unchanged.")
    ] = False,
) -> None:
    """Print the last records of a topic, one per line, unchanged.

    A pipe gets the bytes of the records; a terminal gets colours. On Kafka these are the values of
    committed records, by timestamp over all partitions; a record without a value is null. On Pulsar
    the same, by publish time.

    [bold]Examples[/bold]

      headgate tail orders
      headgate tail enriched-orders -f
      headgate tail dead-letters -n 1000 | jq .reason
      headgate tail orders --on kafka://localhost:9092
      headgate tail orders --on pulsar://localhost:6650
    """
    server = remote.find_server(not_with="follow")
    if server is not None:
        _print_records(server.tail_topic(topic, last=last))
        return
    if not follow:
        _print_records(tail_topic(on, topic, last=last))
        return
    try:
        _print_records(follow_topic(on, topic, last=last))
    except KeyboardInterrupt:
        # Ctrl-C is the way to end it, and not an error.
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
        # The next record may be far away.
        sys.stdout.buffer.flush()
