"""State as Parquet files that any tool can read and change, written and taken back.

One folder an operator; in its files `key`, `deleted`, `lane`, `sequence`, `timestamp` and `row`.
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

from headgate._kernel.portable import SPARK_ERRORS, PortableTable, root_cause
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
    """What the rows of an operator's table look like.

    Attributes:
        history: Every schema they have had; the last is the present one.
        key: The key columns.
    """

    history: tuple[Schema, ...]
    key: tuple[str, ...]

    @property
    def schema(self) -> Schema:
        """The present schema."""
        return self.history[-1]


def write_states(
    settings: SparkSettings,
    held: Mapping[str, tuple[HeldState, TableForm]],
    into: Path,
) -> dict[str, int]:
    """Write operators' state as Parquet and return how many rows each has, by uid.

    Args:
        held: By uid.
        into: Gets a folder for each uid.
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
    """Write state, `key` and `value`, as Parquet into a new folder; return how many rows it is."""
    rows = _table(spark, form).unpack(state)
    making = into.with_name(f".{into.name}")
    # Spark's own form of timestamps is one that other tools have given up.
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    rows.write.mode("overwrite").parquet(_address(making))
    into.mkdir(parents=True)
    # Plain names, and no checksums of Hadoop's: they would speak against a file that is replaced.
    for number, file in enumerate(sorted(making.glob("part-*.parquet"))):
        file.rename(into / f"{number:03d}.parquet")
    shutil.rmtree(making)
    return spark.read.parquet(_pattern(into)).count()


def taken_rows(spark: SparkSession, held: HeldFiles, form: TableForm, *, uid: str) -> DataFrame:
    """Return state out of Parquet files: `key` and `value`, in the kernel's own forms.

    Raises:
        HeadgateError: PORTABLE_UNREADABLE, PORTABLE_COLUMN or PORTABLE_ROW; every row is read
            once for that.
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
    """Reads the files of one operator, whoever wrote them, and names what is wrong with them."""

    def __init__(self, spark: SparkSession, folder: Path, uid: str) -> None:
        self._spark = spark
        self._folder = folder
        self._uid = uid

    def read(self, schema: Schema, table: PortableTable) -> DataFrame:
        """Return the rows of all files with exactly a table's columns."""
        parts = []
        for columns, files in self._by_columns():
            rows = self._spark.read.schema(columns).parquet(*(_pattern(each) for each in files))
            try:
                parts.append(_fitted(rows, columns, schema, table))
            except Misfit as misfit:
                raise HeadgateError(
                    "PORTABLE_COLUMN",
                    f"{self._cannot}: column {misfit.column!r} {misfit.found}, in {files[0].name}",
                    hint=misfit.hint,
                ) from misfit
        return reduce(DataFrame.unionByName, parts)

    def check(self, checked: DataFrame) -> None:
        """Refuse rows that cannot be taken, and keys that are there twice."""
        keys = checked.groupBy("key").agg(
            f.count(f.lit(1)).alias("times"),
            f.min("problem").alias("problem"),
            # Asked for so that it is computed: a number that does not fit is an error of Spark's.
            f.max(f.struct(*_VERSION)).alias("version"),
        )
        bad = keys.filter("problem IS NOT NULL OR times > 1")
        try:
            found = bad.orderBy(f.col("problem").isNull(), "key").first()
        except SPARK_ERRORS as error:
            raise HeadgateError(
                "PORTABLE_UNREADABLE",
                f"{self._cannot}: {root_cause(error)}",
                hint="write the files again",
                root_cause=root_cause(error),
            ) from error
        if found is None:
            return
        problem = found["problem"] or f"it is there {found['times']} times"
        raise HeadgateError(
            "PORTABLE_ROW",
            f"{self._cannot}: {_called(found['key'])}: {problem}",
            hint="mend the row, then restore again",
        )

    def _by_columns(self) -> list[tuple[StructType, list[Path]]]:
        """Return the files by the columns they have: tools do not agree on types."""
        files = sorted(
            file
            for file in self._folder.rglob("*")
            if file.is_file() and not _is_hidden(file.relative_to(self._folder))
        )
        if not files:
            raise HeadgateError(
                "PORTABLE_UNREADABLE",
                f"{self._cannot}: there is no file",
                hint=f"write one without rows for an empty table, or add --drop-state {self._uid}",
            )
        found: dict[str, tuple[StructType, list[Path]]] = {}
        for file in files:
            columns = self._columns(file)
            found.setdefault(columns.json(), (columns, []))[1].append(file)
        return list(found.values())

    def _columns(self, file: Path) -> StructType:
        try:
            return self._spark.read.parquet(_pattern(file)).schema
        except SPARK_ERRORS as error:
            raise HeadgateError(
                "PORTABLE_UNREADABLE",
                f"{self._cannot}: {file.name} is no Parquet file: {root_cause(error)}",
                hint=f"write {file} again, or remove it",
                root_cause=root_cause(error),
            ) from error

    @property
    def _cannot(self) -> str:
        return f"cannot take the state of operator {self._uid!r} from {self._folder}"


def _fitted(
    rows: DataFrame, columns: StructType, schema: Schema, table: PortableTable
) -> DataFrame:
    there = {each.name: each.dataType for each in columns.fields}
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
    """Return a column's type; one that is missing holds nulls."""
    if column == "row" and column not in there:
        raise Misfit("row", "is missing", f"there are: {', '.join(there)}")
    return there.get(column, NullType())


def _same(there: Mapping[str, DataType], column: str, wanted: DataType, *, to: str) -> Change:
    found = _type(there, column)
    if found != wanted and not isinstance(found, NullType):
        raise Misfit(
            column,
            f"is {found.simpleString().upper()}, and {to.upper()} is needed",
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
    """Return a path for a reader, which takes it for a pattern."""
    return re.sub(r"([\\\[\]{}*?,])", r"\\\1", _address(file))
