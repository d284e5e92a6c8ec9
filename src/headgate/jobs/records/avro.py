"""Records of Avro as JSON for people."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import httpx

from headgate._references import resolve
from headgate.errors import Domain, HeadgateError
from headgate.flow.formats.avro import Avro
from headgate.flow.formats.registry import Registry

# A zero, and the id of the schema.
_HEADER = 5
_PATIENCE_S = 10.0


def avro_viewer(form: Avro) -> Callable[[bytes], str]:
    """Return what shows records of a format; it asks the registry once for each schema."""
    if form.registry is not None:
        return _Registered(form.registry)
    if form.schema is None:
        raise HeadgateError(
            "BAD_FORMAT",
            "cannot read a topic: format 'avro' needs a schema or a registry",
            hint="headgate topics peek NAME --format avro --registry http://localhost:8081",
        )
    schema = fastavro.parse_schema(json.loads(form.schema))
    return lambda record: _show(schema, record)


class _Registered:
    """Shows records that name their schemas."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._schemas: dict[int, Any] = {}

    def __call__(self, record: bytes) -> str:
        if len(record) < _HEADER or record[0]:
            raise ValueError("it does not begin with a zero and the id of a schema")
        id_ = int.from_bytes(record[1:_HEADER], "big")
        if id_ not in self._schemas:
            named: dict[str, Any] = {}
            self._schemas[id_] = self._parse(self._get(f"/schemas/ids/{id_}"), named)
        return _show(self._schemas[id_], record[_HEADER:])

    def _parse(self, found: Mapping[str, Any], named: dict[str, Any]) -> Any:
        for reference in found.get("references") or ():
            if reference["name"] not in named:
                path = f"/subjects/{reference['subject']}/versions/{reference['version']}"
                self._parse(self._get(path), named)
        return fastavro.parse_schema(json.loads(found["schema"]), named_schemas=named)

    def _get(self, path: str) -> Any:
        registry = self._registry
        url = resolve("registry", registry.url).rstrip("/")
        login, headers = None, {}
        if registry.user is not None:
            password = resolve("registry password", registry.password or "")
            login = (resolve("registry user", registry.user), password)
        elif registry.token is not None:
            headers["Authorization"] = f"Bearer {resolve('registry token', registry.token)}"
        try:
            answer = httpx.get(f"{url}{path}", auth=login, headers=headers, timeout=_PATIENCE_S)
        except httpx.HTTPError as error:
            raise HeadgateError(
                "REGISTRY_UNREACHABLE",
                f"the schema registry at {registry.url} does not answer: {error}",
                hint="check that it runs",
                domain=Domain.EXTERNAL,
                retryable=True,
            ) from None
        if answer.status_code != httpx.codes.OK:
            raise ValueError(
                f"the schema registry at {registry.url} answered {answer.status_code} to {path}"
            )
        return answer.json()


def _show(schema: Any, record: bytes) -> str:
    source = io.BytesIO(record)
    try:
        value = fastavro.schemaless_reader(source, schema, None)
    except (EOFError, IndexError, StopIteration) as error:
        raise ValueError("the record ends within a value") from error
    if source.tell() != len(record):
        raise ValueError(f"{len(record) - source.tell()} bytes follow the value")
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case bytes():
            return b64encode(value).decode()
        case Decimal() | UUID():
            return str(value)
    raise TypeError(f"no JSON form for {type(value).__name__}")
