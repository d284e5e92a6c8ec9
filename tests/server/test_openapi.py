"""The OpenAPI description as generated clients need it: short names, types, one way to page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from server_bench import client, settings

# Any JSON value, which the flow or the user decides; the only type that is not described further.
ANY_JSON = "#/components/schemas/JsonValue"
PAGED = {"list_events", "list_checkpoints", "get_log"}


@pytest.fixture(scope="module")
def description(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with client(settings(tmp_path_factory.mktemp("described"))) as web:
        return dict(web.get("/v1/openapi.json").json())


def operations(description: dict[str, Any]) -> dict[str, dict[str, Any]]:
    listed = [
        operation for methods in description["paths"].values() for operation in methods.values()
    ]
    by_id = {operation["operationId"]: operation for operation in listed}
    assert len(by_id) == len(listed)
    return by_id


def test_operations_have_short_names(description: dict[str, Any]) -> None:
    names = set(operations(description))
    assert {"list_jobs", "submit_job", "get_job", "stop_job", "restore_job"} <= names
    for name in names:
        assert re.fullmatch(r"[a-z]+(_[a-z]+){1,2}", name), name
        assert not re.search(r"_(v1|get|post)$", name), name


def test_every_answer_is_typed_down_to_its_last_field(description: dict[str, Any]) -> None:
    untyped = [
        f"{name} {status}: {place}"
        for name, operation in operations(description).items()
        for status, response in operation["responses"].items()
        if status.startswith("2")
        for content in response["content"].values()
        for place in find_untyped(content.get("schema", {}), description, "answer")
    ]
    assert untyped == []


def test_what_is_not_typed_is_found(description: dict[str, Any]) -> None:
    made = {
        "type": "object",
        "properties": {
            "empty": {"title": "Empty"},
            "open": {"type": "object", "additionalProperties": True},
            "unknown": {"type": "object"},
            "list": {"type": "array", "items": {"anyOf": [{"type": "null"}, {}]}},
            "fine": {"$ref": "#/components/schemas/GraphView"},
            "any": {"$ref": ANY_JSON},
        },
    }
    assert list(find_untyped(made, description, "made")) == [
        "made.empty",
        "made.open",
        "made.unknown",
        "made.list[]",
    ]


def find_untyped(schema: Any, description: dict[str, Any], place: str) -> Iterator[str]:
    """Yield the places in a schema that say nothing of what is there."""
    if schema.get("$ref") == ANY_JSON:
        return
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        schema = description["components"]["schemas"][name]
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        for choice in choices:
            yield from find_untyped(choice, description, place)
        return
    more, fields = schema.get("additionalProperties"), schema.get("properties", {})
    items = [schema["items"]] if "items" in schema else schema.get("prefixItems", [])
    is_open = schema.get("type") == "object" and not fields and not isinstance(more, dict)
    is_empty_list = schema.get("type") == "array" and not items
    if "type" not in schema or is_open or is_empty_list or more is True:
        yield place
    for name, field in fields.items():
        yield from find_untyped(field, description, f"{place}.{name}")
    for item in items:
        yield from find_untyped(item, description, f"{place}[]")
    if isinstance(more, dict):
        yield from find_untyped(more, description, f"{place}.*")


def test_every_list_that_is_paged_is_paged_in_the_same_way(description: dict[str, Any]) -> None:
    paged = set()
    for name, operation in operations(description).items():
        queries = {
            each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"
        }
        assert not queries & {"lines", "offset", "page", "cursor", "position", "last"}, name
        if "after" in queries:
            paged.add(name)
            assert "limit" in queries, name
            reference = operation["responses"]["200"]["content"]["application/json"]["schema"]
            schema = description["components"]["schemas"][reference["$ref"].rpartition("/")[2]]
            fields = schema["properties"]
            assert {"next", "more"} <= set(schema["required"]) | set(fields), name
            assert fields["more"]["type"] == "boolean", name
            nexts = fields["next"].get("anyOf") or [fields["next"]]
            assert "string" in {each["type"] for each in nexts}, name
    assert paged == PAGED


def test_the_page_of_routes_has_the_parameters_of_every_list(description: dict[str, Any]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "rest.md").read_text()
    for path, methods in description["paths"].items():
        if "get" not in methods:
            continue
        parameters = methods["get"].get("parameters", ())
        queries = {each["name"] for each in parameters if each["in"] == "query"}
        named = re.search(rf"GET `{re.escape(path)}(?:\?([\w&]+))?`", page)
        assert named is not None, path
        assert set((named[1] or "").split("&")) - {""} == queries, path
