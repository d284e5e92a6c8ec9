"""State in Python: one key in the files of a checkpoint, rows as columns and back, safe SQL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.classic.column import Column as JavaColumn
from pyspark.sql.types import StructType

from headgate._kernel.bridge import CompiledFlow, kernel
from headgate._kernel.translate import SPARK_ERRORS, root_cause


@dataclass(frozen=True, slots=True)
class PortableTable:
    """A table's rows in state; plain columns are `key`, `deleted`, `lane`, `sequence`,
    `timestamp`, `position` and `row`."""

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


@dataclass(frozen=True, slots=True)
class PortableProcess:
    """All that a process function holds; plain columns are `key`, `row`, `expires` and `timers`.

    A struct without fields is left out where they are written.
    """

    _spark: SparkSession
    _form: Any

    @classmethod
    def of(cls, spark: SparkSession, spec: Mapping[str, Any]) -> PortableProcess:
        """Return the form of a state: its schemas and how each is kept."""
        return cls(spark, kernel(spark).process.PortableProcess.of(json.dumps(spec)))

    @classmethod
    def of_operator(
        cls, spark: SparkSession, spec: Mapping[str, Any], flow: CompiledFlow, uid: str
    ) -> PortableProcess:
        """Return the same of an operator in a flow, which knows the columns of the key."""
        form = kernel(spark).process.PortableProcess.of(json.dumps(spec), flow.plan, uid)
        return cls(spark, form)

    def unpack(self, held: DataFrame) -> DataFrame:
        """Return the entries of all variables, `key` and `value`, as plain columns."""
        return DataFrame(self._form.unpack(held._jdf), self._spark)

    def pack(self, rows: DataFrame, *, now_ms: int) -> DataFrame:
        """Return plain columns as entries, `key` and `value`.

        Args:
            now_ms: What expires, and has no time for it, does so as if it were written then.
        """
        return DataFrame(self._form.pack(rows._jdf, now_ms), self._spark)

    def check(self, rows: DataFrame) -> DataFrame:
        """Return the rows with their `key`, and in `problem` why a row is refused, or null."""
        return DataFrame(self._form.check(rows._jdf), self._spark)


def default_value(schema: Mapping[str, Any]) -> Column:
    """Return the default of the only column of a schema, which is in Spark's JSON."""
    spark = SparkSession.active()
    return JavaColumn(kernel(spark).plan.PortableState.constant(json.dumps(schema)))


@dataclass(frozen=True, slots=True)
class ReadableState:
    """The reader of one operator's state. Not thread-safe."""

    _spark: SparkSession
    _form: Any

    @classmethod
    def of_table(
        cls,
        spark: SparkSession,
        *,
        history: Sequence[Mapping[str, Any]],
        key: Sequence[str],
        copied: bool = False,
    ) -> ReadableState:
        """Return the form of a table's rows; rows of older schemas get the current one.

        Args:
            copied: True if each task has a copy of the table.
        """
        text = json.dumps({"history": list(history), "key": list(key)})
        return cls(spark, kernel(spark).state.ReadableState.table(text, copied))

    @classmethod
    def of_windows(cls, spark: SparkSession, flow: CompiledFlow, uid: str) -> ReadableState:
        """Return the form of a window operator's state."""
        return cls(spark, kernel(spark).state.ReadableState.windows(flow.plan, uid))

    @classmethod
    def of_seen(
        cls, spark: SparkSession, flow: CompiledFlow, uid: str, paths: Sequence[Sequence[str]]
    ) -> ReadableState:
        """Return the form of the keys that `dedupe` has seen."""
        ways = [list(path) for path in paths]
        return cls(spark, kernel(spark).state.ReadableState.seen(flow.plan, uid, ways))

    @classmethod
    def of_join(cls, spark: SparkSession, flow: CompiledFlow, uid: str) -> ReadableState:
        """Return the form of the rows that wait in a join; older rows get the current schema."""
        return cls(spark, kernel(spark).state.ReadableState.join(flow.plan, uid))

    @classmethod
    def of_process(cls, spark: SparkSession, flow: CompiledFlow, uid: str) -> ReadableState:
        """Return the form of a process function's state; older records get the current one."""
        return cls(spark, kernel(spark).state.ReadableState.process(flow.plan, uid))

    def key_columns(self) -> list[tuple[str, str]]:
        """Return the columns of the key, each with its type."""
        columns = StructType.fromJson(json.loads(self._form.keyColumns()))
        return [(field.name, field.dataType.simpleString()) for field in columns.fields]

    def key(self, text: str) -> bytes:
        """Return a key that the user typed as state stores it.

        Raises:
            ValueError: It does not fit the columns; the message says why.
        """
        try:
            return bytes(self._form.key(text))
        except SPARK_ERRORS as error:
            raise ValueError(root_cause(error)) from error

    def look_up(self, *, variable: str, key: bytes, scratch: Path) -> KeyLookup:
        """Return what finds a key in the files of state."""
        value = self._form.lookUp(self._spark._jsparkSession, variable, key, str(scratch))
        return KeyLookup(key, value)

    def describe(
        self, lookup: KeyLookup, operator: str, version: int, ids: Sequence[str], *, now_ms: int
    ) -> tuple[bool, Any]:
        """Return whether a key was deleted, and its value as JSON values; None without one.

        Args:
            operator: The place of the operator's state: a path, or an address.
            ids: The unique ids of the version, by partition.
            now_ms: Expired values are left out as of then, in epoch milliseconds.
        """
        place = (operator, version, list(ids))
        value = lookup.found.find(*place)
        if value is None:
            return False, None
        text = self._form.describe(lookup.key, value, lookup.found, *place, now_ms)
        return text is None, None if text is None else json.loads(text)

    def rows(self, held: DataFrame, *, now_ms: int) -> DataFrame:
        """Return state, `key` and `value`, as columns; deleted keys are skipped."""
        return DataFrame(self._form.rows(held._jdf, now_ms), self._spark)


@dataclass(frozen=True, slots=True)
class KeyLookup:
    """Finds one key of an operator in any number of versions; each file is read once."""

    key: bytes
    found: Any


def ask(spark: SparkSession, sql: str) -> DataFrame:
    """Return the result of one query; anything but a plain query is refused."""
    return DataFrame(kernel(spark).state.Question.ask(spark._jsparkSession, sql), spark)


def cancel_group(spark: SparkSession, group: str) -> None:
    """Cancel the jobs of a group, and those that it would start later."""
    # PySpark 4.3 has only the method that leaves later jobs alone.
    context: Any = spark.sparkContext
    context._jsc.sc().cancelJobGroupAndFutureJobs(group)


def as_json(rows: DataFrame) -> list[list[Any]]:
    """Return rows as JSON values, in the order of the columns."""
    columns = len(rows.columns)
    texts = DataFrame(kernel(rows.sparkSession).state.JsonRows.of(rows._jdf), rows.sparkSession)
    values = [json.loads(text["row"]) for text in texts.collect()]
    return [[row[str(place)] for place in range(columns)] for row in values]
