"""Connections to PostgreSQL, and its errors as HeadgateErrors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from headgate._references import resolve
from headgate.connectors.broker.failures import BrokerFailures
from headgate.connectors.postgres.descriptor import PostgresLog
from headgate.errors import Domain, HeadgateError

FAILURES = BrokerFailures(
    "PostgreSQL",
    start="headgate broker start postgres, or use the address of a running server",
    login="check user, the reference in password, sslmode, and the permissions of that user",
)
_CONNECT_SECONDS = "10"
_MISSING = ("42P01", "3F000", "3D000")


@contextmanager
def connect(log: PostgresLog, *, doing: str) -> Iterator[psycopg.Connection]:
    """Open a connection that commits each statement; errors within are named.

    Args:
        doing: What it is for, as in "cannot DOING".

    Raises:
        HeadgateError: BROKER_UNREACHABLE, BROKER_REFUSED, BROKER_FAILED, TOPIC_NOT_FOUND,
            SECRET_NOT_FOUND.
    """
    options = {"connect_timeout": _CONNECT_SECONDS, **dict(log.options)}
    if log.password is not None:
        options["password"] = resolve("password", log.password)
    if log.user is not None:
        options["user"] = log.user
    try:
        with psycopg.connect(
            host=log.host.strip("[]"),
            port=log.port,
            dbname=log.database,
            application_name="headgate",
            autocommit=True,
            **options,  # type: ignore[arg-type]
        ) as connection:
            connection.execute("SET timezone = 'UTC'")
            yield connection
    except psycopg.Error as error:
        raise explain(error, log, doing=doing) from error


def explain(error: psycopg.Error, log: PostgresLog, *, doing: str) -> HeadgateError:
    """Return an error of PostgreSQL or its client as a HeadgateError."""
    state, said = error.sqlstate or "", str(error)
    is_login = state.startswith("28") or "authentication failed" in said or "no password" in said
    if is_login or state == "42501":
        return FAILURES.refused(doing, log.cluster, said)
    if state in _MISSING:
        return HeadgateError(
            "TOPIC_NOT_FOUND",
            f"cannot {doing}: {said.splitlines()[0]} at {log.cluster}",
            hint="headgate setup FLOW creates the tables of a flow's outputs",
            domain=Domain.USER,
        )
    if isinstance(error, psycopg.OperationalError):
        return FAILURES.unreachable(doing, log.cluster, said)
    return FAILURES.failed(doing, log.cluster, said, retryable=False)
