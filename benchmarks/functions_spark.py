"""A running total with Spark's own Python `transformWithState`, as a user would write it.

Runs in a process of its own. Reads all that is in the topic batch by batch, stops, and writes
Spark's progress reports as JSON lines.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from windows_spark import await_all, open_session, read_visits, start

_ROW = "visit_id STRING, total BIGINT"


class RowTotals(StatefulProcessor):
    """Counts the events of each visit; takes and gives rows."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._total = handle.getValueState("total", "total BIGINT")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        """Give a row for each event."""
        held = self._total.get()
        total = 0 if held is None else held[0]
        for _ in rows:
            total += 1
            yield Row(visit_id=key[0], total=total)
        self._total.update((total,))

    def close(self) -> None:
        """Nothing is open."""


class PandasTotals(RowTotals):
    """The same; takes and gives data frames."""

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: ARG002, N802, N803
        """Give a row for each event."""
        import pandas

        held = self._total.get()
        total = 0 if held is None else held[0]
        for frame in rows:
            totals = range(total + 1, total + 1 + len(frame))
            total += len(frame)
            yield pandas.DataFrame({"visit_id": key[0], "total": totals})
        self._total.update((total,))


def main() -> None:
    """Count the visits."""
    wanted = _parse()
    spark = open_session(wanted.partitions, {"spark.sql.execution.arrow.pyspark.enabled": "true"})
    visits = read_visits(spark, wanted.servers, wanted.max_offsets, topic=wanted.visits).select(
        "visit.visit_id"
    )
    query = start(_rows(_totals(visits, wanted.form)), wanted, topic=wanted.topic)
    await_all(query, wanted.events)
    reports = [json.loads(report.json) for report in query.recentProgress]
    query.stop()
    wanted.reports.write_text("".join(f"{json.dumps(report)}\n" for report in reports))
    spark.stop()


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--form", choices=("row", "pandas"), required=True)
    parser.add_argument("--servers", required=True)
    parser.add_argument("--visits", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--max-offsets", type=int, required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--reports", type=Path, required=True)
    return parser.parse_args()


def _totals(visits: DataFrame, form: str) -> DataFrame:
    keyed = visits.groupBy("visit_id")
    if form == "row":
        return keyed.transformWithState(RowTotals(), _ROW, "update", "none")
    return keyed.transformWithStateInPandas(PandasTotals(), _ROW, "update", "none")


def _rows(totals: DataFrame) -> DataFrame:
    row = f.to_json(f.struct("visit_id", "total")).alias("value")
    return totals.select(f.col("visit_id").alias("key"), row)


if __name__ == "__main__":
    main()
