"""What the benchmark of Python functions runs.

Visits are copied with one more column: by SQL, by a function on rows, and by one on tables. And a
running total of each visit is kept, one row per event: by a keyed function, and by a window.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headgate import Context, Flow, KeyedProcess, Value
from headgate.windows import count, every_events, tumbling


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


@dataclass(frozen=True)
class Total:
    """How many events a visit has had so far."""

    visit_id: str
    total: int


class Totals(KeyedProcess[Visit, Total]):
    """Counts the events of each visit."""

    total: Value[int]

    def on_event(self, visit: Visit, ctx: Context[Total]) -> None:
        """Count an event, and emit the new total."""
        total = self.total.get(0) + 1
        self.total.set(total)
        ctx.emit(Total(visit.visit_id, total))


process = Flow("totals-process")
process.stream("visits", Visit).key_by("visit_id").process("totals", Totals()).out.to(
    "totals-process", key="visit_id"
)

# One window for all events: it stays open, and each event makes an early row.
window = Flow("totals-window")
(
    window.stream("visits", Visit, event_time="event_time", out_of_orderness="5m")
    .key_by("visit_id")
    .window("totals", tumbling("365d"), early=every_events(1))
    .aggregate(total=count())
    .updates.select("visit_id", "total")
    .to("totals-window", key="visit_id")
)
