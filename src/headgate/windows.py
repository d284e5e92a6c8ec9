"""Windows of event time, their aggregates, and triggers of early results.

The names are short, and some shadow Python's own: import the ones you use, or the module.

    from headgate import windows

    stream.key_by("page").window("hits", windows.tumbling("15m")).aggregate(hits=windows.count())
"""

from headgate.flow.operators.aggregates import (
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
from headgate.flow.operators.windowing import (
    every_event_time,
    every_events,
    every_processing_time,
    session,
    sliding,
    tumbling,
)

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
