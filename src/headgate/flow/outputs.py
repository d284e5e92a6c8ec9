"""The results of operators that have several: small named objects, a field for each output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.flow.stream import Stream


@dataclass(frozen=True, slots=True)
class Enriched:
    """What `enrich` gives.

    Attributes:
        matched: Events with the table's row added. The main output: it must go somewhere.
        missing: Events that found no row, as they came. A side output: where nobody uses it,
            its rows are counted and not written.
    """

    matched: Stream
    missing: Stream
