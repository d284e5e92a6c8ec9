"""State as Parquet files that any tool can read and change.

One folder per operator; the files of a table have `key`, `deleted`, `lane`, `sequence`,
`timestamp`, `position` and `row`. For those of a process function see `portable_processes.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, BooleanType, StringType, StructType

from headgate._kernel.state import PortableProcess, PortableTable
from headgate.engine.plan.spark_types import to_spark_json
from headgate.engine.portable.columns import Change, fit_row, fit_version
from headgate.engine.portable.files import PortableReader, fit_same, type_of, write_files
from headgate.engine.portable.process_form import ProcessForm
from headgate.engine.session.session import open_session
from headgate.engine.session.stores import stores_of
from headgate.engine.settings import HeldFiles, HeldState, SparkSettings
from headgate.engine.state.view import held_rows
from headgate.flow.schemas.schema import Schema

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
    held: Mapping[str, tuple[HeldState, TableForm | ProcessForm]],
    into: Path,
) -> dict[str, int]:
    """Write the state of operators as Parquet, and return the number of rows by uid.

    Args:
        held: The state, by uid.
        into: Gets one folder per uid.
    """
    places = (state.checkpoint for state, _ in held.values())
    spark = open_session(settings, modules=stores_of(places))
    try:
        return {
            uid: write_rows(spark, held_rows(spark, state), form, into / uid)
            for uid, (state, form) in held.items()
        }
    finally:
        spark.stop()


def write_rows(
    spark: SparkSession, state: DataFrame, form: TableForm | ProcessForm, into: Path
) -> int:
    """Write state, `key` and `value`, as Parquet into a new folder; return the number of rows."""
    unpacked = (
        PortableProcess.of(spark, form.spec())
        if isinstance(form, ProcessForm)
        else _table(spark, form)
    ).unpack(state)
    return write_files(spark, unpacked, into)


def taken_rows(spark: SparkSession, held: HeldFiles, form: TableForm, *, uid: str) -> DataFrame:
    """Return state from Parquet files: `key` and `value`, in the kernel's format.

    Raises:
        HeadgateError: PORTABLE_UNREADABLE, PORTABLE_COLUMN or PORTABLE_ROW; every row is read once
            to check it.
    """
    table = _table(spark, form)
    reader = PortableReader(spark, held.folder, uid)
    rows = reader.read(lambda rows, columns: _fitted(rows, columns, form.schema, table))
    reader.check(table.check(rows), f.max(f.struct(*_VERSION)).alias("version"))
    return table.pack(rows)


def _table(spark: SparkSession, form: TableForm) -> PortableTable:
    history = [to_spark_json(schema) for schema in form.history]
    return PortableTable.of(spark, history=history, key=form.key)


def _fitted(
    rows: DataFrame, columns: StructType, schema: Schema, table: PortableTable
) -> DataFrame:
    there = {field.name: field.dataType for field in columns.fields}
    changes: dict[str, Change] = {
        "key": fit_same(there, "key", StringType(), to="string"),
        "deleted": fit_same(there, "deleted", BooleanType(), to="boolean"),
        **{name: fit_version(type_of(there, name), name, to=to) for name, to in _VERSION.items()},
        "position": fit_same(there, "position", BinaryType(), to="binary"),
        "row": fit_row(type_of(there, "row"), schema, table.default),
    }
    return rows.select(
        *(
            change(f.col(name) if name in there else f.lit(None)).alias(name)
            for name, change in changes.items()
        )
    )
