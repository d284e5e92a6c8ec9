"""Where sources begin to be read, as `--start` says it."""

from __future__ import annotations

from collections.abc import Iterable

from headgate.connectors.registry import get_connector
from headgate.errors import HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Source


def parse_starts(texts: Iterable[str], graph: Graph) -> dict[str, str]:
    """Return where each source that is spoken of begins, by its id.

    Tables begin at their earliest record unless they are named: a table that is read from
    further on has holes.

    Args:
        texts: `POSITION` for all streams, or `SOURCE=POSITION`: earliest, latest, a time, or
            offsets:0=15,1=20 on Kafka and messages:0=12:5,1=13:0 on Pulsar. A named source wins,
            then the last that was said.

    Raises:
        HeadgateError: BAD_START.
    """
    sources = {node.id: node for node in graph.nodes if isinstance(node, Source)}
    everywhere: dict[str, str] = {}
    named: dict[str, str] = {}
    for text in texts:
        name, equals, position = text.partition("=")
        if equals and name in sources:
            named[name] = _checked(position, text, sources[name])
        else:
            for stream in graph.streams():
                everywhere[stream.id] = _checked(text, text, stream, known=sources)
    return {**everywhere, **named}


def _checked(position: str, text: str, source: Source, *, known: Iterable[str] = ()) -> str:
    """Return a start that fits the kind of a source's topic."""
    starts = get_connector(source.topic).starts
    try:
        checked = starts.check_start(position, topic="")
    except HeadgateError as error:
        sources = f"; the flow's sources are {', '.join(known)}" if known else ""
        raise HeadgateError(
            "BAD_START",
            f"cannot start at {text!r}: it must be a position on {source.topic.describe()} or "
            f"SOURCE=POSITION{sources}",
            hint=f"--start latest, --start {source.id}=2026-11-15T10:05, or "
            f"--start {source.id}={starts.example}",
        ) from error
    assert checked is not None, "a text is a start, or is refused"
    return checked
