"""State of process functions as Parquet files that any tool can read and change.

One row for each key: `key`, `row`, `expires` and `timers`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import DataType, NullType, StringType, StructType

from headgate._kernel.bridge import CompiledFlow
from headgate._kernel.state import PortableProcess
from headgate.engine.portable.columns import Change, fit, fit_row
from headgate.engine.portable.files import PortableReader, fit_same, type_of
from headgate.engine.portable.process_form import TIMERS, ProcessForm
from headgate.engine.settings import HeldFiles

_NO_FIELDS = "struct<none: bigint>"


def taken_process(
    spark: SparkSession, held: HeldFiles, form: ProcessForm, flow: CompiledFlow, *, uid: str
) -> DataFrame:
    """Return state from Parquet files: the entries of all variables, in the kernel's format.

    Raises:
        HeadgateError: PORTABLE_UNREADABLE, PORTABLE_COLUMN or PORTABLE_ROW; every row is read once
            to check it.
    """
    process = PortableProcess.of_operator(spark, form.spec(), flow, uid)
    reader = PortableReader(spark, held.folder, uid)
    rows = reader.read(lambda rows, columns: _fitted(rows, columns, form))
    reader.check(process.check(rows))
    return process.pack(rows, now_ms=time.time_ns() // 1_000_000)


def _fitted(rows: DataFrame, columns: StructType, form: ProcessForm) -> DataFrame:
    there = {field.name: field.dataType for field in columns.fields}
    timers = fit(there.get("timers", NullType()), TIMERS, "timers")
    changes: dict[str, Change] = {
        "key": fit_same(there, "key", StringType(), to="string"),
        "row": _row(there, form),
        "expires": _expires(there, form),
        "timers": timers or (lambda it: it),
    }
    return rows.select(
        *(
            change(f.col(name) if name in there else f.lit(None)).alias(name)
            for name, change in changes.items()
        )
    )


def _row(there: Mapping[str, DataType], form: ProcessForm) -> Change:
    if form.row is None:
        return _nothing
    return fit_row(type_of(there, "row"), form.row)


def _expires(there: Mapping[str, DataType], form: ProcessForm) -> Change:
    if form.row is None or form.expires is None:
        return _nothing
    actual = there.get("expires", NullType())
    if isinstance(actual, StructType):
        # States that had a time to live when the savepoint was taken.
        old = {*form.row.names} - {*form.expires.names}
        actual = StructType([field for field in actual.fields if field.name not in old])
    return fit_row(actual, form.expires, path="expires")


def _nothing(_: Column) -> Column:
    return f.lit(None).cast(_NO_FIELDS)
