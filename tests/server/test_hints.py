"""Hints of REST errors: requests in place of commands, from one table."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from server_bench import client, settings, store_job

from headgate.client.connection import find_error
from headgate.errors import HeadgateError
from headgate.server.hints import CALLS, OPTIONS, describe_error, to_rest

SOURCE = Path(__file__).parents[2] / "src" / "headgate"
# Rooms whose errors never reach a server's client.
_ELSEWHERE = ("cli", "client", "brokers")
# Commands without a request: they are run where the server runs.
_LOCAL = {
    *("audit", "broker", "cluster", "demo", "doctor", "formats", "plan", "prepare"),
    *("produce", "serve", "setup", "topics", "verify"),
}


@pytest.mark.parametrize(
    ("hint", "request_"),
    [
        ("headgate stop shop", "POST /v1/jobs/shop/stop"),
        ("headgate jobs", "GET /v1/jobs"),
        ("headgate logs shop --supervisor", "GET /v1/jobs/shop/logs?log=supervisor"),
        (
            "headgate delete shop --keep-savepoints",
            "DELETE /v1/jobs/shop?keep_savepoints=true",
        ),
        ("headgate dead-letters shop list", "GET /v1/jobs/shop/dead-letters"),
        (
            "headgate restore shop --from chk-16 --drop-state a, or headgate run FLOW --fresh",
            'POST /v1/jobs/shop/restore {"from": "chk-16", "drop_state": ["a"]}, or '
            'POST /v1/jobs {"flow": "FLOW", "fresh": true}',
        ),
        ("keep the uid, or add --drop-state a", 'keep the uid, or add "drop_state": ["a"]'),
        ("add --allow-repeats to go back", 'add "allow_repeats": true to go back'),
        # Without a request, or with an option that a server does not take.
        ("headgate serve --flows DIR", "headgate serve --flows DIR"),
        ("headgate savepoint shop --to DIR", "headgate savepoint shop --to DIR"),
        ("GET /v1/flows", "GET /v1/flows"),
        ("try again in a moment", "try again in a moment"),
    ],
)
def test_a_hint_names_the_request_that_does_the_same(hint: str, request_: str) -> None:
    assert to_rest(hint) == request_
    error = HeadgateError("SOME_CODE", "cannot do it", hint=hint)
    answer = describe_error(error)
    assert answer["hint"] == request_
    # A command line that asked the server prints the command.
    read = find_error(answer)
    assert read is not None
    assert read.hint == hint


def test_errors_of_routes_and_of_operations_name_requests(tmp_path: Path) -> None:
    store_job(tmp_path)
    with client(settings(tmp_path)) as web:
        refused = web.post("/v1/jobs/shop/stop").json()
        assert refused["hint"] == "POST /v1/jobs/shop/start"
        assert refused["command"] == "headgate start shop"
        missing = web.get("/v1/jobs/shop/checkpoints/chk-7").json()
        assert "headgate" not in missing["hint"]


def test_every_request_of_the_table_exists_with_its_fields(tmp_path: Path) -> None:
    with client(settings(tmp_path)) as web:
        description = web.get("/v1/openapi.json").json()
    for verb, call in CALLS.items():
        operation = description["paths"][call.path][call.method.lower()]
        fields = {name for name, _ in call.options.values()} | ({call.argument} - {""})
        assert fields <= set(_fields(operation, description)), verb
    submits = set(_fields(description["paths"]["/v1/jobs"]["post"], description))
    restores = set(_fields(description["paths"]["/v1/jobs/{job}/restore"]["post"], description))
    assert {name for name, _ in OPTIONS.values()} <= submits | restores


def _fields(operation: dict[str, Any], description: dict[str, Any]) -> Iterator[str]:
    yield from (each["name"] for each in operation.get("parameters", ()))
    for name in re.findall(r"#/components/schemas/(\w+)", json.dumps(operation.get("requestBody"))):
        yield from description["components"]["schemas"][name]["properties"]


def test_every_command_in_a_hint_has_a_request_or_is_known_to_have_none() -> None:
    verbs = set()
    for file in SOURCE.rglob("*.py"):
        if file.relative_to(SOURCE).parts[0] not in _ELSEWHERE:
            for text in _hints(ast.parse(file.read_text(encoding="utf-8"))):
                verbs |= set(re.findall(r"headgate (?!that )([a-z][a-z-]*)", text))
    assert "stop" in verbs
    assert verbs - set(CALLS) <= _LOCAL, "give the command its request in hints.py"


def _hints(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of hints, with `X` for what is inserted."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "hint":
            for part in ast.walk(node.value):
                if isinstance(part, ast.JoinedStr):
                    pieces = (
                        each.value if isinstance(each, ast.Constant) else "X"
                        for each in part.values
                    )
                    yield "".join(str(piece) for piece in pieces)
                elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value
