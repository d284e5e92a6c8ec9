"""Avro as a format: binary records, by one schema or by those of a registry."""

from __future__ import annotations

import json
import os
import re
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import ClassVar

from headgate.errors import HeadgateError
from headgate.flow.formats.registry import Registry, as_registry

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")


@dataclass(frozen=True, slots=True)
class Avro:
    """Records in Avro's binary encoding.

    With a registry each record begins with the id of its schema, in Confluent's wire format.
    Without one, all records have one schema.

    Attributes:
        registry: A schema registry, or its address.
        subject: The registry's subject; by default the topic's name and `-value`.
        schema: An Avro schema as JSON. Without a registry it is the schema of all records, by
            default that of the columns. With a registry, an output registers it; a source takes
            aliases and defaults of fields from it.
        record: The record's full name in a schema that is made of columns; by default made of
            the topic's name.
        register: Outputs with a registry: True registers the schema; False writes by the latest
            version of the subject, and registers nothing.
    """

    registry: Registry | None = None
    subject: str | None = None
    schema: str | None = None
    record: str | None = None
    register: bool = True
    schema_file: InitVar[str | os.PathLike[str] | None] = None

    tag: ClassVar[str] = "avro"
    is_binary: ClassVar[bool] = True

    def __post_init__(self, schema_file: str | os.PathLike[str] | None) -> None:
        if self.registry is not None:
            object.__setattr__(self, "registry", as_registry(self.registry))
        if schema_file is not None:
            if self.schema is not None:
                raise _bad("it has both schema and schema_file", "use one of them")
            object.__setattr__(self, "schema", _read(schema_file))
        if self.schema is not None:
            _check_schema(self.schema)
        if self.record is not None and not _NAME.fullmatch(self.record):
            hint = "use letters, digits and _, such as com.acme.Order"
            raise _bad(f"{self.record!r} is not a name of a record", hint)
        if self.registry is None and (self.subject is not None or not self.register):
            what = "register=False" if self.subject is None else "a subject"
            raise _bad(f"it has {what} and no registry", 'add registry="http://localhost:8081"')

    def describe(self) -> str:
        """Return the format as `explain` shows it."""
        return "Avro" if self.registry is None else f"Avro, schemas at {self.registry.url}"


def _read(file: str | os.PathLike[str]) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise _bad(
            f"{os.fspath(file)} cannot be read: {why}",
            "name a file with an Avro schema; the path starts at the working directory",
        ) from error


def _check_schema(text: str) -> None:
    try:
        schema = json.loads(text)
    except (TypeError, ValueError) as error:
        raise _bad(f"its schema is not JSON: {error}", 'use {"type": "record", …}') from error
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise _bad("its schema must be a record", 'use {"type": "record", "name": …}')


def _bad(problem: str, hint: str) -> HeadgateError:
    return HeadgateError("BAD_FORMAT", f"cannot use Avro: {problem}", hint=hint)
