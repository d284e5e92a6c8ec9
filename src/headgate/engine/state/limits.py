"""The limits of one query on state: its time and the size of its answer."""

from __future__ import annotations

import threading
from datetime import timedelta

from pyspark.sql import SparkSession

from headgate._kernel.state import cancel_group
from headgate._kernel.translate import root_cause
from headgate._units import format_duration
from headgate.errors import HeadgateError

_TOO_LARGE = "STATE_ANSWER_TOO_LARGE"


class QueryLimits:
    """Cancels a query that takes too long."""

    def __init__(self, session: SparkSession, group: str, longest: timedelta) -> None:
        self._session = session
        self._group = group
        self._longest = longest
        self._timer = threading.Timer(longest.total_seconds(), self._end)
        self._ended = False

    def find_excess(self, error: BaseException) -> HeadgateError | None:
        """Return the error of a query that exceeded its time or its size; None for others."""
        if self._ended:
            return _too_long(self._longest)
        return _too_large() if _TOO_LARGE in root_cause(error) else None

    def __enter__(self) -> QueryLimits:
        context = self._session.sparkContext
        context.setJobGroup(self._group, "a question on state", interruptOnCancel=True)
        self._timer.daemon = True
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def _end(self) -> None:
        self._ended = True
        # A query that is being planned, or is between two jobs, has none to cancel.
        cancel_group(self._session, self._group)


def _too_long(longest: timedelta) -> HeadgateError:
    return HeadgateError(
        "STATE_SQL_TOO_LONG",
        f"cannot answer the query: it took longer than {format_duration(longest)}",
        hint="select less, or take a portable savepoint and query its files",
    )


def _too_large() -> HeadgateError:
    return HeadgateError(
        _TOO_LARGE,
        "cannot show state: the answer is larger than 16 MiB",
        hint="select fewer or shorter columns, or a smaller --rows",
    )
