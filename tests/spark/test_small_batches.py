"""What keeps small batches cheap does what Spark does in its place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from headgate._kernel.bridge import kernel

# Words and their ends, around the 64 bytes that a row has at first.
_lengths = st.sampled_from([0, 1, 7, 8, 9, 47, 48, 49, 63, 64, 65, 500])
_bytes = st.binary(max_size=80) | _lengths.map(lambda length: b"\xff" * length)


class Encoders:
    """The kernel's encoder of bytes, and Spark's.

    No dataclass: Hypothesis prints the fields of one, and cannot print objects of the JVM.
    """

    def __init__(self, ours: Any, theirs: Any) -> None:
        self.ours = ours
        self.theirs = theirs


@pytest.fixture(scope="module")
def encoders(spark: SparkSession) -> Encoders:
    """Give both encoders."""
    sql = spark._jvm.org.apache.spark.sql  # type: ignore[union-attr]
    package = getattr(sql.catalyst.encoders, "package$")
    return Encoders(
        ours=kernel(spark).rows.BytesEncoder.INSTANCE,
        theirs=getattr(package, "MODULE$").encoderFor(sql.Encoders.BINARY()),
    )


@given(values=st.lists(_bytes, min_size=1, max_size=4))
@example(values=[b"x" * 500, b"", b"y"])
def test_bytes_are_the_row_that_spark_writes(encoders: Encoders, values: list[bytes]) -> None:
    ours, theirs = encoders.ours.createSerializer(), encoders.theirs.createSerializer()
    for value in values:
        assert bytes(ours.apply(value).getBytes()) == bytes(theirs.apply(value).getBytes())


@given(value=_bytes)
def test_bytes_come_back_from_either_row(encoders: Encoders, value: bytes) -> None:
    for writer in (encoders.ours, encoders.theirs):
        row = writer.createSerializer().apply(value)
        assert bytes(_reader(encoders.ours).apply(row)) == value
        assert bytes(_reader(encoders.theirs).apply(row)) == value


def test_both_encoders_describe_the_same_column(encoders: Encoders) -> None:
    assert encoders.ours.schema().json() == encoders.theirs.schema().json()


def test_no_value_is_a_null_as_spark_writes_it(encoders: Encoders) -> None:
    ours, theirs = encoders.ours.createSerializer(), encoders.theirs.createSerializer()
    ours.apply(b"before")
    row = ours.apply(None)
    assert bytes(row.getBytes()) == bytes(theirs.apply(None).getBytes())
    assert _reader(encoders.ours).apply(row) is None


def test_hadoops_configuration_does_not_say_where_its_values_came_from(spark: SparkSession) -> None:
    # The first use of a file system has Hadoop read its defaults, and could have it read them anew.
    spark.read.text(__file__).count()
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    assert configuration.get("io.file.buffer.size")
    assert not configuration.getPropertySources("io.file.buffer.size")


def test_shuffles_within_a_process_take_no_checksums(spark: SparkSession) -> None:
    rows = spark.range(10).repartition(3)._jdf.queryExecution().toRdd()
    shuffle = rows.dependencies().head().rdd().dependencies().head()
    assert shuffle.partitioner().numPartitions() == 3
    assert not list(shuffle.rowBasedChecksums())


def _reader(encoder: Any) -> Any:
    columns = getattr(encoder, "resolveAndBind$default$1")()
    analyzer = getattr(encoder, "resolveAndBind$default$2")()
    return encoder.resolveAndBind(columns, analyzer).createDeserializer()
