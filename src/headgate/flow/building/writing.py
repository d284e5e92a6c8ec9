"""Outputs: one for each topic that the rows of a port are written to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from headgate.errors import HeadgateError
from headgate.flow.building.builder import Builder
from headgate.flow.building.custom_formats import add_encoded
from headgate.flow.formats.custom import Encoder, is_encoder
from headgate.flow.formats.format import Format, format_of
from headgate.flow.formats.registry import Registry
from headgate.flow.operators.nodes import Output, Port
from headgate.flow.topics import Topic, as_topic


def add_outputs(
    builder: Builder,
    port: Port,
    topics: str | Topic | Sequence[str | Topic],
    *,
    key: str | None,
    form: str | Format | Encoder | None,
    registry: str | Registry | None,
) -> None:
    """Add the outputs of a port; all of them or, if one is refused, none."""
    several = isinstance(topics, Sequence) and not isinstance(topics, str)
    listed = cast("Sequence[str | Topic]", topics if several else [topics])
    targets = [as_topic(topic) for topic in listed]
    if not targets:
        raise HeadgateError(
            "BAD_OUTPUT",
            f"{builder.cannot_add('an output')}: the list of topics is empty",
            hint='name a topic: .to("out")',
        )
    what = builder.cannot_add(f"output {targets[0].name!r}")
    name, count = Counter(target.name for target in targets).most_common(1)[0]
    if count > 1:
        raise HeadgateError(
            "DUPLICATE_OUTPUT",
            f"{what}: the list has {count} topics with the name {name!r}",
            hint=f"name each topic once, and write a copy to another one: '{name}-2'",
        )
    outputs = [Output(builder.output_id(target.name), port, target, key) for target in targets]
    if is_encoder(form) and registry is None:
        add_encoded(builder, outputs, form)
    else:
        builder.add(*(_formatted(builder, output, form, registry) for output in outputs))


def _formatted(
    builder: Builder,
    output: Output,
    form: str | Format | Encoder | None,
    registry: str | Registry | None,
) -> Output:
    what = builder.cannot_add(f"output {output.topic.name!r}")
    return replace(output, format=format_of(output.topic, form, registry=registry, what=what))
