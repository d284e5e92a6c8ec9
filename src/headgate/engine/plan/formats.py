"""Formats of sources and outputs as the kernel knows them. Pure."""

from __future__ import annotations

import re
from typing import Any, cast

from headgate.flow.formats.avro import Avro
from headgate.flow.graph.codec import to_json
from headgate.flow.operators.nodes import Output, Source


def format_spec(node: Source | Output) -> dict[str, Any]:
    """Return the format of a node, with what follows from its topic."""
    spec = cast("dict[str, Any]", to_json(node.format))
    topic = node.topic
    if isinstance(node.format, Avro):
        spec["record"] = spec["record"] or _record_name(topic.name)
        is_single = isinstance(node, Output) or topic.pattern is None
        if spec["subject"] is None and is_single:
            spec["subject"] = f"{topic.name}-value"
    return spec


def _record_name(topic: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_]", "_", topic)
    return f"_{name}" if name[0].isdigit() else name
