"""The one way from a value to JSON and back: for files, other processes, REST, and `--json`.

A value is a frozen dataclass. Its JSON is an object whose names are the names of its fields:

    @dataclass(frozen=True, slots=True, kw_only=True)
    class JobAttempt:
        number: int
        started: Moment
        lasted: Seconds | None = field(metadata=alias("lasted_s"))

Field types of a value must be importable when the module runs: pydantic reads them. pydantic itself
is imported by the first call, so that a command without JSON starts without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, is_dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_origin, get_type_hints

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
    from pydantic_core import CoreSchema

_Value = TypeVar("_Value")

# Made by the first use of a type.
_adapters: dict[Any, TypeAdapter[Any]] = {}


class DecodeError(ValueError):
    """JSON values that are not the value they should be; the message names each wrong field."""


def encode(value: Any) -> Any:
    """Return a value as JSON values: dicts, lists, texts, numbers, booleans and None.

    Args:
        value: A dataclass, or lists, tuples and mappings of such; JSON values stay as they are.
    """
    if isinstance(value, Mapping):
        return {name: encode(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [encode(inner) for inner in value]
    if not is_dataclass(value):
        return value
    return _adapter(type(value)).dump_python(value, mode="json", by_alias=True)


def decode(kind: type[_Value], content: Any) -> _Value:
    """Return the value that JSON values describe.

    Fields that the type does not have are ignored, and a missing field takes its default, so files
    and servers of other releases stay readable.

    Args:
        kind: A dataclass, or a list, tuple or mapping of such.

    Raises:
        DecodeError: A field is missing or has a wrong value.
    """
    from pydantic import ValidationError

    try:
        return _adapter(kind).validate_python(content)
    except ValidationError as error:
        raise DecodeError(_explain(error)) from error


def alias(name: str) -> Mapping[str, Any]:
    """Return the metadata of a field whose name in JSON is another one."""
    return {"alias": name}


def left_out() -> Mapping[str, Any]:
    """Return the metadata of a field that is not part of the JSON; it needs a default."""
    return {"exclude": True}


def left_out_while(value: Any, **more: Any) -> Mapping[str, Any]:
    """Return the metadata of a field that is left out of the JSON while it has a certain value.

    Args:
        value: The field's default, which `decode` puts in its place.
        more: Other metadata, such as that of `alias`.
    """
    return {"exclude_if": lambda content: content == value, **more}


def shaped(
    *,
    flatten: str = "",
    computed: Mapping[str, str] | None = None,
    absent: Callable[[Any], Iterable[str]] | None = None,
    prepare: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
) -> Any:
    """Return the `__get_pydantic_core_schema__` of a value whose JSON is not just its fields.

    Args:
        flatten: A field that is a value; the names of its JSON stand beside those of the others.
        computed: Properties that are written behind the fields and not read, by their names in
            JSON.
        absent: Returns the names that are left out of the JSON of a certain value.
        prepare: Returns the JSON object that is decoded in place of one that was read.
    """
    shape = _Shape(flatten, computed or {}, absent, prepare)
    return classmethod(lambda _, source, handler: shape.build(source, handler))


@dataclass(frozen=True)
class _Shape:
    """What `shaped` is told, and pydantic's schema of it."""

    flatten: str
    computed: Mapping[str, str]
    absent: Callable[[Any], Iterable[str]] | None
    prepare: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None

    def build(self, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of a dataclass with this shape."""
        from pydantic_core import core_schema

        schema = handler(source)
        fields: Any = handler.resolve_ref_schema(schema)["schema"]
        fields["computed_fields"] = [
            core_schema.computed_field(
                name,
                handler.generate_schema(get_type_hints(getattr(source, name).fget)["return"]),
                alias=alias_name,
            )
            for alias_name, name in self.computed.items()
        ]
        if not self.flatten and self.absent is None and self.prepare is None:
            return schema
        # The name of the class goes to the whole shape, so that OpenAPI describes it once.
        inner: Any = dict(handler.resolve_ref_schema(schema))
        return core_schema.no_info_before_validator_function(
            self._spread,
            inner,
            ref=inner.pop("ref", None),
            serialization=core_schema.wrap_serializer_function_ser_schema(self._write),
            metadata={"pydantic_js_functions": [self._describe]},
        )

    def _spread(self, content: Any) -> Any:
        if not isinstance(content, Mapping):
            return content
        prepared = content if self.prepare is None else self.prepare(content)
        return {**prepared, self.flatten: prepared} if self.flatten else prepared

    def _write(self, value: Any, write: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        shape: dict[str, Any] = {}
        for name, content in write(value).items():
            shape |= content if name == self.flatten else {name: content}
        for name in self.absent(value) if self.absent is not None else ():
            shape.pop(name, None)
        return shape

    def _describe(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        described = handler(schema)
        outer = handler.resolve_ref_schema(described)
        # A class that several routes return is described several times, in the same place.
        if self.flatten in outer["properties"]:
            inner = handler.resolve_ref_schema(outer["properties"].pop(self.flatten))
            outer["properties"] = {**inner["properties"], **outer["properties"]}
            required = [name for name in outer.get("required", ()) if name != self.flatten]
            outer["required"] = [*inner.get("required", ()), *required]
        if self.absent is not None:
            # Only a value can tell which names are absent.
            outer["required"] = []
        return described


def _adapter(kind: type[_Value]) -> TypeAdapter[_Value]:
    adapter = _adapters.get(kind)
    if adapter is None:
        from pydantic import TypeAdapter

        if hasattr(kind, "to_json"):
            raise TypeError(f"{kind.__name__} has a to_json of its own")
        adapter = _adapters[kind] = TypeAdapter(kind)
    return adapter


def _explain(error: Any) -> str:
    problems = [
        f"{'.'.join(str(part) for part in problem['loc']) or 'value'}: {problem['msg']}"
        for problem in error.errors(include_url=False, include_context=False)
    ]
    return "; ".join(problems)


@dataclass(frozen=True)
class Form:
    """The JSON of a type that is not a value, or that pydantic would write in another way.

    Attributes:
        write: Returns the JSON value.
        read: Returns the Python value of a JSON value; raises ValueError or TypeError.
        schema: Describes the JSON value in OpenAPI.
        shown_as: A type that describes it instead.
    """

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    schema: Mapping[str, Any] = field(default_factory=dict, hash=False)
    shown_as: Any = None

    def __get_pydantic_core_schema__(
        self, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        from pydantic_core import core_schema

        kind = get_origin(source) or source

        def read(content: Any) -> Any:
            if isinstance(content, kind):
                return content
            try:
                return self.read(content)
            except (TypeError, OverflowError) as error:
                raise ValueError(str(error)) from error

        written = core_schema.plain_serializer_function_ser_schema(self.write, when_used="json")
        if self.shown_as is not None:
            return core_schema.no_info_before_validator_function(
                read, handler.generate_schema(self.shown_as), serialization=written
            )
        return core_schema.no_info_plain_validator_function(read, serialization=written)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return dict(self.schema) if self.shown_as is None else handler(schema)


@dataclass(frozen=True)
class _AnyJson:
    """Describes any JSON value in OpenAPI, under one name; the value itself stays as it is."""

    def __get_pydantic_core_schema__(
        self, _source: type[Any], _handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.any_schema(
            ref="JsonValue", metadata={"pydantic_js_functions": [self._describe]}
        )

    def _describe(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        # Not described any further: generated clients do not read a type that contains itself.
        nested = ({"type": "array", "items": {}}, {"type": "object", "additionalProperties": True})
        return {
            "title": "JsonValue",
            "description": "Any JSON value: the flow or the user decides which.",
            "anyOf": [{"type": name} for name in ("string", "number", "boolean", "null")]
            + list(nested),
        }


def _read_seconds(content: Any) -> timedelta:
    return timedelta(seconds=content)


_NUMBER = {"type": "number"}

# What only a flow, or a user, decides.
JsonValue = Annotated[Any, _AnyJson()]
# A moment is text in ISO 8601 with its offset: 2026-11-18T07:00:00+00:00.
Moment = Annotated[
    datetime,
    Form(datetime.isoformat, datetime.fromisoformat, {"type": "string", "format": "date-time"}),
]
# A duration is a number of seconds; the field's name in JSON ends in `_s`.
Seconds = Annotated[timedelta, Form(timedelta.total_seconds, _read_seconds, _NUMBER)]
# Likewise, to the millisecond.
RoundedSeconds = Annotated[
    timedelta, Form(lambda value: round(value.total_seconds(), 3), _read_seconds, _NUMBER)
]
# Likewise, where Python counts seconds, too.
RoundedNumber = Annotated[float, Form(lambda value: round(value, 3), float, _NUMBER)]
# Likewise, whole seconds.
WholeSeconds = Annotated[
    timedelta,
    Form(lambda value: round(value.total_seconds()), _read_seconds, {"type": "integer"}),
]
