"""Folders of Parquet files that any tool may have written: how they are read and written."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import DataType, NullType, StructType

from headgate._kernel.translate import SPARK_ERRORS, root_cause
from headgate._locations import Location, url_of
from headgate.engine.portable.columns import Change, Misfit
from headgate.errors import HeadgateError


def write_files(spark: SparkSession, rows: DataFrame, into: Path) -> int:
    """Write rows as Parquet into a new folder; return the number of rows."""
    making = into.with_name(f".{into.name}")
    # Other tools no longer support Spark's own format of timestamps.
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    rows.write.mode("overwrite").parquet(url_of(making))
    into.mkdir(parents=True)
    # Plain names without Hadoop's checksums, which would not fit a replaced file.
    for number, file in enumerate(sorted(making.glob("part-*.parquet"))):
        file.rename(into / f"{number:03d}.parquet")
    shutil.rmtree(making)
    return spark.read.parquet(pattern(into)).count()


class PortableReader:
    """Reads the files of one operator, written by any tool, and reports their problems."""

    def __init__(self, spark: SparkSession, folder: Location, uid: str) -> None:
        self._spark = spark
        self._folder = folder
        self._uid = uid

    def read(self, fitted: Callable[[DataFrame, StructType], DataFrame]) -> DataFrame:
        """Return the rows of all files with the same columns.

        Args:
            fitted: Converts the rows of a file with these columns; may raise Misfit.
        """
        parts = []
        for columns, files in self._by_columns():
            rows = self._spark.read.schema(columns).parquet(*(pattern(file) for file in files))
            try:
                parts.append(fitted(rows, columns))
            except Misfit as misfit:
                raise HeadgateError(
                    "PORTABLE_COLUMN",
                    f"{self._cannot}: column {misfit.column!r} {misfit.problem}, "
                    f"in {files[0].name}",
                    hint=misfit.hint,
                ) from misfit
        return reduce(DataFrame.unionByName, parts)

    def check(self, checked: DataFrame, *also: Column) -> None:
        """Refuse invalid rows and duplicate keys.

        Args:
            checked: The `key` of each row, and in `problem` why it is refused, or null.
            also: Selected so that it is computed: Spark raises an error for a number that does not
                fit.
        """
        keys = checked.groupBy("key").agg(
            f.count(f.lit(1)).alias("times"),
            f.min("problem").alias("problem"),
            *also,
        )
        bad = keys.filter("problem IS NOT NULL OR times > 1")
        try:
            row = bad.orderBy(f.col("problem").isNull(), "key").first()
        except SPARK_ERRORS as error:
            raise HeadgateError(
                "PORTABLE_UNREADABLE",
                f"{self._cannot}: {root_cause(error)}",
                hint="write the files again",
                root_cause=root_cause(error),
            ) from error
        if row is None:
            return
        problem = row["problem"] or f"it occurs {row['times']} times"
        raise HeadgateError(
            "PORTABLE_ROW",
            f"{self._cannot}: {_called(row['key'])}: {problem}",
            hint="fix the row, then restore again",
        )

    def _by_columns(self) -> list[tuple[StructType, list[Location]]]:
        """Return the files by their columns: tools use different types."""
        files = sorted(
            (
                file
                for file in self._folder.rglob("*")
                if file.is_file() and not self._is_hidden(file)
            ),
            key=str,
        )
        if not files:
            raise HeadgateError(
                "PORTABLE_UNREADABLE",
                f"{self._cannot}: the folder has no files",
                hint="write a file without rows for an empty table, or add --drop-state "
                f"{self._uid}",
            )
        by_columns: dict[str, tuple[StructType, list[Location]]] = {}
        for file in files:
            columns = self._columns(file)
            by_columns.setdefault(columns.json(), (columns, []))[1].append(file)
        return list(by_columns.values())

    def _is_hidden(self, file: Location) -> bool:
        inside = str(file).removeprefix(str(self._folder))
        return any(part.startswith((".", "_")) for part in inside.split("/"))

    def _columns(self, file: Location) -> StructType:
        try:
            return self._spark.read.parquet(pattern(file)).schema
        except SPARK_ERRORS as error:
            raise HeadgateError(
                "PORTABLE_UNREADABLE",
                f"{self._cannot}: {file.name} is not a Parquet file: {root_cause(error)}",
                hint=f"write {file} again, or delete it",
                root_cause=root_cause(error),
            ) from error

    @property
    def _cannot(self) -> str:
        return f"cannot take the state of operator {self._uid!r} from {self._folder}"


def type_of(there: Mapping[str, DataType], column: str) -> DataType:
    """Return a column's type; a missing column holds nulls, and `row` must not be missing."""
    if column == "row" and column not in there:
        raise Misfit("row", "is missing", f"there are: {', '.join(there)}")
    return there.get(column, NullType())


def fit_same(there: Mapping[str, DataType], column: str, wanted: DataType, *, to: str) -> Change:
    """Return the conversion of a column that must have a type already, or hold nulls alone."""
    actual = type_of(there, column)
    if actual != wanted and not isinstance(actual, NullType):
        raise Misfit(
            column,
            f"must be {to.upper()}, got {actual.simpleString().upper()}",
            f"CAST it to {to.upper()}",
        )
    return lambda it: it.cast(to)


def _called(key: str | None) -> str:
    return "a row without a key" if key is None else f"the row of key {key!r}"


def pattern(file: Location) -> str:
    """Return a path escaped for a reader that expects a pattern."""
    return re.sub(r"([\\\[\]{}*?,])", r"\\\1", url_of(file))
