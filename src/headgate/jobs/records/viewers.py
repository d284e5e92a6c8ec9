"""Records of any format as text for people. A further format is one line in `find_viewer`."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from headgate._codec import shaped
from headgate.connectors.registry import find_connector
from headgate.errors import HeadgateError
from headgate.flow.formats.avro import Avro
from headgate.flow.formats.csv import Csv
from headgate.flow.formats.csv_records import split_fields
from headgate.flow.formats.format import Format
from headgate.flow.formats.plain import Raw
from headgate.flow.topics import Topic
from headgate.jobs.dead_letters.letter import show_bytes

# Raises an exception whose text is the reason if a record is not of the format.
Viewer: TypeAlias = Callable[[bytes], str]

# The line of a record without bytes: a blank line is no record.
_EMPTY_LINE = b"="


@dataclass(frozen=True, slots=True)
class ShownRecord:
    """A record as text.

    Attributes:
        text: JSON, or the text of the record; the record with bytes escaped if it has a problem.
        problem: Why the record cannot be decoded; empty if it can.
    """

    text: str
    problem: str = ""

    __get_pydantic_core_schema__ = shaped(
        absent=lambda record: () if record.problem else ("problem",)
    )


def find_viewer(form: Format, topic: Topic, *, columns: Sequence[str] = ()) -> Viewer:
    """Return what shows the records of a topic.

    Args:
        columns: The columns of rows in the topic, if they are known.
    """
    viewer = _viewer(form, columns)
    connector = find_connector(topic)
    on_lines = connector is not None and connector.spark.HOLDS_LINES
    return (lambda line: viewer(_of_line(line))) if form.is_binary and on_lines else viewer


def show_record(viewer: Viewer, record: bytes) -> ShownRecord:
    """Return a record as text, with the reason if it cannot be decoded."""
    try:
        return ShownRecord(viewer(record))
    except HeadgateError as error:
        problem = error.message
    except Exception as error:  # noqa: BLE001 - whatever is wrong, the others are shown
        problem = str(error) or type(error).__name__
    return ShownRecord(show_bytes(record), problem)


def _viewer(form: Format, columns: Sequence[str]) -> Viewer:
    match form:
        case Avro():
            # Its library takes a tenth of a second to load.
            from headgate.jobs.records.avro import avro_viewer

            return avro_viewer(form)
        case Csv():
            return partial(_show_csv, form, form.columns or columns)
        case Raw():
            return show_bytes
    return _show_text


def _show_text(record: bytes) -> str:
    try:
        return record.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}") from None


def _show_csv(form: Csv, columns: Sequence[str], record: bytes) -> str:
    """Return a record as a JSON object with its texts by name, or as an array without names."""
    fields = split_fields(form, _show_text(record))
    if not columns:
        return json.dumps(fields, ensure_ascii=False)
    if len(fields) != len(columns):
        raise ValueError(f"expected {len(columns)} fields, found {len(fields)}")
    return json.dumps(dict(zip(columns, fields, strict=True)), ensure_ascii=False)


def _of_line(line: bytes) -> bytes:
    if line == _EMPTY_LINE:
        return b""
    try:
        return base64.b64decode(line.removesuffix(b"\r"), validate=True)
    except binascii.Error as error:
        raise ValueError(f"the line is not base64: {error}") from None
