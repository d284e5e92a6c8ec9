"""A dead letter as a value: the kernel's JSON, and its replay. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, NamedTuple

from headgate._codec import Form, Moment, alias, left_out, shaped
from headgate.connectors.contract.places import PlacedRecord

# The bytes of a record that a list shows.
EXCERPT = 1024

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLAIN_CONTROLS = frozenset("\t\n\r")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The part of a record that a list shows; see the properties of `DeadLetter`."""

    cut: bool
    is_text: bool
    text: str | None


_Base64 = Annotated[
    bytes,
    Form(lambda raw: base64.b64encode(raw).decode(), base64.b64decode, {"type": "string"}),
]


def _with_excerpt(letter: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON of a letter; that of a list has only an excerpt of the record."""
    return letter if "raw" in letter else {**letter, "excerpt": letter}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A record that could not be decoded, or the record of a row that failed.

    Attributes:
        id: The letter's place in its topic, which does not change.
        job: The job that wrote it; empty for letters of release 0.7.
        source: The source of the record, or the operator at which a row failed.
        of_row: Whether a row failed inside the flow: then `raw` is that row as JSON.
        topic: The topic of the record; empty if it is unknown.
        partition: The record's partition; on embedded topics the file's number.
        offset: The record's offset; on embedded topics the first byte of its line.
        reason: The code, such as BAD_JSON.
        detail: The reason in words.
        expression: The SQL that failed on the row; empty if none did.
        at: When the letter was written; None if its log does not record that.
        record_at: When the record was written; None likewise.
        timestamp: The same in epoch milliseconds.
        size: The full length of the record in bytes.
        raw: The record, or its beginning; None for a record without a value.
        digest: Distinguishes letters at the same place of a topic that was recreated.
        excerpt: The part of the record that a list shows; None outside of a list.
        replayed_at: When the last replay of its record ended or began; None if there was none.
        replayed_by: The user who replayed it.
        in_doubt: Whether that replay was interrupted: the record may have arrived.
    """

    id: str
    job: str = ""
    source: str
    of_row: bool
    topic: str
    partition: int
    offset: int
    reason: str
    detail: str
    expression: str = ""
    at: Moment | None
    record_at: Moment | None
    timestamp: int = field(default=-1, metadata=left_out())
    size: int = field(metadata=alias("bytes"))
    raw: _Base64 | None = None
    digest: str = field(default="", metadata=left_out())
    # A letter of a list equals the whole letter.
    excerpt: Excerpt | None = field(default=None, compare=False, metadata=left_out())
    replayed_at: Moment | None = None
    replayed_by: str = ""
    in_doubt: bool = False

    __get_pydantic_core_schema__ = shaped(
        computed={"cut": "cut", "is_text": "is_text", "text": "shown"},
        absent=lambda letter: () if letter.excerpt is None else ("raw",),
        prepare=_with_excerpt,
    )

    @property
    def cut(self) -> bool:
        """Whether the letter holds only the beginning of the record."""
        if self.excerpt is not None:
            return self.excerpt.cut
        return self.raw is not None and len(self.raw) < self.size

    @property
    def is_text(self) -> bool:
        """Whether the record is UTF-8 text without control characters."""
        if self.excerpt is not None:
            return self.excerpt.is_text
        return self.raw is not None and is_text(self.raw, cut=self.cut)

    @property
    def shown(self) -> str | None:
        """The record as text, with other bytes escaped; None for a record without a value."""
        if self.excerpt is not None:
            return self.excerpt.text
        return None if self.raw is None else show_bytes(self.raw)

    @property
    def text(self) -> str:
        """The same, but empty for a record without a value."""
        return self.shown or ""

    @property
    def kind(self) -> Kind:
        return Kind(self.job, self.source, None if self.of_row else self.topic, self.reason)

    def shorten(self) -> DeadLetter:
        """Return the letter for a list, whose JSON has only the beginning of the record."""
        beginning = None if self.raw is None else show_bytes(self.raw[:EXCERPT])
        return replace(self, excerpt=Excerpt(self.cut, self.is_text, beginning))


def find_letter(record: PlacedRecord) -> DeadLetter | None:
    """Return the dead letter in a record of its topic, or None for another record."""
    letter = parse_letter(record.value)
    if letter is None:
        return None
    return replace(letter, id=record.place, at=find_moment(record.timestamp))


def parse_letter(value: bytes | None) -> DeadLetter | None:
    """Return the dead letter in a record's value, without its place; None for another record."""
    try:
        content = json.loads(value or b"")
        topic, raw = content["topic"], content["raw"]
        timestamp = int(content["timestamp"])
        return DeadLetter(
            id="",
            source=str(content["source"]),
            of_row=topic is None,
            topic=str((content.get("record_topic") if topic is None else topic) or ""),
            partition=int(content["partition"]),
            offset=int(content["offset"]),
            reason=str(content["code"]),
            detail=str(content["reason"]),
            at=None,
            record_at=find_moment(timestamp),
            timestamp=timestamp,
            size=int(content["bytes"]),
            raw=None if raw is None else base64.b64decode(raw, validate=True),
            digest=hashlib.sha256(value or b"").hexdigest()[:12],
            job=str(content.get("job") or ""),
            expression=str(content.get("expression") or ""),
        )
    except (ValueError, TypeError, KeyError, OverflowError, binascii.Error):
        return None


class Kind(NamedTuple):
    """The fields of a letter by which letters are counted; `topic` is None if a row failed."""

    job: str
    source: str
    topic: str | None
    reason: str


def find_kind(value: bytes | None) -> Kind | None:
    """Return the kind of a letter, without decoding the record; None for other records."""
    try:
        content = json.loads(value or b"")
        topic = content["topic"]
        return Kind(
            str(content.get("job") or ""),
            str(content["source"]),
            None if topic is None else str(topic),
            str(content["code"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def is_text(raw: bytes, *, cut: bool = False) -> bool:
    """Tell whether bytes are UTF-8 text without control characters.

    Args:
        cut: Whether the last character may be incomplete.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        if not cut or error.end < len(raw) or len(raw) - error.start > 3:
            return False
        text = raw[: error.start].decode()
    return all(char in _PLAIN_CONTROLS or unicodedata.category(char) != "Cc" for char in text)


def show_bytes(raw: bytes) -> str:
    r"""Return bytes as text, in which bytes that are not UTF-8 are written `\xff`."""
    return raw.decode(errors="backslashreplace")


def find_moment(ms: int) -> datetime | None:
    """Return the moment of a record's timestamp; None if it has none."""
    return None if ms < 0 else _EPOCH + timedelta(milliseconds=ms)
