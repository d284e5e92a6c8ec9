"""The last records of a topic, decoded for people."""

from __future__ import annotations

from headgate.connectors.logs import parse_log
from headgate.flow.formats.format import Format
from headgate.jobs.records.viewers import ShownRecord, find_viewer, show_record
from headgate.jobs.topics.listing import tail_topic


def peek_topic(on: str, name: str, form: Format, *, last: int) -> list[ShownRecord]:
    """Return the last records of a topic as text.

    Args:
        on: The log, as `--on` names it.
    """
    viewer = find_viewer(form, parse_log(on).bind(name))
    return [show_record(viewer, record) for record in tail_topic(on, name, last=last)]
