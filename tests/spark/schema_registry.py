"""A small schema registry for tests, which speaks Confluent's REST API and fails when told to."""

from __future__ import annotations

import base64
import json
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

_TYPE = "application/vnd.schemaregistry.v1+json"


@dataclass(slots=True)
class SchemaRegistry:
    """What a registry holds, and how it behaves.

    Attributes:
        answers: Status codes of the next answers, in place of the true ones.
        requests: The path of each request.
        authorization: The header that every request must have; None for any.
        level: How versions of a subject must be compatible: BACKWARD or NONE.
    """

    answers: list[int] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    authorization: str | None = None
    level: str = "BACKWARD"
    schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    subjects: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    port: int = 0

    @property
    def url(self) -> str:
        """The address of the registry."""
        return f"http://127.0.0.1:{self.port}"

    def add(self, subject: str, schema: Any, **more: Any) -> int:
        """Register a schema without a check, and return its id."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        found = next((id_ for id_, known in self.schemas.items() if known["schema"] == text), None)
        id_ = found or 100 + len(self.schemas) + 1
        self.schemas[id_] = {"schema": text, **more}
        if id_ not in self.subjects[subject]:
            self.subjects[subject].append(id_)
        return id_

    def get(self, id_: int) -> Any:
        """Return a schema."""
        return json.loads(self.schemas[id_]["schema"])

    def latest(self, subject: str) -> Any:
        """Return the newest schema of a subject."""
        return self.get(self.subjects[subject][-1])

    def requires(self, user: str, password: str) -> None:
        """Refuse requests without this login."""
        login = base64.b64encode(f"{user}:{password}".encode()).decode()
        self.authorization = f"Basic {login}"

    @contextmanager
    def serving(self) -> Iterator[SchemaRegistry]:
        """Answer requests; again on the same port if it did before."""
        handler = type("Handler", (_Handler,), {"registry": self})
        with ThreadingHTTPServer(("127.0.0.1", self.port), handler) as server:
            self.port = server.server_port
            thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
            thread.start()
            try:
                yield self
            finally:
                server.shutdown()
                thread.join()


class _Refused(Exception):  # noqa: N818 - an answer
    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class _Handler(BaseHTTPRequestHandler):
    registry: ClassVar[SchemaRegistry]

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Print nothing."""

    def _answer(self, body: Any) -> None:
        registry = self.registry
        path = urlsplit(self.path).path
        registry.requests.append(path)
        if registry.answers:
            self._send(registry.answers.pop(0), "<html>not a registry</html>")
            return
        if registry.authorization not in (None, self.headers.get("Authorization")):
            self._send(401, json.dumps({"error_code": 401, "message": "User cannot access"}))
            return
        try:
            parts = [unquote(part) for part in path.strip("/").split("/")]
            self._send(200, json.dumps(_found(registry, parts, body)))
        except _Refused as why:
            self._send(why.status, json.dumps({"error_code": why.code, "message": str(why)}))

    def _send(self, status: int, text: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", _TYPE)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _found(registry: SchemaRegistry, parts: list[str], body: Any) -> Mapping[str, Any]:
    match parts:
        case ["schemas", "ids", id_]:
            if int(id_) not in registry.schemas:
                raise _Refused(404, 40403, "Schema not found")
            return registry.schemas[int(id_)]
        case ["subjects", subject, "versions"] if body is not None:
            _check(registry, subject, json.loads(body["schema"]))
            return {"id": registry.add(subject, body["schema"])}
        case ["subjects", subject, "versions", version]:
            ids = registry.subjects.get(subject, [])
            if not ids:
                raise _Refused(404, 40401, f"Subject '{subject}' not found.")
            number = len(ids) if version == "latest" else int(version)
            id_of = ids[number - 1]
            schema = registry.schemas[id_of]
            return {"subject": subject, "version": number, "id": id_of, **schema}
        case ["config", *_]:
            return {"compatibilityLevel": registry.level}
    raise _Refused(404, 404, "HTTP 404 Not Found")


def _check(registry: SchemaRegistry, subject: str, schema: Any) -> None:
    """Refuse a record that cannot read those of the newest version, by the rule for BACKWARD."""
    ids = registry.subjects.get(subject)
    if not ids or registry.level == "NONE":
        return
    before = {part["name"]: part["type"] for part in registry.get(ids[-1])["fields"]}
    for part in schema["fields"]:
        if part["name"] not in before and "default" not in part:
            raise _Refused(409, 409, f"READER_FIELD_MISSING_DEFAULT_VALUE: {part['name']}")
        if before.get(part["name"], part["type"]) != part["type"]:
            raise _Refused(409, 409, f"TYPE_MISMATCH: {part['name']}")
