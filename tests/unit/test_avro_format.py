"""Avro as a value: what it refuses, what it stores, and records as people see them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest
from schema_registry import SchemaRegistry

from headgate import Flow, HeadgateError, Kafka
from headgate.engine.plan.plan import plan_flow
from headgate.formats import Avro, Json, Registry
from headgate.jobs.records.viewers import find_viewer, show_record
from headgate.jobs.secrets import find_secrets

URL = "http://localhost:8081"
SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}


def refused(code: str, act: Callable[[], Any], *words: str) -> HeadgateError:
    with pytest.raises(HeadgateError) as caught:
        act()
    assert caught.value.code == code
    for word in words:
        assert word in caught.value.message
    assert caught.value.hint
    return caught.value


def test_a_format_with_a_registry_survives_the_flows_json() -> None:
    registry = Registry("https://registry", user="shop", password="${env:WORD}")
    form = Avro(registry=registry, subject="orders", record="com.acme.Order", register=False)
    flow = Flow("stored")
    flow.stream("in", "id BIGINT", format=form).to("out", format=Avro(schema=json.dumps(SCHEMA)))
    text = flow.graph().to_json()
    assert Flow.from_json(text).graph() == flow.graph()
    assert json.loads(text)["nodes"][0]["format"]["registry"]["password"] == "${env:WORD}"


def test_the_topic_gives_the_subject_and_the_name_of_the_record() -> None:
    flow = Flow("named")
    stream = flow.stream("1-orders", "id BIGINT", format="avro", registry=URL)
    stream.to("out", format="avro", registry=URL)
    many = Kafka("many", servers="localhost:9092", pattern="shop-.*")
    flow.stream(many, "id BIGINT", format="avro", registry=URL).to("more")
    spec = plan_flow(flow.graph(), history={}, max_record=1).spec
    formats = [source["format"] for source in spec["sources"]]
    assert [(form["subject"], form["record"]) for form in formats] == [
        ("1-orders-value", "_1_orders"),
        # Of a pattern's topics each has its own.
        (None, "many"),
    ]
    assert spec["sources"][0]["route"][0]["format"]["subject"] == "out-value"


def test_the_text_of_a_schemas_file_is_stored_in_the_flow(tmp_path: Path) -> None:
    file = tmp_path / "order.avsc"
    file.write_text(json.dumps(SCHEMA))
    form = Avro(schema_file=file)
    file.unlink()
    assert form.schema == json.dumps(SCHEMA)
    assert replace(form, record="a.B").schema == form.schema
    refused("BAD_FORMAT", lambda: Avro(schema_file=file), str(file), "No such file")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"schema": "{"}, "not JSON"),
        ({"schema": '"string"'}, "must be a record"),
        ({"schema": json.dumps(SCHEMA), "schema_file": "x"}, "both"),
        ({"record": "a b"}, "not a name"),
        ({"subject": "x"}, "no registry"),
        ({"register": False}, "no registry"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: Any, words: str) -> None:
    refused("BAD_FORMAT", lambda: Avro(**options), words)


@pytest.mark.parametrize(
    "text",
    [
        "localhost:8081",
        "ftp://localhost",
        "http://user:secretword@host",
        "http://host?user=a",
        "http://host?user=a&password=${env:B}&token=${env:C}",
        "http://host?colour=red",
        "http://host/#part",
    ],
)
def test_an_address_that_is_none_is_refused_and_not_shown(text: str) -> None:
    error = refused("BAD_REGISTRY", lambda: Registry.parse(text))
    assert "secretword" not in f"{error.message} {error.hint}"


@pytest.mark.parametrize("query", ["user=a&password=secretword", "token=secretword"])
def test_a_secret_in_plain_text_is_refused_and_not_shown(query: str) -> None:
    error = refused("SECRET_IN_PLAIN", lambda: Registry.parse(f"http://host?{query}"))
    assert "secretword" not in f"{error.message} {error.hint}"


def test_an_address_may_be_a_reference_and_its_secrets_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WORD", "secretword")
    flow = Flow("hidden")
    flow.stream("in", "id BIGINT", format="avro", registry="${env:URL}?token=${env:WORD}").to("out")
    assert "secretword" in find_secrets([], flow.graph().to_json())


def test_a_registry_is_for_formats_that_take_one() -> None:
    flow = Flow("odd")
    refused("BAD_FORMAT", lambda: flow.stream("a", "id INT", registry=URL), "takes no registry")
    other = Avro(registry=Registry(URL))
    refused("BAD_FORMAT", lambda: flow.stream("b", "id INT", format=other, registry=URL), "so does")
    stream = flow.stream("c", "id INT")
    refused("BAD_FORMAT", lambda: stream.to("d", format=Json(), registry=URL), "takes no registry")


def test_records_are_shown_as_json_by_the_schema_that_they_name() -> None:
    at = {"type": "long", "logicalType": "timestamp-millis"}
    price = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    fields = [("name", "string"), ("at", at), ("price", price), ("raw", "bytes")]
    schema = {
        "type": "record",
        "name": "Shown",
        "fields": [{"name": name, "type": kind} for name, kind in fields],
    }
    value = {
        "name": "Grüße",
        "at": datetime(2026, 11, 15, 10, tzinfo=UTC),
        "price": Decimal("12.50"),
        "raw": b"\0\1",
    }
    with SchemaRegistry().serving() as registry:
        registry.requires("shop", "word")
        id_ = registry.add("x-value", schema)
        out = io.BytesIO()
        out.write(b"\0" + id_.to_bytes(4, "big"))
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
        record = out.getvalue()
        topic = Kafka("x", servers="localhost:9092")
        login = {"user": "shop", "password": "${file:/dev/null}"}
        refused_viewer = find_viewer(Avro(registry=Registry(registry.url, **login)), topic)
        assert "answered 401" in show_record(refused_viewer, record).problem
        registry.authorization = None
        viewer = find_viewer(Avro(registry=Registry(registry.url)), topic)
        for _ in range(3):
            shown = show_record(viewer, record)
            assert not shown.problem
        assert json.loads(shown.text) == {
            "name": "Grüße",
            "at": "2026-11-15T10:00:00+00:00",
            "price": "12.50",
            "raw": "AAE=",
        }
        assert len(registry.requests) == 2
        for bad, problem in [
            (b"{}", "does not begin"),
            (record[:-1], "ends within"),
            (record + b"x", "1 bytes follow"),
            (b"\0\0\0\3\xe7", "answered 404"),
        ]:
            shown = show_record(viewer, bad)
            assert problem in shown.problem
