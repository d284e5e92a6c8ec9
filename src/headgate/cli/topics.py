"""`headgate topics` and `headgate tail`: the topics of a log, and their records."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from typing import Annotated, TypeAlias

import typer
from rich.highlighter import JSONHighlighter

from headgate._units import format_count, format_size
from headgate.cli.options import Json, On, Server, TokenFile
from headgate.cli.output import (
    Right,
    format_age,
    print_json,
    print_table,
    say,
    stdout,
    visible,
)
from headgate.cli.place import find_server, refuse_with_server, was_typed
from headgate.connectors.logs import DEFAULT_LOG
from headgate.connectors.topics import (
    LedgerPart,
    MadeTopic,
    TopicDetails,
    TopicPart,
    TopicSubscription,
    TopicSummary,
)
from headgate.jobs.topics.listing import (
    create_topic,
    follow_topic,
    list_topics,
    show_topic,
    tail_topic,
)

Name: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="Name of the topic.")]
Count: TypeAlias = Annotated[
    bool, typer.Option("--count", help="Count the records too, which reads them all.")
]
# The options of `headgate topics` without a subcommand.
_LISTING = ("on", "count", "server", "token_file", "as_json")


def register(app: typer.Typer) -> None:
    """Add the commands to the app."""
    group = typer.Typer(rich_markup_mode="rich")
    group.callback(invoke_without_command=True)(_topics)
    group.command("list")(_list)
    group.command("show")(_show)
    group.command("create")(_create)
    app.add_typer(group, name="topics")
    app.command("tail")(_tail)


def _topics(
    context: typer.Context,
    on: On = DEFAULT_LOG,
    count: Count = False,
    server: Server = None,
    token_file: TokenFile = None,
    as_json: Json = False,
) -> None:
    """List, show and create topics.

    [bold]Examples[/bold]

      headgate topics  # the topics there are
      headgate topics --count  # and how many records each has
      headgate topics create orders --partitions 4
      headgate topics show orders
    """
    if context.invoked_subcommand is None:
        _list(context, on, count, server, token_file, as_json)
    elif any(was_typed(context, name) for name in _LISTING):
        raise typer.BadParameter(f"options go after '{context.invoked_subcommand}'", context)


def _list(
    context: typer.Context,
    on: On = DEFAULT_LOG,
    count: Count = False,
    server: Server = None,
    token_file: TokenFile = None,
    as_json: Json = False,
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
    remote = find_server(context, server, token_file, local="on")
    if remote is None:
        found = list_topics(on, count=count)
    else:
        refuse_with_server(context, "count")
        found = remote.list_topics()
    if as_json:
        print_json(found)
    elif not found and remote is not None:
        say(f"There are no topics in the log of {remote.where}")
    elif found:
        print_table(_columns(found[0], count=count), [_row(topic) for topic in found])
    else:
        say(f"There are no topics in {on}; {_create_command(on)} creates one")


def _create_command(on: str) -> str:
    return f"headgate topics create NAME{'' if on == DEFAULT_LOG else f' --on {shlex.quote(on)}'}"


def _columns(first: TopicSummary, *, count: bool) -> list[str | Right]:
    own: list[str | Right]
    if first.entries is not None:
        own = [Right("entries"), Right("size"), Right("kept")]
    elif first.files is None:
        own = [Right("at most"), Right("replicas"), Right("kept")]
    else:
        own = [Right("files"), Right("size")]
    counted = [Right("records")] if count else []
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


def _show(name: Name, on: On = DEFAULT_LOG, count: Count = False, as_json: Json = False) -> None:
    """Show one topic: its location, id, size, and last 10 files.

    On Kafka: its id, retention, and the offsets and replicas of each partition. On Pulsar: its full
    name, retention, deduplication, schema, the ledgers of each partition, and the subscriptions.

    [bold]Examples[/bold]

      headgate topics show orders
      headgate topics show orders --count --json
      headgate topics show orders --on kafka://localhost:9092
      headgate topics show orders --on pulsar://localhost:6650
    """
    topic = show_topic(on, name, count=count)
    if as_json:
        print_json(topic)
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
    _print_parts(topic)


def _print_parts(topic: TopicDetails) -> None:
    heads: tuple[str, ...] = ("partition", "first", "next", "leader", "in sync", "newest")
    if topic.subscriptions is not None:
        heads = ("partition", "first", "next", "ledgers", "entries", "size", "newest")
    if topic.parts:
        say("")
        print_table([Right(head) for head in heads], [_part_row(part) for part in topic.parts])
    if topic.subscriptions:
        say("")
        columns = ["subscription", Right("unread entries"), Right("consumers")]
        print_table(columns, [_subscription_row(each) for each in topic.subscriptions])


def _subscription_row(subscription: TopicSubscription) -> list[str]:
    unread, consumers = subscription.unread, subscription.consumers
    return [subscription.name, format_count(unread), format_count(consumers)]


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
        yield "created", f"{topic.created:%Y-%m-%d %H:%M:%S} UTC"
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
    yield "newest", "-" if summary.newest is None else f"{format_age(summary.newest)} ago"


_Partitions: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--partitions",
        metavar="N",
        help="Number of partitions; by default 1, or the brokers' default.",
        show_default=False,
    ),
]
_Retention: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--retention",
        metavar="DURATION",
        help="Kafka, Pulsar: retention: 7d, 12h, infinite.",
        show_default=False,
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
        show_default=False,
    ),
]


def _create(
    name: Name,
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
    if as_json:
        print_json(topic)
    elif topic.existed:
        say(f"Topic '{topic.name}' exists already, {describe_made(topic)}")
    else:
        say(f"Created topic '{topic.name}' {describe_made(topic)}")


def describe_made(topic: MadeTopic) -> str:
    """Return the number of partitions, the retention and the location of a topic."""
    of = f"with {topic.partitions} partition{'' if topic.partitions == 1 else 's'}"
    if topic.retention is None:
        return f"{of}, in {topic.where}" if topic.existed else f"{of} in {topic.where}"
    kept = "for ever" if str(topic.retention) == "infinite" else f"for {topic.retention}"
    mark = "compacted, " if topic.compacted else "deduplicated, " if topic.deduplicated else ""
    return f"{of}, {mark}kept {kept}, in {topic.where}"


def _tail(
    context: typer.Context,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")],
    last: Annotated[
        int, typer.Option("-n", "--lines", metavar="N", min=0, help="Number of records.")
    ] = 10,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Print new records until Ctrl-C.")
    ] = False,
    on: On = DEFAULT_LOG,
    server: Server = None,
    token_file: TokenFile = None,
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
    remote = find_server(context, server, token_file, local="on")
    if remote is not None:
        refuse_with_server(context, "follow")
        _print_records(remote.tail_topic(topic, last=last))
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
