"""Streams that read a topic in a format."""

from __future__ import annotations

from dataclasses import replace

from headgate.flow.building.builder import Builder
from headgate.flow.building.custom_formats import add_decoded
from headgate.flow.formats.changes import Debezium
from headgate.flow.formats.custom import Decoder, is_decoder
from headgate.flow.formats.format import Format, format_of
from headgate.flow.formats.registry import Registry
from headgate.flow.operators.nodes import Port, Source


def add_stream(
    builder: Builder,
    source: Source,
    form: str | Format | Decoder | None,
    registry: str | Registry | None,
) -> Port:
    """Add a stream, and return the port of its rows."""
    if is_decoder(form) and registry is None:
        return add_decoded(builder, source, form)
    what = builder.cannot_add(f"stream {source.id!r}")
    if isinstance(form, Debezium):
        source = replace(source, schema=form.columns(source.schema, what=what))
    chosen = format_of(source.topic, form, registry=registry, what=what)
    builder.add(replace(source, format=chosen))
    return Port(source.id, "out")
