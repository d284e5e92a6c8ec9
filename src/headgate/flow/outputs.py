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
        matched: Events with the table's row added. The main output: it must go somewhere.
        missing: Events that found no row, as they came. A side output: where nobody uses it,
            its rows are counted and not written.
    """

    matched: Stream
    missing: Stream


@dataclass(frozen=True, slots=True)
class Windowed:
    """The outputs of `aggregate`.

    Attributes:
        updates: A row for each result of a window. The main output: it must go somewhere.
        late: Events whose windows are over, as they came. A side output: where nobody uses it,
            its rows are counted and not written.
    """

    updates: Stream
    late: Stream


@dataclass(frozen=True, slots=True)
class Deduped:
    """The outputs of `dedupe`.

    Attributes:
        unique: The first event of each key. The main output: it must go somewhere.
        repeated: Events of a key that was seen before. A side output.
        late: Events so old that what was seen at their time is forgotten. A side output.
    """

    unique: Stream
    repeated: Stream
    late: Stream
