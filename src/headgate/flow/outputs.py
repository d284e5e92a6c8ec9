"""The results of operators with several outputs: small named objects, one field per output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.flow.stream import Stream


@dataclass(frozen=True, slots=True)
class Enriched:
    """The outputs of `enrich`.

    Attributes:
        matched: Events with the table's row added. The main output, which must be used.
        missing: Events without a matching row, unchanged. A side output: if unused, its rows are
            counted and not written.
    """

    matched: Stream
    missing: Stream


@dataclass(frozen=True, slots=True)
class Windowed:
    """The outputs of `aggregate`.

    Attributes:
        updates: A row per result of a window. The main output, which must be used.
        late: Events whose windows are closed, unchanged. A side output: if unused, its rows are
            counted and not written.
    """

    updates: Stream
    late: Stream


@dataclass(frozen=True, slots=True)
class Deduped:
    """The outputs of `dedupe`.

    Attributes:
        unique: The first event of each key. The main output, which must be used.
        repeated: Later events of the same key. A side output.
        late: Events older than the operator's memory of keys. A side output.
    """

    unique: Stream
    repeated: Stream
    late: Stream
