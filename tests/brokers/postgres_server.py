"""A real PostgreSQL server for tests, and what tests do with it: a database each, and its rows."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from headgate import Postgres
from headgate.brokers import lifecycle
from headgate.brokers.broker import BrokerOptions
from headgate.brokers.postgres.server import PASSWORD, POSTGRES, USER, find_password

# Nothing of a test has to survive the machine.
_HASTY = {"fsync": "off", "max_wal_size": "512MB", "autovacuum": "off"}


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A server in a folder of the test's own, which wants a password."""

    data: Path

    def start(self) -> None:
        """Start it where it does not run."""
        fresh = lifecycle.look(POSTGRES, self.data).address is None
        options = BrokerOptions(
            data=self.data, port=0 if fresh else None, secure=True, settings=_HASTY
        )
        lifecycle.start(POSTGRES, options)

    def stop(self) -> None:
        """Stop it; its rows stay."""
        lifecycle.stop(POSTGRES, self.data)

    def kill(self) -> None:
        """End it and all its sessions as a power failure would."""
        pid = lifecycle.look(POSTGRES, self.data).pid
        assert pid is not None
        os.killpg(pid, signal.SIGKILL)
        while lifecycle.look(POSTGRES, self.data).pid is not None:
            time.sleep(0.02)

    @property
    def address(self) -> str:
        """The host and the port, which stay the same over restarts."""
        return lifecycle.look(POSTGRES, self.data).address or ""

    @property
    def password(self) -> str:
        """The reference to the password."""
        return f"${{file:{self.data / PASSWORD}}}"

    def make_database(self) -> Database:
        """Make a database that no other test has."""
        name = f"d_{uuid.uuid4().hex[:12]}"
        Database(self, "postgres").run(f"CREATE DATABASE {name}")
        return Database(self, name)


@dataclass(frozen=True, slots=True)
class Database:
    """A database of one test."""

    server: PostgresServer
    name: str

    @property
    def url(self) -> str:
        """The address, without the password."""
        return f"postgresql://{USER}@{self.server.address}/{self.name}"

    @property
    def on(self) -> str:
        """What `--on` takes."""
        return f"{self.url}?password={self.server.password}"

    def topic(self, name: str, **more: Any) -> Postgres:
        """Return a table as a topic."""
        return Postgres(name, url=self.url, password=self.server.password, **more)

    @contextmanager
    def connect(self) -> Iterator[psycopg.Connection]:
        """Open a session that commits each statement."""
        password = find_password(self.server.data)
        with psycopg.connect(self.url, password=password, autocommit=True) as connection:
            yield connection

    def run(self, statement: str, *values: Any) -> None:
        """Run a statement."""
        with self.connect() as connection:
            connection.execute(statement.encode(), values or None)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self.connect() as connection:
            return connection.execute(statement.encode()).fetchall()

    def fill(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        """Insert rows."""
        with self.connect() as connection, connection.cursor() as cursor:
            copy = sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(table))
            with cursor.copy(copy) as target:
                for row in rows:
                    target.write_row(row)
