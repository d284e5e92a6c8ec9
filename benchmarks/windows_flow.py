"""Visits counted in windows of 15 minutes: with results every minute of event time, and without."""

from __future__ import annotations

from dataclasses import dataclass

from headgate import Flow
from headgate.windows import count, every_event_time, tumbling

EARLY_TOPIC = "counts-early"
FINALS_TOPIC = "counts-finals"


@dataclass
class Visit:
    """One look at a page; the time in epoch milliseconds."""

    event_id: str
    visit_id: str
    event_time: int
    page: str


early = Flow("visits-early")
visits = early.stream("visits", Visit, event_time="event_time", out_of_orderness="5m")
windows = visits.key_by("visit_id").window(
    "visits-15m", tumbling("15m"), early=every_event_time("1m")
)
windows.aggregate(visits=count()).updates.to(EARLY_TOPIC, key="visit_id")

finals = Flow("visits-finals")
visits = finals.stream("visits", Visit, event_time="event_time", out_of_orderness="5m")
windows = visits.key_by("visit_id").window("visits-15m", tumbling("15m"))
windows.aggregate(visits=count()).updates.to(FINALS_TOPIC, key="visit_id")
