"""A dead letter as a value: what the kernel wrote, and what became of it. Pure."""

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
from headgate.connectors.places import PlacedRecord

# A list shows so much of each record.
EXCERPT = 1024

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLAIN_CONTROLS = frozenset("\t\n\r")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The part of a record that a list shows.

    Attributes:
        cut: Whether the letter holds only the beginning of the record.
        is_text: Whether the record can be shown as it is.
        text: The first bytes of the record as text; None for a record without a value.
    """

    cut: bool
    is_text: bool
    text: str | None


_Base64 = Annotated[
    bytes,
    Form(lambda raw: base64.b64encode(raw).decode(), base64.b64decode, {"type": "string"}),
]


def _with_excerpt(letter: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON of a letter with its excerpt, where it is one of a list."""
    return letter if "raw" in letter else {**letter, "excerpt": letter}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A record that could not be decoded, or the record of a row that failed.

    Attributes:
        id: Where the letter itself is in its topic; it stays the same.
        source: The source of the record, or the operator at which a row failed.
        of_row: Whether a row failed inside the flow: then `raw` is that row as JSON.
        topic: The topic of the record; empty where nobody knows it any more.
        job: The job that wrote it; empty for letters of release 0.7.
        expression: The SQL that failed on the row; empty where none did.
        partition: Where the record stood; on embedded topics the file's number.
        offset: Likewise; on embedded topics the byte its line begins at.
        reason: The countable code, such as BAD_JSON.
        detail: The reason in words.
        at: When the letter was written; None where its log does not tell.
        record_at: When the record was appended; None likewise.
        timestamp: The same in epoch milliseconds.
        size: The full length of the record in bytes.
        raw: The record, or as much of it as the letter holds; None for one without a value.
        excerpt: The part of the record that a list shows; None for a letter of its own.
        digest: Tells the letter from another at the same place of a topic that was made anew.
        replayed_at: When its record was sent again, or the sending began; None if it never was.
        replayed_by: Who did that.
        in_doubt: Whether that sending broke off: the record may have arrived, or not.
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
    # A letter of a list equals the letter itself.
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
        """Whether the record can be shown as it is: UTF-8 without control characters."""
        if self.excerpt is not None:
            return self.excerpt.is_text
        return self.raw is not None and is_text(self.raw, cut=self.cut)

    @property
    def shown(self) -> str | None:
        """The record as text, in which other bytes are escaped; None for one without a value."""
        if self.excerpt is not None:
            return self.excerpt.text
        return None if self.raw is None else show_bytes(self.raw)

    @property
    def text(self) -> str:
        """Likewise, and empty for a record without a value."""
        return self.shown or ""

    def shorten(self) -> DeadLetter:
        """Return the letter for a list: its JSON has only the beginning of the record."""
        beginning = None if self.raw is None else show_bytes(self.raw[:EXCERPT])
        return replace(self, excerpt=Excerpt(self.cut, self.is_text, beginning))


def find_letter(record: PlacedRecord) -> DeadLetter | None:
    """Return the dead letter that a record of its topic is, or None where it is none."""
    try:
        content = json.loads(record.value or b"")
        topic, raw = content["topic"], content["raw"]
        timestamp = int(content["timestamp"])
        return DeadLetter(
            id=record.place,
            source=str(content["source"]),
            of_row=topic is None,
            topic=str((content.get("record_topic") if topic is None else topic) or ""),
            partition=int(content["partition"]),
            offset=int(content["offset"]),
            reason=str(content["code"]),
            detail=str(content["reason"]),
            at=_moment(record.timestamp),
            record_at=_moment(timestamp),
            timestamp=timestamp,
            size=int(content["bytes"]),
            raw=None if raw is None else base64.b64decode(raw, validate=True),
            digest=hashlib.sha256(record.value or b"").hexdigest()[:12],
            job=str(content.get("job") or ""),
            expression=str(content.get("expression") or ""),
        )
    except (ValueError, TypeError, KeyError, OverflowError, binascii.Error):
        return None


class Kind(NamedTuple):
    """What letters are counted by.

    Attributes:
        job: The job that wrote them; empty where they do not say.
        source: The source of their records, or the operator at which rows failed.
        topic: The topic of their records; None where rows failed.
        reason: The countable code.
    """

    job: str
    source: str
    topic: str | None
    reason: str


def find_kind(value: bytes | None) -> Kind | None:
    """Return the kind of a letter and nothing else, which is fast; None for other records."""
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
    """Tell whether bytes are text that can be shown as it is.

    Args:
        cut: Whether they break off somewhere, so that a last character may be incomplete.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        if not cut or error.end < len(raw) or len(raw) - error.start > 3:
            return False
        text = raw[: error.start].decode()
    return all(each in _PLAIN_CONTROLS or unicodedata.category(each) != "Cc" for each in text)


def show_bytes(raw: bytes) -> str:
    r"""Return bytes as text; what is no UTF-8 is written `\xff`."""
    return raw.decode(errors="backslashreplace")


def _moment(ms: int) -> datetime | None:
    return None if ms < 0 else _EPOCH + timedelta(milliseconds=ms)
