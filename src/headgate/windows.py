"""Windows of event time, what they find out, and when they tell it early.

The names are short, and some are Python's own: import those you use, or the module.

    from headgate import windows

    stream.key_by("page").window("hits", windows.tumbling("15m")).aggregate(hits=windows.count())
"""

from headgate.flow.aggregates import (
    approx_count_distinct,
    avg,
    collect,
    count,
    count_distinct,
    first,
    last,
    max,  # noqa: A004
    min,  # noqa: A004
    sum,  # noqa: A004
)
from headgate.flow.triggers import every_event_time, every_events, every_processing_time
from headgate.flow.windowing import session, sliding, tumbling

__all__ = [
    "approx_count_distinct",
    "avg",
    "collect",
    "count",
    "count_distinct",
    "every_event_time",
    "every_events",
    "every_processing_time",
    "first",
    "last",
    "max",
    "min",
    "session",
    "sliding",
    "sum",
    "tumbling",
]
