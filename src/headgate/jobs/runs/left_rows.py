"""Rows of a job's last run that are not visible, in places that its flow no longer writes to."""

from __future__ import annotations

from headgate.connectors.registry import find_connector
from headgate.errors import HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.flow.topics import Topic
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import find_run
from headgate.jobs.runs.written_batches import topics_of


def check_left_rows(home: JobFolder, lineage: str | None, graph: Graph) -> None:
    """Refuse a flow with which committed rows of the last run would never be visible.

    Args:
        lineage: The job's last run; None if it never ran.

    Raises:
        HeadgateError: ROWS_NOT_PUBLISHED.
    """
    run = None if lineage is None else find_run(home, lineage)
    if run is None or run.flow == graph:
        return
    present = topics_of(graph).values()
    for name, topic in topics_of(run.flow).items():
        connector = find_connector(topic)
        if connector is None or any(_is_same(topic, other) for other in present):
            continue
        hidden = connector.writing.find_hidden(topic, run.lineage)
        if hidden is not None:
            raise HeadgateError(
                "ROWS_NOT_PUBLISHED",
                f"cannot start job {home.name!r}: {hidden.rows} rows of its output {name!r} are "
                f"staged in {topic.describe()} and not visible yet, and its flow no longer writes "
                "there",
                hint="run it once unchanged with --until-caught-up, then with the change",
            )


def _is_same(topic: Topic, other: Topic) -> bool:
    connector = find_connector(topic)
    return connector is not None and topic.kind == other.kind and connector.reads(topic, other)
