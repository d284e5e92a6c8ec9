"""Formats of users, put together of raw bytes and functions: a source and what decodes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_origin

from headgate.errors import HeadgateError
from headgate.flow.building.builder import Builder
from headgate.flow.formats.custom import Decoder, Encoder
from headgate.flow.formats.plain import Raw
from headgate.flow.names import quote, split_path
from headgate.flow.operators.nodes import FlatMap, Map, OnError, Output, Port, Source
from headgate.flow.schemas.dataclass_fields import is_dataclass_type
from headgate.flow.schemas.schema import Field, Primitive, Schema
from headgate.flow.schemas.signatures import read_signature
from headgate.functions.custom_formats import KEY, RECORD, Decoding, Encoding
from headgate.functions.stored import Callback, RowType, StoredFunction, describe

_RECORD = Field(RECORD, Primitive("binary"), nullable=False)


def add_decoded(builder: Builder, source: Source, form: Decoder) -> Port:
    """Add a source whose records a format of the user decodes; return the port of its rows."""
    what = builder.cannot_add(f"stream {source.id!r}")
    if source.event_time is not None:
        raise HeadgateError(
            "BAD_FORMAT",
            f"{what}: a format in Python decodes records behind the source, which takes their "
            "event time",
            hint="decode them in a flow of its own, and read its output with event_time",
        )
    bytes_of = replace(source, schema=Schema((_RECORD,)), format=Raw())
    builder.add(bytes_of)
    meta = [] if source.meta is None else [builder.schemas[Port(source.id, "out")].fields[-1]]
    returned = source.schema.with_fields(*meta)
    signature = read_signature(form.decode, bytes_of.schema, what=what)
    many = not _is_row(signature.result)
    kind = FlatMap if many else Map
    uid = _uid("decode", source.id)
    node = kind(
        uid,
        Port(source.id, "out"),
        _describe(form, form.decode, what),
        returned,
        None,
        OnError.DEAD_LETTER,
    )
    builder.add(node)
    builder.callbacks[uid] = Callback(Decoding(form.decode, source.meta, many), RowType())
    return Port(uid, "out")


def add_encoded(builder: Builder, output: Output, form: Encoder) -> None:
    """Add an output whose records a format of the user encodes."""
    what = builder.cannot_add(f"output {output.topic.name!r}")
    rows = builder.schemas[output.input]
    signature = read_signature(form.encode, rows, what=what)
    path: tuple[str, ...] = ()
    columns: tuple[Field, ...] = (_RECORD,)
    if output.key is not None:
        path = tuple(split_path(output.key) or ())
        columns = (_RECORD, replace(rows.get(output.key, what=what), name=KEY))
        if signature.columns is not None and path[0] not in signature.columns:
            raise HeadgateError(
                "BAD_OUTPUT",
                f"{what}: the rows that its format encodes have no column {path[0]!r}, which is "
                "its key",
                hint=f"add {path[0]!r} to the class that encode takes",
            )
    uid = _uid("encode", output.id)
    encode = Map(
        uid,
        output.input,
        _describe(form, form.encode, what),
        Schema(columns),
        signature.columns,
        OnError.DEAD_LETTER,
    )
    key = quote(KEY) if path else None
    written = replace(output, input=Port(uid, "out"), key=key, format=Raw(column=RECORD))
    builder.add(encode, written)
    builder.callbacks[uid] = Callback(Encoding(form.encode, path), signature.argument)


def _describe(form: object, method: Callable[..., Any], what: str) -> StoredFunction:
    """Return a method's name, with the digest of its class."""
    return replace(describe(method, what=what), digest=describe(type(form), what=what).digest)


def _is_row(annotation: Any) -> bool:
    return is_dataclass_type(annotation) or annotation is dict or get_origin(annotation) is dict


def _uid(verb: str, name: str) -> str:
    return f"{verb}-{name.replace('.', '-')}"
