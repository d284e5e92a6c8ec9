"""State as Parquet files that any tool can read and change.

One folder per operator; its files have `key`, `deleted`, `lane`, `sequence`, `timestamp` and `row`.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import BooleanType, DataType, NullType, StringType, StructType

from headgate._kernel.state import PortableTable
from headgate._kernel.translate import SPARK_ERRORS, root_cause
from headgate.engine.portable_columns import Change, Misfit, fit_row, fit_version
from headgate.engine.session import open_session
from headgate.engine.settings import HeldFiles, HeldState, SparkSettings
from headgate.engine.spark_types import to_spark_json
from headgate.engine.state_view import held_rows
from headgate.errors import HeadgateError
from headgate.flow.schema import Schema

_VERSION = {"lane": "int", "sequence": "bigint", "timestamp": "bigint"}


@dataclass(frozen=True, slots=True)
class TableForm:
    """The form of a table's rows in state.

    Attributes:
        history: Every schema they have had; the last is the current one.
        key: The key columns.
    """

    history: tuple[Schema, ...]
    key: tuple[str, ...]

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.history[-1]


def write_states(
    settings: SparkSettings,
    held: Mapping[str, tuple[HeldState, TableForm]],
    into: Path,
) -> dict[str, int]:
    """Write the state of operators as Parquet, and return the number of rows by uid.

    Args:
        held: The state, by uid.
        into: Gets one folder per uid.
    """
    spark = open_session(settings)
    try:
        return {
            uid: write_rows(spark, held_rows(spark, state), form, into / uid)
            for uid, (state, form) in held.items()
        }
    finally:
        spark.stop()


def write_rows(spark: SparkSession, state: DataFrame, form: TableForm, into: Path) -> int:
    """Write state, `key` and `value`, as Parquet into a new folder; return the number of rows."""
    rows = _table(spark, form).unpack(state)
    making = into.with_name(f".{into.name}")
    # Other tools no longer support Spark's own format of timestamps.
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    rows.write.mode("overwrite").parquet(_address(making))
    into.mkdir(parents=True)
    # Plain names without Hadoop's checksums, which would not fit a replaced file.
    for number, file in enumerate(sorted(making.glob("part-*.parquet"))):
        file.rename(into / f"{number:03d}.parquet")
    shutil.rmtree(making)
    return spark.read.parquet(_pattern(into)).count()


def taken_rows(spark: SparkSession, held: HeldFiles, form: TableForm, *, uid: str) -> DataFrame:
    """Return state from Parquet files: `key` and `value`, in the kernel's format.

    Raises:
        HeadgateError: PORTABLE_UNREADABLE, PORTABLE_COLUMN or PORTABLE_ROW; every row is read once
            to check it.
    """
    table = _table(spark, form)
    reader = _Reader(spark, held.folder, uid)
    rows = reader.read(form.schema, table)
    reader.check(table.check(rows))
    return table.pack(rows)


def _table(spark: SparkSession, form: TableForm) -> PortableTable:
    history = [to_spark_json(schema) for schema in form.history]
    return PortableTable.of(spark, history=history, key=form.key)


class _Reader:
    """Reads the files of one operator, written by any tool, and reports their problems."""

    def __init__(self, spark: SparkSession, folder: Path, uid: str) -> None:
        self._spark = spark
        self._folder = folder
        self._uid = uid

    def read(self, schema: Schema, table: PortableTable) -> DataFrame:
        """Return the rows of all files with exactly a table's columns."""
        parts = []
        for columns, files in self._by_columns():
            rows = self._spark.read.schema(columns).parquet(*(_pattern(file) for file in files))
            try:
                parts.append(_fitted(rows, columns, schema, table))
            except Misfit as misfit:
                raise HeadgateError(
                    "PORTABLE_COLUMN",
                    f"{self._cannot}: column {misfit.column!r} {misfit.problem}, "
                    f"in {files[0].name}",
                    hint=misfit.hint,
                ) from misfit
        return reduce(DataFrame.unionByName, parts)

    def check(self, checked: DataFrame) -> None:
        """Refuse invalid rows and duplicate keys."""
        keys = checked.groupBy("key").agg(
            f.count(f.lit(1)).alias("times"),
            f.min("problem").alias("problem"),
            # Selected so that it is computed: Spark raises an error for a number that does not fit.
            f.max(f.struct(*_VERSION)).alias("version"),
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

    def _by_columns(self) -> list[tuple[StructType, list[Path]]]:
        """Return the files by their columns: tools use different types."""
        files = sorted(
            file
            for file in self._folder.rglob("*")
            if file.is_file() and not _is_hidden(file.relative_to(self._folder))
        )
        if not files:
            raise HeadgateError(
                "PORTABLE_UNREADABLE",
                f"{self._cannot}: the folder has no files",
                hint="write a file without rows for an empty table, or add --drop-state "
                f"{self._uid}",
            )
        by_columns: dict[str, tuple[StructType, list[Path]]] = {}
        for file in files:
            columns = self._columns(file)
            by_columns.setdefault(columns.json(), (columns, []))[1].append(file)
        return list(by_columns.values())

    def _columns(self, file: Path) -> StructType:
        try:
            return self._spark.read.parquet(_pattern(file)).schema
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


def _fitted(
    rows: DataFrame, columns: StructType, schema: Schema, table: PortableTable
) -> DataFrame:
    there = {field.name: field.dataType for field in columns.fields}
    changes: dict[str, Change] = {
        "key": _same(there, "key", StringType(), to="string"),
        "deleted": _same(there, "deleted", BooleanType(), to="boolean"),
        **{name: fit_version(_type(there, name), name, to=to) for name, to in _VERSION.items()},
        "row": fit_row(_type(there, "row"), schema, table.default),
    }
    return rows.select(
        *(
            change(f.col(name) if name in there else f.lit(None)).alias(name)
            for name, change in changes.items()
        )
    )


def _type(there: Mapping[str, DataType], column: str) -> DataType:
    """Return a column's type; a missing column holds nulls."""
    if column == "row" and column not in there:
        raise Misfit("row", "is missing", f"there are: {', '.join(there)}")
    return there.get(column, NullType())


def _same(there: Mapping[str, DataType], column: str, wanted: DataType, *, to: str) -> Change:
    actual = _type(there, column)
    if actual != wanted and not isinstance(actual, NullType):
        raise Misfit(
            column,
            f"must be {to.upper()}, got {actual.simpleString().upper()}",
            f"CAST it to {to.upper()}",
        )
    return lambda it: it.cast(to)


def _called(key: str | None) -> str:
    return "a row without a key" if key is None else f"the row of key {key!r}"


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _address(file: Path) -> str:
    return f"file:{file.absolute()}"


def _pattern(file: Path) -> str:
    """Return a path escaped for a reader that expects a pattern."""
    return re.sub(r"([\\\[\]{}*?,])", r"\\\1", _address(file))
