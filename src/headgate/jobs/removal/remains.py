"""What a deleted job leaves behind: topics, marks on brokers, savepoints in other folders."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from headgate._locations import Location, is_local, parse_location
from headgate.connectors.registry import find_connector
from headgate.errors import HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Source
from headgate.flow.topics import Topic
from headgate.jobs.event_files import EVENTS, count_events
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import get_flow
from headgate.jobs.views.events import read_back


def find_remains(home: JobFolder) -> Iterator[str]:
    """Yield what stays when a job is deleted, a line each."""
    flow = None
    # A job whose files cannot be read can be deleted all the same.
    with suppress(HeadgateError):
        flow = get_flow(home, doing="delete")
    if flow is not None:
        yield from _topics(flow)
        yield from _marks(flow, home.name)
    yield from _savepoints(home)


def _topics(flow: Graph) -> Iterator[str]:
    """Yield the topics of a flow by their log, with those that writing needs."""
    names: dict[str, list[str]] = {}
    read = [node.topic for node in flow.nodes if isinstance(node, Source)]
    written = [*(node.topic for node in flow.outputs()), flow.dead_letters]
    for topic in (*read, *written, *_companions(written)):
        connector = find_connector(topic)
        if connector is not None:
            known = names.setdefault(connector.where(topic), [])
            if topic.name not in known:
                known.append(topic.name)
    for where, topics in names.items():
        yield f"topics on {where}: {', '.join(topics)}"


def _companions(written: list[Topic]) -> Iterator[Topic]:
    for topic in written:
        connector = find_connector(topic)
        if connector is not None:
            yield from (companion for companion, _ in connector.setup.find_companions(topic))


def _marks(flow: Graph, job: str) -> Iterator[str]:
    marks = []
    for node in flow.nodes:
        if isinstance(node, Source) and (connector := find_connector(node.topic)) is not None:
            marks.append(connector.positions.describe_mark(node.topic, job))
    yield from dict.fromkeys(mark for mark in marks if mark is not None)


def _savepoints(home: JobFolder) -> Iterator[str]:
    """Yield the savepoints in other folders that the job's events name and that exist."""
    inside = home.path.resolve()
    seen: set[Location] = set()
    with suppress(OSError, HeadgateError):
        file = home.path / EVENTS
        for event in read_back(file, count_events(file), kinds=frozenset({"SAVEPOINT"})):
            folder = parse_location(str(event.facts.get("folder") or inside)).resolve()
            is_inside = is_local(folder) and folder.is_relative_to(inside)
            if folder not in seen and not is_inside and folder.is_dir():
                seen.add(folder)
                yield f"savepoint {folder}"
