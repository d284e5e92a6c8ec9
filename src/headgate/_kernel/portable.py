"""The rows of a table in state as plain columns, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.classic.column import Column as JavaColumn

from headgate._kernel.bridge import kernel

# Spark's errors for data that it cannot read or compute.
SPARK_ERRORS = (PySparkException, Py4JJavaError)


@dataclass(frozen=True, slots=True)
class PortableTable:
    """A table's rows in state; plain columns are `key`, `deleted`, `lane`, `sequence`,
    `timestamp` and `row`."""

    _spark: SparkSession
    _state: Any

    @classmethod
    def of(
        cls, spark: SparkSession, *, history: Sequence[Mapping[str, Any]], key: Sequence[str]
    ) -> PortableTable:
        """Return the form of a table's rows.

        Args:
            history: Every schema the table has had, in Spark's JSON; the last is the current one.
            key: The key columns.
        """
        text = json.dumps({"history": list(history), "key": list(key)})
        return cls(spark, kernel(spark).plan.PortableState.of(text))

    def unpack(self, held: DataFrame) -> DataFrame:
        """Return state, `key` and `value`, as plain columns of the current schema."""
        return DataFrame(self._state.unpack(held._jdf), self._spark)

    def pack(self, rows: DataFrame) -> DataFrame:
        """Return plain columns of exactly the current schema as state, `key` and `value`."""
        return DataFrame(self._state.pack(rows._jdf), self._spark)

    def check(self, rows: DataFrame) -> DataFrame:
        """Return the rows with their `key`, and in `problem` why a row is refused, or null."""
        return DataFrame(self._state.check(rows._jdf), self._spark)

    def default(self, column: str) -> Column:
        """Return the value of a column in a row that lacks it."""
        return JavaColumn(self._state.defaultOf(column))


def root_cause(error: BaseException) -> str:
    """Return the first line of the innermost cause of one of Spark's errors."""
    if isinstance(error, Py4JJavaError):
        thrown = error.java_exception
        while thrown.getCause() is not None:
            thrown = thrown.getCause()
        text = str(thrown.getMessage() or thrown.toString())
    else:
        text = str(error)
    return text.strip().partition("\n")[0]
