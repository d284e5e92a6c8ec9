"""A PostgreSQL database, and a table in it, as values.

Options have the names of PostgreSQL's own clients: `sslmode`, `sslrootcert`, `connect_timeout`.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import ClassVar
from urllib.parse import quote, unquote, urlsplit

from headgate._references import check_secret
from headgate._units import format_duration, parse_duration
from headgate.connectors.broker.options import bad_client_option, option_text, query_text
from headgate.connectors.broker.options import parse_query as parse_options
from headgate.connectors.contract.connector import KeyValues, Sink
from headgate.connectors.contract.setup import TopicRole
from headgate.connectors.contract.topics import MadeTopic, Topics, WantedTopic
from headgate.errors import HeadgateError
from headgate.flow.json_values import (
    JsonObject,
    as_text,
    find_text,
    get_list,
    get_object,
    get_text,
)
from headgate.flow.names import check_topic_name
from headgate.flow.topics import register_topic

SCHEME = "postgresql://"
DEFAULT_PORT = 5432
DEFAULT_SCHEMA = "public"
EPOCHS = "public.headgate_epochs"
OPTIONS = ("sslmode", "sslrootcert", "connect_timeout")
# Options of the address that are not options of clients.
_OWN = ("password", "epochs")
_NAME = r'(?:[^".]+|"(?:[^"]|"")+")'
_TABLE = re.compile(rf"(?:(?P<schema>{_NAME})\.)?(?P<table>{_NAME})")

bad_option = functools.partial(bad_client_option, "PostgreSQL")


@dataclass(frozen=True, slots=True)
class PostgresLog:
    """A database: `postgresql://user@host:5432/database?name=value`.

    Attributes:
        user: None for the name of the system's user.
        password: A reference, or None.
        epochs: The table in which jobs note the batches that they have written.
        options: Names and values of client options, sorted by name.
    """

    host: str
    port: int
    database: str
    user: str | None = None
    password: str | None = None
    epochs: str = EPOCHS
    options: tuple[tuple[str, str], ...] = ()

    folder: ClassVar[None] = None

    @classmethod
    def parse(
        cls,
        url: str,
        *,
        user: str | None = None,
        password: str | None = None,
        epochs: str | None = None,
        options: Mapping[str, object] | None = None,
    ) -> PostgresLog:
        """Return the checked database of an address.

        Args:
            url: As `--on` takes it; the other arguments win over its parts.

        Raises:
            HeadgateError: BAD_SERVERS, BAD_CLIENT_OPTION, SECRET_IN_PLAIN, BAD_NAME.
        """
        host, port, database, login = _parse_address(url)
        given: dict[str, object] = dict(parse_options(_query(url), broker="PostgreSQL"))
        given |= options or {}
        own = {name: str(given.pop(name)) for name in _OWN if name in given}
        chosen = {"password": password, "epochs": epochs}
        own |= {name: value for name, value in chosen.items() if value is not None}
        checked = tuple(sorted(_check_options(given)))
        if "password" in own:
            check_secret("password", own["password"], broker="PostgreSQL")
        table = own.get("epochs", EPOCHS)
        split_table(table, what="the table of epochs")
        secret = own.get("password")
        return cls(host, port, database, user or login, secret, table, checked)

    @property
    def cluster(self) -> str:
        """The server and the database, as messages show them."""
        return f"{self.host}:{self.port}/{self.database}"

    @property
    def address(self) -> str:
        """The database as a value of `--on`, without options."""
        login = "" if self.user is None else f"{quote(self.user, safe='')}@"
        return f"{SCHEME}{login}{self.host}:{self.port}/{quote(self.database, safe='')}"

    def to_text(self) -> str:
        """Return the connection as JSON for the kernel; equal texts mean the same connection."""
        schema, table = split_table(self.epochs, what="the table of epochs")
        content = asdict(self) | {
            "options": dict(self.options),
            "epochs": {"schema": schema, "table": table},
        }
        return json.dumps(content, sort_keys=True)

    def bind(self, name: str) -> Postgres:
        return Postgres(name, url=str(self))

    def anchored(self) -> PostgresLog:
        return self

    def open_topics(self) -> Topics:
        # Flows on other logs do not need PostgreSQL's client library.
        from headgate.connectors.postgres.tables import PostgresTables

        return PostgresTables(self)

    def make_topics(
        self, roles: Mapping[str, TopicRole], partitions: int | None
    ) -> tuple[MadeTopic, ...]:
        """Refuse: without columns there is no table."""
        topics = self.open_topics()
        return tuple(topics.make(WantedTopic(name=name, partitions=partitions)) for name in roles)

    def open_sink(
        self,
        roles: Mapping[str, TopicRole],  # noqa: ARG002
        key_values: KeyValues,  # noqa: ARG002
    ) -> AbstractContextManager[Sink]:
        """Refuse: other programs fill the tables."""
        raise HeadgateError(
            "LOG_UNSUPPORTED",
            f"cannot send records to {self.address}: tables of a database have columns, and no "
            "records",
            hint="INSERT INTO … with any client of PostgreSQL",
        )

    def __str__(self) -> str:
        own = [("password", self.password)] if self.password is not None else []
        own += [("epochs", self.epochs)] if self.epochs != EPOCHS else []
        return f"{self.address}{query_text((*_present(own), *self.options))}"


def _present(pairs: Sequence[tuple[str, str | None]]) -> Iterator[tuple[str, str]]:
    for name, value in pairs:
        if value is not None:
            yield name, value


@register_topic
@dataclass(frozen=True, slots=True)
class Postgres:
    """A table of a PostgreSQL database, as an output or as a table that a flow looks up.

    Attributes:
        name: The topic's name in the flow.
        url: `postgresql://user@host:5432/database`; a password must be a reference.
        table: The table, `name` or `schema.name`; by default the topic's name.
        query: A SELECT in place of a table, only to read.
        user: The user, unless the address names one.
        password: A reference: `${env:NAME}` or `${file:/path}`.
        key: For an output, the columns whose values find the row to replace, if the output's own
            `key` is not enough.
        refresh: For a table that is read, how often it is read again; None for never.
        epochs: The table in which jobs note the batches that they have written.
        options: `sslmode`, `sslrootcert`, `connect_timeout`.
    """

    name: str
    url: str = field(kw_only=True)
    table: str | None = field(kw_only=True, default=None)
    query: str | None = field(kw_only=True, default=None)
    user: str | None = field(kw_only=True, default=None)
    password: str | None = field(kw_only=True, default=None)
    key: str | Sequence[str] | None = field(kw_only=True, default=None)
    refresh: str | timedelta | None = field(kw_only=True, default=None)
    epochs: str | None = field(kw_only=True, default=None)
    options: Mapping[str, str] = field(kw_only=True, default_factory=dict, hash=False)

    kind: ClassVar[str] = "postgres"
    pattern: ClassVar[None] = None
    can_read: ClassVar[bool] = True
    can_write: ClassVar[bool] = True
    # It has rows, and no order of changes in which a stream could be read.
    can_stream: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_topic_name(self.name)
        log = self.log
        key = (self.key,) if isinstance(self.key, str) else self.key
        every = self.refresh
        if isinstance(every, str):
            every = parse_duration(every)
        if every is not None and every <= timedelta(0):
            raise self._bad(f"refresh must be greater than zero, got {self.refresh}", "use '10m'")
        if self.query is not None and self.table is not None:
            raise self._bad("table and query exclude each other", "omit one of them")
        if self.table is not None:
            split_table(self.table, what=f"table of topic {self.name!r}")
        for attribute, value in {
            "url": log.address,
            "user": log.user,
            "password": log.password,
            "epochs": log.epochs,
            "options": dict(log.options),
            "key": None if key is None else tuple(key),
            "refresh": every,
        }.items():
            object.__setattr__(self, attribute, value)

    @property
    def log(self) -> PostgresLog:
        """The database."""
        return PostgresLog.parse(
            self.url,
            user=self.user,
            password=self.password,
            epochs=self.epochs,
            options=self.options,
        )

    @property
    def target(self) -> tuple[str, str]:
        """The schema and the name of the table."""
        if self.table is None:
            return DEFAULT_SCHEMA, self.name
        return split_table(self.table, what=f"table of topic {self.name!r}")

    @property
    def every(self) -> timedelta | None:
        """How often the table is read again."""
        assert not isinstance(self.refresh, str)
        return self.refresh

    def describe(self) -> str:
        what = "a query" if self.query is not None else "table " + ".".join(self.target)
        return f"{self.kind} {self.name} ({what} at {self.log.cluster})"

    def to_json(self) -> JsonObject:
        return {
            "name": self.name,
            "url": self.url,
            "table": self.table,
            "query": self.query,
            "password": self.password,
            "key": None if self.key is None else list(self.key),
            "refresh": None if self.every is None else format_duration(self.every),
            "epochs": self.epochs,
            "options": dict(self.options),
        }

    @classmethod
    def from_json(cls, holder: JsonObject) -> Postgres:
        options = get_object(holder, "options")
        key = None
        if holder.get("key") is not None:
            key = tuple(as_text(column, "a key column") for column in get_list(holder, "key"))
        return cls(
            get_text(holder, "name"),
            url=get_text(holder, "url"),
            table=find_text(holder, "table"),
            query=find_text(holder, "query"),
            password=find_text(holder, "password"),
            key=key,
            refresh=find_text(holder, "refresh"),
            epochs=find_text(holder, "epochs"),
            options={name: as_text(value, repr(name)) for name, value in options.items()},
        )

    def _bad(self, problem: str, hint: str) -> HeadgateError:
        return HeadgateError(
            "BAD_TOPIC", f"cannot use PostgreSQL table {self.name!r}: {problem}", hint=hint
        )


def split_table(text: str, *, what: str) -> tuple[str, str]:
    """Return the schema and the name of `name` or `schema.name`, each possibly in double quotes.

    Raises:
        HeadgateError: BAD_NAME.
    """
    match = _TABLE.fullmatch(text)
    if match is None:
        raise HeadgateError(
            "BAD_NAME",
            f"cannot name {what} {text!r}: it must be a name, or a schema and a name",
            hint="use 'orders' or 'public.orders'; put names with dots in double quotes",
        )
    return _plain(match["schema"] or DEFAULT_SCHEMA), _plain(match["table"])


def _plain(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _query(url: str) -> str:
    return url.partition("?")[2]


def _parse_address(url: str) -> tuple[str, int, str, str | None]:
    """Return host, port, database and user of an address."""
    if not isinstance(url, str) or not url.startswith((SCHEME, "postgres://")):
        raise _bad_address("it must begin with postgresql://")
    parts = urlsplit(url.partition("?")[0])
    if parts.password is not None:
        raise HeadgateError(
            "SECRET_IN_PLAIN",
            "cannot store an address with a password: flows, plans and job files would show it",
            hint="leave it out of the address, and give password='${env:PG_PASSWORD}'",
        )
    try:
        port = parts.port or DEFAULT_PORT
    except ValueError:
        raise _bad_address("its port must be a number from 1 to 65535") from None
    database = unquote(parts.path.removeprefix("/"))
    if not parts.hostname or not database or "/" in database or "," in parts.netloc:
        raise _bad_address("it needs one host and a database")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return host, port, database, unquote(parts.username) if parts.username else None


def _check_options(given: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in given.items():
        text = option_text(name, value, broker="PostgreSQL", example="sslmode")
        if name not in OPTIONS:
            raise bad_option(
                name, "it is not one that is passed on", f"use one of {', '.join(OPTIONS)}"
            )
        yield name, text


def _bad_address(problem: str) -> HeadgateError:
    return HeadgateError(
        "BAD_SERVERS",
        f"cannot connect to PostgreSQL: url must be postgresql://host:port/database; {problem}",
        hint="use postgresql://localhost:5432/shop",
    )
