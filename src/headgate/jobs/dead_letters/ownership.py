"""The job of a dead letter: several jobs may write to one topic."""

from __future__ import annotations

from headgate.connectors.broker import has_name
from headgate.flow.graph import Graph
from headgate.flow.operators import Source, label
from headgate.jobs.dead_letters.letter import Kind


class Ownership:
    """Distinguishes the letters of one job from those of others.

    Letters of release 0.7 do not name their job. Such a letter counts as the job's if its flow
    reads the topic of the record, or has the operator at which the row failed.

    Args:
        graph: The job's flow as it was last run.
    """

    def __init__(self, job: str, graph: Graph) -> None:
        self._job = job
        self._operators = {label(node) for node in graph.nodes}
        self._topics = [node.topic for node in graph.nodes if isinstance(node, Source)]

    def has(self, kind: Kind) -> bool:
        """Tell whether letters of a kind are the job's."""
        if kind.job:
            return kind.job == self._job
        name = kind.topic
        if name is None:
            return kind.source in self._operators
        return any(has_name(topic, name) for topic in self._topics)
