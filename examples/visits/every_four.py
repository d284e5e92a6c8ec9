"""Visits counted in windows of 15 minutes, with a first answer at every fourth event of a window.

Run it with: headgate run examples/visits/every_four.py
"""

from dataclasses import dataclass

from headgate import Flow
from headgate.windows import count, every_events, tumbling


@dataclass
class Visit:
    """A page that somebody looked at."""

    event_id: str
    visit_id: str
    event_time: int  # epoch milliseconds
    page: str


MOMENT = "yyyy-MM-dd'T'HH:mm:ss"
# Such as: >> VISIT -1- [2025-09-23T02:31:26.189411],
# range=[2025-09-04T10:00:00 to 2025-09-04T10:15:00], visits=10, partial=True
LINE = (
    "format_string('>> VISIT -%s- [%s], range=[%s to %s], visits=%d, partial=%s', visit_id, "
    f'date_format(processed_at, "{MOMENT}.SSSSSS"), '
    f'date_format(window_start, "{MOMENT}"), date_format(window_end, "{MOMENT}"), '
    "visits, initcap(CAST(partial AS STRING))) AS line"
)

flow = Flow("visits-every-four")
visits = flow.stream("visits", Visit, event_time="event_time", out_of_orderness="5m")
counted = (
    visits.key_by("visit_id")
    .window("visits-15m", tumbling("15m"), early=every_events(4))
    .aggregate(visits=count())
)
counted.updates.select(LINE).to("visits_counter_every_four", format="text")
counted.late.to("late-visits-every-four")
