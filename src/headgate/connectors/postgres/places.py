"""The rows of a table as records, for the views of a job's outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from headgate.connectors.contract.places import PlacedRecord, Send, Spot, Stretch
from headgate.connectors.postgres.descriptor import PostgresLog
from headgate.errors import HeadgateError


@dataclass(frozen=True, slots=True)
class PostgresPlaces:
    """One table; its rows have no place that lasts."""

    log: PostgresLog
    schema: str
    table: str

    def last(self, count: int) -> list[PlacedRecord]:
        """Return the rows whose last change is newest."""
        return list(self._rows(count))

    def stretches(self, at_most: int | None = None) -> list[Stretch]:  # noqa: ARG002
        return [Stretch(self.table, 0, None, 0)]

    def read(self, stretch: Stretch) -> Iterator[PlacedRecord]:  # noqa: ARG002
        return self._rows(None)

    def find(self, places: Collection[str]) -> dict[str, PlacedRecord]:  # noqa: ARG002
        return {}

    def find_spots(self, spots: Collection[Spot]) -> dict[Spot, PlacedRecord]:  # noqa: ARG002
        return {}

    def sending(self) -> AbstractContextManager[Send]:
        raise HeadgateError(
            "LOG_UNSUPPORTED",
            f"cannot append records to table {self.schema}.{self.table}: it has rows",
            hint="INSERT INTO … with any client of PostgreSQL",
        )

    def _rows(self, count: int | None) -> Iterator[PlacedRecord]:
        from headgate.connectors.postgres.tables import read_last

        for number, row in enumerate(read_last(self.log, self.schema, self.table, count)):
            yield PlacedRecord(place=f"0:{number}", partition=0, timestamp=-1, key=None, value=row)
