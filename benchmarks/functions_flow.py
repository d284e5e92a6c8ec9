"""Visits copied with one more column: by SQL, by a function on rows, and by one on tables."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headgate import Flow


@dataclass
class Visit:
    """One look at a page; the time in epoch milliseconds."""

    event_id: str
    visit_id: str
    event_time: int
    page: str


@dataclass
class Second:
    """A visit, and the second it was in."""

    visit_id: str
    second: int
    page: str


def to_second(visit: Visit) -> Second:
    """Return a visit with its second."""
    return Second(visit.visit_id, visit.event_time // 1000, visit.page.upper())


def to_seconds(visits: pa.Table) -> pa.Table:
    """Return visits with their seconds."""
    return pa.table(
        {
            "visit_id": visits["visit_id"],
            "second": pc.divide(visits["event_time"], 1000),
            "page": pc.utf8_upper(visits["page"]),
        }
    )


plain = Flow("visits-plain")
plain.stream("visits", Visit).select(
    "visit_id", "event_time DIV 1000 AS second", "upper(page) AS page"
).to("out-plain")

rows = Flow("visits-map")
rows.stream("visits", Visit).map("second", to_second).to("out-map")

tables = Flow("visits-map-batches")
tables.stream("visits", Visit).map_batches("seconds", to_seconds, schema=Second).to(
    "out-map-batches"
)
