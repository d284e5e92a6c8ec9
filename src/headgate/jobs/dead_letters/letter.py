"""A dead letter as a value: what the kernel wrote, and what became of it. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from headgate.connectors.places import PlacedRecord

# A list shows so much of each record.
EXCERPT = 1024

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLAIN_CONTROLS = frozenset("\t\n\r")


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
        digest: Tells the letter from another at the same place of a topic that was made anew.
        replayed_at: When its record was sent again, or the sending began; None if it never was.
        replayed_by: Who did that.
        in_doubt: Whether that sending broke off: the record may have arrived, or not.
    """

    id: str
    source: str
    of_row: bool
    topic: str
    partition: int
    offset: int
    reason: str
    detail: str
    at: datetime | None
    record_at: datetime | None
    timestamp: int
    size: int
    raw: bytes | None
    digest: str
    job: str = ""
    expression: str = ""
    replayed_at: datetime | None = None
    replayed_by: str = ""
    in_doubt: bool = False

    @property
    def cut(self) -> bool:
        """Whether the letter holds only the beginning of the record."""
        return self.raw is not None and len(self.raw) < self.size

    @property
    def is_text(self) -> bool:
        """Whether the record can be shown as it is: UTF-8 without control characters."""
        return self.raw is not None and is_text(self.raw, cut=self.cut)

    @property
    def text(self) -> str:
        """The record as text, in which bytes that are none are escaped."""
        return show_bytes(self.raw or b"")

    def to_json(self, *, excerpt: int | None = None) -> dict[str, Any]:
        """Return the letter as JSON values.

        Args:
            excerpt: Show so many bytes of the record, and leave out its base64; None for all.
        """
        shown = self.raw if excerpt is None or self.raw is None else self.raw[:excerpt]
        whole = {"raw": None if self.raw is None else base64.b64encode(self.raw).decode()}
        return {
            "id": self.id,
            "job": self.job,
            "source": self.source,
            "of_row": self.of_row,
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "reason": self.reason,
            "detail": self.detail,
            "expression": self.expression,
            "at": _text(self.at),
            "record_at": _text(self.record_at),
            "bytes": self.size,
            "cut": self.cut,
            "is_text": self.is_text,
            "text": None if shown is None else show_bytes(shown),
            **(whole if excerpt is None else {}),
            "replayed_at": _text(self.replayed_at),
            "replayed_by": self.replayed_by,
            "in_doubt": self.in_doubt,
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> DeadLetter:
        """Return the letter that `to_json` told of; of an excerpt the record's beginning."""
        at, shown, whole = _parse(told["record_at"]), told["text"], told.get("raw")
        known = None if shown is None else str(shown).encode()
        return cls(
            id=str(told["id"]),
            source=str(told["source"]),
            of_row=bool(told["of_row"]),
            topic=str(told["topic"]),
            partition=int(told["partition"]),
            offset=int(told["offset"]),
            reason=str(told["reason"]),
            detail=str(told["detail"]),
            at=_parse(told["at"]),
            record_at=at,
            timestamp=-1 if at is None else (at - _EPOCH) // timedelta(milliseconds=1),
            size=int(told["bytes"]),
            raw=known if whole is None else base64.b64decode(whole),
            digest="",
            job=str(told.get("job", "")),
            expression=str(told.get("expression", "")),
            replayed_at=_parse(told["replayed_at"]),
            replayed_by=str(told["replayed_by"]),
            in_doubt=bool(told["in_doubt"]),
        )


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


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _parse(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
