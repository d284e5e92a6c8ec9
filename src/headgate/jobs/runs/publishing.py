"""Publishing how far a job has read, so that the tools of a log see its lag.

Positions go to a consumer group on Kafka and to a subscription on Pulsar, both named after the
job. Nothing is read back: a job's own checkpoint says where it goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from headgate.connectors.contract.connector import Mark
from headgate.connectors.registry import get_connector
from headgate.errors import HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Source

Positions = Mapping[str, str | None]

# How long the end of a job waits for its last positions to be published.
_LAST_WORD = 5.0


class Publisher:
    """Publishes on a thread of its own, so that an unreachable broker delays nothing.

    Args:
        marks: Where the positions of sources go, by source id; sources may have none.
        failed: Called on that thread, once for each series of failures of a source.
    """

    def __init__(self, marks: Mapping[str, Mark], failed: Callable[[HeadgateError], None]) -> None:
        self._marks = marks
        self._failed = failed
        self._newest: Positions | None = None
        self._closing = False
        self._failing: set[str] = set()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, daemon=True)
        if marks:
            self._thread.start()

    def offer(self, positions: Positions) -> None:
        """Publish these positions after the ones before, which may be left out."""
        with self._changed:
            self._newest = positions
            self._changed.notify()

    def close(self) -> None:
        """Publish the last positions, for a few seconds at most, and end."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._marks:
            self._thread.join(_LAST_WORD)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._newest is not None)
                positions, self._newest = self._newest, None
            if positions is None:
                return
            self._publish(positions)

    def _publish(self, positions: Positions) -> None:
        for source, mark in self._marks.items():
            position = positions.get(source)
            if position is None:
                continue
            try:
                mark.move(position)
                self._failing.discard(source)
            except HeadgateError as error:
                if source not in self._failing:
                    self._failing.add(source)
                    self._failed(error)


def make_publisher(job: str, graph: Graph, failed: Callable[[HeadgateError], None]) -> Publisher:
    """Return what publishes the positions of a flow's sources."""
    sources = {node.id: node.topic for node in graph.nodes if isinstance(node, Source)}
    by_source = {
        name: get_connector(topic).positions.find_mark(topic, job)
        for name, topic in sources.items()
    }
    marks = {source: mark for source, mark in by_source.items() if mark is not None}
    return Publisher(marks, failed)
