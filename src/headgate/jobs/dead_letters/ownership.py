"""Which job a dead letter is of: several jobs may write to one topic."""

from __future__ import annotations

from headgate.connectors.broker import has_name
from headgate.flow.graph import Graph
from headgate.flow.operators import Source, label
from headgate.jobs.dead_letters.letter import DeadLetter, Kind


class Ownership:
    """Tells the letters of one job from those of others.

    Letters of release 0.7 do not name their job. Such a letter is taken for the job's if its flow
    reads the topic of the record, or has the operator at which the row failed.
    """

    def __init__(self, job: str, graph: Graph) -> None:
        """Take the job's flow as it was last run."""
        self._job = job
        self._operators = {label(node) for node in graph.nodes}
        self._topics = [node.topic for node in graph.nodes if isinstance(node, Source)]

    def has(self, letter: DeadLetter | Kind) -> bool:
        """Tell whether a letter is of the job."""
        if letter.job:
            return letter.job == self._job
        topic = letter.topic
        if isinstance(letter, DeadLetter) and letter.of_row:
            topic = None
        if topic is None:
            return letter.source in self._operators
        return any(has_name(each, topic) for each in self._topics)
