"""Topics that hold a record on each line, as the kernel's decoders and encoders know them. Pure."""

from __future__ import annotations

from headgate.connectors import Console
from headgate.connectors.registry import find_connector
from headgate.flow.operators.nodes import Output, Source


def lines_of(node: Source | Output, *, in_memory: bool) -> str:
    """Return the form of records on the lines of a topic.

    `none` if it holds records as they are; `text` if a record is the text of a line; `base64` if
    records are binary, and the text of a line is their base64.
    """
    connector = find_connector(node.topic)
    on_lines = isinstance(node.topic, Console) or (
        connector is not None and connector.spark.HOLDS_LINES
    )
    if in_memory or not on_lines:
        return "none"
    return "base64" if node.format.is_binary else "text"
