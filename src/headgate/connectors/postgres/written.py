"""The batches that runs have written to PostgreSQL, by the table in which tasks note them.

The kernel's `Epochs` writes that table, in the transactions that write the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headgate.connectors.contract.written import NOTHING, Answer, Batches, Writers, Written, unknown
from headgate.connectors.postgres.descriptor import Postgres, PostgresLog, split_table
from headgate.errors import HeadgateError

FORMAT = 1
rests_on = "transactions that note their batch"
can_repeat = False
# The database ends the transactions of a session that is gone.
has_transactions = False

_NOBODY = "none"


def end_transactions(_topic: Postgres, _ids: Iterable[str]) -> None:
    """Do nothing: the next start ends the sessions of the run before."""


def find_hidden(_topic: Postgres, _lineage: str) -> None:
    """Return None: readers see what a transaction has written."""


def find_written(
    topics: Mapping[str, Postgres], writers: Writers, batches: Batches
) -> dict[str, Written]:
    """Return what each table holds of a run's batches."""
    found: dict[str, Written] = {}
    for log in dict.fromkeys(topic.log for topic in topics.values()):
        served = {name: topic for name, topic in topics.items() if topic.log == log}
        try:
            found |= _find_in(log, served, writers, batches)
        except HeadgateError as error:
            found |= dict.fromkeys(served, unknown(error.message))
    return {name: found[name] for name in topics}


def _find_in(
    log: PostgresLog, topics: Mapping[str, Postgres], writers: Writers, batches: Batches
) -> dict[str, Written]:
    """Ask one database, after shutting out the tasks of the run."""
    from psycopg import sql

    from headgate.connectors.postgres.access import connect

    schema, name = split_table(log.epochs, what="the table of epochs")
    table = sql.Identifier(schema, name)
    with connect(log, doing=f"find out what run {writers.lineage} has written") as connection:
        known = connection.execute("SELECT to_regclass(%s)", [f'"{schema}"."{name}"']).fetchone()
        if known is None or known[0] is None:
            # Every start creates it before its first batch, so it was deleted.
            return dict.fromkeys(topics, unknown(f"table {log.epochs} is missing"))
        # End the sessions of tasks, and keep them from writing under their query's name.
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
            "starts_with(application_name, %s) AND pid <> pg_backend_pid() AND "
            "datname = current_database() AND usename = current_user",
            [f"headgate:{writers.lineage}:"],
        )
        claim = sql.SQL(
            "UPDATE {} SET run = %s WHERE lineage = %s AND task = -1 AND target = ''"
        ).format(table)
        connection.execute(claim, [_NOBODY, writers.lineage])
        ask = sql.SQL(
            "SELECT target, epoch, written_rows, format FROM {} WHERE lineage = %s AND task >= 0"
        ).format(table)
        rows = connection.execute(ask, [writers.lineage]).fetchall()
    if any(row[3] != FORMAT for row in rows):
        return dict.fromkeys(topics, unknown(f"table {log.epochs} has another format"))
    return {
        topic: _count([row for row in rows if row[0] == ".".join(target.target)], batches)
        for topic, target in topics.items()
    }


def _count(rows: list[tuple[str, int, int, int]], batches: Batches) -> Written:
    """Return the answer for one table; only the last batch of each task is known."""
    # A batch after those asked for implies earlier ones.
    tasks = [row for row in rows if row[1] >= batches.first]
    if not tasks:
        return NOTHING
    # Further batches may be behind those of which the rows are counted.
    exact = all(epoch == batches.first for _, epoch, _, _ in tasks)
    count = sum(row[2] for row in tasks) if exact else None
    return Written(Answer.YES, rows=count, tasks=len(tasks))
