"""Tables of PostgreSQL as values: addresses, secrets, names, types of new tables."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from headgate import Flow, HeadgateError, Postgres, schema_of
from headgate.connectors.logs import bind, parse_log
from headgate.connectors.postgres.column_types import create_statement
from headgate.connectors.postgres.descriptor import split_table
from headgate.connectors.registry import get_connector
from headgate.flow.topics import topic_from_json, topic_to_json

URL = "postgresql://me@db:5433/shop"


def refused(code: str, **more: Any) -> HeadgateError:
    with pytest.raises(HeadgateError) as caught:
        Postgres("orders", **{"url": URL, **more})
    assert caught.value.code == code
    assert caught.value.hint
    return caught.value


def test_a_topic_survives_the_json_of_flows_with_all_it_has() -> None:
    topic = Postgres(
        "orders",
        url="postgres://db/shop?sslmode=require",
        user="me",
        password="${env:PG}",
        table='"my schema"."a.b"',
        key=["a", "b"],
        refresh="90s",
        epochs="ops.epochs",
        options={"connect_timeout": "3"},
    )
    assert topic_from_json(json.loads(json.dumps(topic_to_json(topic)))) == topic
    assert topic.target == ("my schema", "a.b")
    assert topic.every == timedelta(seconds=90)
    assert (topic.log.host, topic.log.port, topic.log.user) == ("db", 5432, "me")
    assert dict(topic.log.options) == {"connect_timeout": "3", "sslmode": "require"}


def test_a_password_is_a_reference_and_appears_nowhere_else() -> None:
    for error in (
        refused("SECRET_IN_PLAIN", password="hunter2"),
        refused("SECRET_IN_PLAIN", url="postgresql://me:hunter2@db/shop"),
        refused("SECRET_IN_PLAIN", url="postgresql://me@db/shop?password=hunter2"),
    ):
        assert "hunter2" not in f"{error} {error.hint}"


@pytest.mark.parametrize(
    "url", ["db/shop", "postgresql://db", "postgresql://a,b/shop", "postgresql://db:x/shop"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    refused("BAD_SERVERS", url=url)


def test_other_mistakes_are_refused() -> None:
    refused("BAD_CLIENT_OPTION", options={"socketFactory": "x"})
    refused("BAD_NAME", table="a.b.c")
    refused("BAD_TOPIC", table="a", query="SELECT 1")
    refused("BAD_TOPIC", refresh=timedelta(0))


def test_a_table_is_no_stream_wherever_it_is_named() -> None:
    flow = Flow("shop")
    with pytest.raises(HeadgateError) as caught:
        flow.stream(Postgres("orders", url=URL), "id BIGINT")
    assert caught.value.code == "BAD_TOPIC"
    flow = Flow("shop")
    flow.stream("orders", "id BIGINT").to("out")
    with pytest.raises(HeadgateError) as caught:
        bind(flow.graph(), parse_log(URL))
    assert "flow.table" in caught.value.hint


def test_a_query_is_not_written() -> None:
    topic = Postgres("orders", url=URL, query="SELECT 1 AS id")
    with pytest.raises(HeadgateError) as caught:
        get_connector(topic).spark.output_option(topic)
    assert caught.value.code == "BAD_TOPIC"


def test_rows_replace_others_only_with_a_key() -> None:
    spark = get_connector(Postgres("orders", url=URL)).spark
    assert not spark.replaces(Postgres("orders", url=URL), None)
    assert spark.replaces(Postgres("orders", url=URL), "id")
    assert spark.replaces(Postgres("orders", url=URL, key=("a", "b")), None)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("orders", ("public", "orders")),
        ("Shop.orders", ("Shop", "orders")),
        ('"a.b"."c""d"', ("a.b", 'c"d')),
    ],
)
def test_names_of_tables(text: str, target: tuple[str, str]) -> None:
    assert split_table(text, what="a table") == target


def test_a_new_table_has_a_column_of_its_type_for_each_of_the_rows() -> None:
    columns = schema_of(
        'id BIGINT NOT NULL, `Odd " name` STRING, money DECIMAL(12,2), days ARRAY<DATE>, '
        "raws ARRAY<BINARY>, at TIMESTAMP NOT NULL, s STRUCT<a: INT>"
    )
    assert create_statement("public", "t", columns, ("id",)) == (
        'CREATE TABLE "public"."t" ("id" bigint NOT NULL, "Odd "" name" text, '
        '"money" numeric(12,2), "days" date[], "raws" jsonb, '
        '"at" timestamp with time zone NOT NULL, "s" jsonb, PRIMARY KEY ("id"))'
    )
