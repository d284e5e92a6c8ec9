"""Sources whose topic is in another place than before: whether their positions hold there.

A position is that of a topic: it names the topic's id, on Pulsar its subscription stands for it.
So another name of the same servers is no change, nor is a moved folder.
"""

from __future__ import annotations

from collections.abc import Mapping

from headgate.connectors.registry import find_connector, get_connector
from headgate.errors import HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Source, SourceKind
from headgate.flow.topics import Topic


def check_places(
    before: Graph, now: Graph, positions: Mapping[str, str | None], *, what: str, job: str
) -> None:
    """Refuse a flow with a source that a position of the former flow does not fit.

    Args:
        positions: By source id; None, or no entry, for a source that has not been read.
        what: What cannot be done, as in `cannot resume job 'orders'`.

    Raises:
        HeadgateError: SOURCE_MOVED; POSITION_UNREADABLE, BROKER_UNREACHABLE and others.
    """
    former = {node.id: node.topic for node in before.nodes if isinstance(node, Source)}
    for source in (node for node in now.nodes if isinstance(node, Source)):
        position, topic = positions.get(source.id), former.get(source.id)
        # Manifests of older releases may have the name alone, which says nothing of the place.
        if position is None or topic is None:
            continue
        if find_connector(topic) is None or find_connector(source.topic) is None:
            continue
        if _place(topic) == _place(source.topic):
            continue
        why = _find_mismatch(topic, source.topic, position, job)
        if why is not None:
            raise _moved(source, topic, why, what)


def _place(topic: Topic) -> tuple[str | None, ...]:
    """Return what tells the place of a topic; client options do not."""
    return (topic.kind, topic.name, topic.pattern, get_connector(topic).where(topic))


def _find_mismatch(before: Topic, now: Topic, position: str, job: str) -> str | None:
    if before.kind != now.kind:
        return f"a position on {before.kind} has no meaning on {now.kind}"
    return get_connector(now).positions.find_mismatch(now, position, job)


def _moved(source: Source, before: Topic, why: str, what: str) -> HeadgateError:
    other = f"{source.id}-2"
    keep = f"; or give the stream another uid, uid={other!r}, to read it from its start with state"
    return HeadgateError(
        "SOURCE_MOVED",
        f"{what}: source {source.id!r} was read from {before.describe()}, and the flow reads "
        f"{source.topic.describe()}: {why}",
        hint="use the former place, or start empty with --fresh"
        + (keep if source.kind is SourceKind.STREAM else ""),
    )
