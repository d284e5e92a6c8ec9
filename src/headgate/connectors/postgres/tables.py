"""The tables of a database, as the CLI shows them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from headgate._clock import Clock
from headgate.connectors.contract.topics import (
    MadeTopic,
    TopicDetails,
    TopicSummary,
    WantedTopic,
)
from headgate.connectors.postgres.access import connect
from headgate.connectors.postgres.column_types import create_statement, quoted
from headgate.connectors.postgres.descriptor import PostgresLog, split_table
from headgate.errors import HeadgateError

_TABLES = """\
SELECT n.nspname, c.relname, pg_total_relation_size(c.oid) FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
AND n.nspname !~ '^pg_' ORDER BY n.nspname, c.relname"""


@dataclass(frozen=True, slots=True)
class PostgresTables:
    """The tables of a database; a name without a schema is in `public`."""

    log: PostgresLog

    def list_topics(self, *, count: bool) -> list[TopicSummary]:
        """Return the tables by name; counting reads every row."""
        with connect(self.log, doing="list tables") as connection:
            found = connection.execute(_TABLES).fetchall()
            return [
                TopicSummary(
                    name=_shown(schema, table),
                    partitions=1,
                    files=None,
                    size=size,
                    records=_count(connection, schema, table) if count else None,
                    newest=None,
                )
                for schema, table, size in found
            ]

    def show(self, name: str, *, count: bool, last_files: int) -> TopicDetails:  # noqa: ARG002
        wanted = _shown(*split_table(name, what="a table"))
        for summary in self.list_topics(count=False):
            if summary.name == wanted:
                return TopicDetails(
                    summary=self._counted(summary) if count else summary,
                    where=f"{self.log.cluster}",
                    id=None,
                    created=None,
                    ledger=0,
                    last_files=(),
                )
        raise self._not_found(name)

    def make(self, wanted: WantedTopic) -> MadeTopic:
        """Create a table if it is missing.

        Raises:
            HeadgateError: TABLE_NOT_CREATED: its columns are not known.
        """
        schema, table = split_table(wanted.name, what="a table")
        with connect(self.log, doing=f"create table {wanted.name}") as connection:
            if not _exists(connection, schema, table):
                if wanted.schema is None:
                    raise HeadgateError(
                        "TABLE_NOT_CREATED",
                        f"cannot create table {schema}.{table}: its columns are not known",
                        hint="headgate setup FLOW creates the tables of a flow's outputs",
                    )
                connection.execute(create_statement(schema, table, wanted.schema, wanted.key))
                return MadeTopic(wanted.name, 1, self.log.cluster, existed=False)
        return MadeTopic(wanted.name, 1, self.log.cluster, existed=True)

    def tail(self, name: str, *, last: int) -> list[bytes]:
        """Return rows that are stored last, as JSON."""
        schema, table = split_table(name, what="a table")
        return read_last(self.log, schema, table, last)

    def follow(self, name: str, *, last: int, clock: Clock) -> Iterator[bytes]:  # noqa: ARG002
        raise HeadgateError(
            "TOPIC_OPTION_UNSUPPORTED",
            f"cannot follow table {name}: a table has no order in which rows arrive",
            hint=f"headgate topics tail {name} --on {self.log.address}",
        )

    def _counted(self, summary: TopicSummary) -> TopicSummary:
        return next(entry for entry in self.list_topics(count=True) if entry.name == summary.name)

    def _not_found(self, name: str) -> HeadgateError:
        return HeadgateError(
            "TOPIC_NOT_FOUND",
            f"cannot find table {name} at {self.log.cluster}",
            hint=f"headgate topics list --on {self.log.address}",
        )


def read_last(log: PostgresLog, schema: str, table: str, count: int | None) -> list[bytes]:
    """Return the rows of a table whose last change is newest, as JSON, newest last.

    Raises:
        HeadgateError: TOPIC_NOT_FOUND.
    """
    # The system column xmin has the transaction that wrote a row; its age is older for older ones.
    ask = sql.SQL(
        "SELECT row_to_json(t)::text FROM {} t ORDER BY age(t.xmin), t.ctid DESC LIMIT %s"
    ).format(sql.Identifier(schema, table))
    with connect(log, doing=f"read table {schema}.{table}") as connection:
        rows = connection.execute(ask, [count]).fetchall()
    return [json.dumps(json.loads(row[0]), separators=(",", ":")).encode() for row in rows][::-1]


def _exists(connection: Any, schema: str, table: str) -> bool:
    name = f"{quoted(schema)}.{quoted(table)}"
    found = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [name]).fetchone()
    return found is not None and bool(found[0])


def _count(connection: Any, schema: str, table: str) -> int:
    ask = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(schema, table))
    found = connection.execute(ask).fetchone()
    return int(found[0])


def _shown(schema: str, table: str) -> str:
    return table if schema == "public" else f"{schema}.{table}"
