"""Portable savepoints without Spark: what a folder is, what a restore does with it, which types."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
)
from stored_run import files_under, local, unpack

from headgate import Flow, Graph, HeadgateError
from headgate._clock import SystemClock
from headgate._codec import decode, encode
from headgate.connectors.logs import bind, parse_log
from headgate.engine.plan.spark_types import to_spark_json
from headgate.engine.portable.columns import Misfit, fit, fit_row, fit_version
from headgate.engine.settings import AttemptSettings, HeldFiles, HeldState, SparkSettings
from headgate.flow.schemas.schema import Primitive, schema_of
from headgate.jobs.attempts.wire import AttemptSpec
from headgate.jobs.checkpoints.portable import (
    list_portable,
    portable_folder,
    read_portable,
    state_folder,
    take_portable,
)
from headgate.jobs.checkpoints.restore import restore_run
from headgate.jobs.checkpoints.restore_plan import find_target, plan_restore
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import Run, find_run, new_run, write_run
from headgate.jobs.startup.opening import open_run
from headgate.jobs.startup.start import Start
from headgate.jobs.values import RunOptions

NOW = datetime(2026, 11, 15, 12, 30, 1, tzinfo=UTC)
POSITION = '{"format": 1, "topic": "t", "file": 1, "byte": 0}'
USER = "id BIGINT NOT NULL, name STRING NOT NULL"


def graph(user: str = USER, *uids: str) -> Graph:
    flow = Flow("shop")
    users = flow.table("users", user, key="id")
    rows = flow.stream("orders", "user BIGINT")
    for uid in uids or ("with-user",):
        rows = rows.enrich(uid, users, on="user", into=f"u{uid[-1]}").matched
    rows.to("out")
    return bind(flow.graph(), parse_log("files:topics"))


@pytest.fixture
def home(tmp_path: Path) -> JobFolder:
    return JobFolder(tmp_path / "home", "shop")


@pytest.fixture
def savepoint(tmp_path: Path) -> Path:
    """Give a portable savepoint as the product writes it, with one file of state."""
    flow = graph()
    folder = tmp_path / "taken"
    state_folder(folder, "with-user").mkdir(parents=True)
    (state_folder(folder, "with-user") / "000.parquet").write_bytes(b"rows")
    [users] = flow.tables()
    write(
        folder,
        {
            "format": 1,
            "job": "shop",
            "lineage": "old",
            "batch": 7,
            "completed_at": NOW.isoformat(),
            "parallelism": 2,
            "operators": ["with-user"],
            "rows": {"with-user": 1},
            "positions": {"orders": POSITION, "users": None, "gone": "{}"},
            "tables": {"users": users.schema.to_json()},
            "keys": {"users": ["id"]},
            "flow": json.loads(flow.to_json()),
        },
    )
    return folder


def write(folder: Path, content: Any) -> None:
    (folder / "portable.json").write_text(json.dumps(content))


def restored(home: JobFolder, folder: Path, flow: Graph, **options: Any) -> Run:
    kept = find_target(home, source=str(folder), at=None, now=NOW)
    chosen = RunOptions(**options)
    plan = plan_restore(home, flow, kept, chosen)
    assert not plan.as_it_was
    return restore_run(home, flow, plan, chosen, now=NOW)


def test_a_run_takes_a_copy_of_the_state_and_goes_on_at_the_positions(
    home: JobFolder, savepoint: Path
) -> None:
    run = restored(home, savepoint, graph(), parallelism=5)
    assert run.origin is not None
    assert run.origin.folder is not None
    assert (run.parallelism, run.origin.portable, run.origin.batch) == (5, True, 7)
    assert run.origin.positions == {"orders": POSITION}
    mine = state_folder(run.origin.folder, "with-user") / "000.parquet"
    theirs = state_folder(savepoint, "with-user") / "000.parquet"
    with theirs.open("r+b") as file:
        file.write(b"ROWS")
    assert mine.read_bytes() == b"rows"
    write_run(home, run)
    assert find_run(home, run.lineage) == run


def test_a_savepoint_in_the_jobs_folder_is_found_by_its_name(
    home: JobFolder, savepoint: Path
) -> None:
    portable_folder(home).mkdir(parents=True)
    savepoint.rename(portable_folder(home) / "portable-1")
    (portable_folder(home) / "notes").mkdir()
    found = find_target(home, source="portable-1", at=None, now=NOW)
    assert (found.id, found.batch, found.completed_at) == ("portable-1", 7, NOW)
    assert list_portable(home) == [found]


def test_a_restore_keeps_to_the_rules_of_every_restore(home: JobFolder, savepoint: Path) -> None:
    with pytest.raises(HeadgateError) as gone:
        restored(home, savepoint, graph(USER, "renamed-1"))
    assert (gone.value.code, "--drop-state with-user" in gone.value.hint) == (
        "RESTORE_UNKNOWN_OPERATOR",
        True,
    )
    dropped = restored(home, savepoint, graph(USER, "renamed-1"), drop_state=("with-user",))
    assert dropped.origin is not None
    assert dropped.origin.operators == {}
    with pytest.raises(HeadgateError) as changed:
        restored(home, savepoint, graph("id BIGINT NOT NULL"))
    assert changed.value.code == "SCHEMA_CHANGED"
    wider = restored(home, savepoint, graph(f"{USER}, mail STRING", "first-1", "with-user"))
    assert [len(each.fields) for each in wider.history["users"]] == [2, 3]
    assert wider.origin is not None
    assert set(wider.origin.operators) == {"with-user"}


def test_state_that_is_dropped_for_a_renamed_operator_is_warned_of(
    home: JobFolder, savepoint: Path
) -> None:
    renamed = graph(USER, "renamed-1")
    options = RunOptions(
        restore_from=str(savepoint), drop_state=("with-user",), home=home.root, on="files:topics"
    )
    with home.locked():
        run, notice = open_run(Start(home, renamed, options, SystemClock()))
    assert notice == (
        "operator 'renamed-1' starts empty, and the state of 'with-user' is dropped, which holds "
        "rows of table 'users' as well: rows of table 'users' that were read before are not read "
        "again, so their events are 'missing' until the rows change; if 'with-user' was renamed, "
        "keep that uid in the flow and omit --drop-state"
    )
    event = json.loads((home.path / "events.jsonl").read_text().splitlines()[-1])
    assert (event["event"], event["lineage"]) == ("RESTORED", run.lineage)
    assert event["restore"]["warnings"] == [notice]


def test_a_restore_that_drops_nothing_or_leaves_no_operator_empty_warns_of_nothing(
    home: JobFolder, savepoint: Path
) -> None:
    kept = find_target(home, source=str(savepoint), at=None, now=NOW)
    added = plan_restore(home, graph(USER, "with-user", "added-1"), kept, RunOptions())
    assert (added.starts_empty, added.warnings) == (("added-1",), ())
    dropped = plan_restore(home, graph(), kept, RunOptions(drop_state=("with-user",)))
    assert dropped.warnings[0].startswith(
        "operator 'with-user' starts empty, since its state is dropped: rows of table 'users'"
    )


def test_an_operator_without_its_folder_is_refused(home: JobFolder, savepoint: Path) -> None:
    state_folder(savepoint, "with-user").rename(savepoint / "elsewhere")
    with pytest.raises(HeadgateError) as caught:
        restored(home, savepoint, graph())
    assert caught.value.code == "PORTABLE_UNREADABLE"
    assert "state/with-user" in caught.value.message
    assert "--drop-state with-user" in caught.value.hint


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2},
        {"batch": None},
        {"operators": ["../../etc"]},
        {"positions": []},
        {"completed_at": "soon"},
    ],
    ids=str,
)
def test_a_damaged_portable_json_is_refused(savepoint: Path, changes: dict[str, Any]) -> None:
    write(savepoint, {**json.loads((savepoint / "portable.json").read_text()), **changes})
    with pytest.raises(HeadgateError) as caught:
        read_portable(savepoint)
    assert caught.value.code == "PORTABLE_UNREADABLE"
    (savepoint / "portable.json").write_text("{")
    with pytest.raises(HeadgateError) as cut:
        read_portable(savepoint)
    assert cut.value.code == "PORTABLE_UNREADABLE"


def test_a_job_without_a_batch_has_no_savepoint(home: JobFolder, tmp_path: Path) -> None:
    with pytest.raises(HeadgateError) as caught:
        take_portable(home, to=tmp_path / "to")
    assert caught.value.code == "NOTHING_COMMITTED"


def test_a_reader_that_dies_leaves_nothing_behind(
    home: JobFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = unpack(tmp_path / "stored")
    flow = graph(USER, "with-user", "with-item")
    run = new_run(home, flow, parallelism=2, checkpoints=tmp_path / "far", now=NOW)
    run.checkpoint.parent.mkdir(parents=True)
    checkpoint.rename(local(run.checkpoint))
    write_run(home, run)
    home.write_job(run.lineage, flow="flow.py", options={})
    before = files_under(local(run.checkpoint).parent)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(HeadgateError) as caught:
        take_portable(home, to=tmp_path / "to" / "there")
    assert caught.value.code == "SAVEPOINT_NOT_TAKEN", caught.value
    assert files_under(local(run.checkpoint).parent) == before
    assert list((tmp_path / "to").iterdir()) == []


def test_files_of_state_reach_the_child_as_they_were_given(tmp_path: Path) -> None:
    settings = AttemptSettings(
        job="shop",
        lineage="new",
        checkpoint=tmp_path / "checkpoint",
        spark=SparkSettings(parallelism=2, log_file=tmp_path / "spark.log"),
        held={"a": HeldFiles(tmp_path / "a"), "b": HeldState(tmp_path / "b", 1, 7)},
    )
    spec = AttemptSpec(graph(), settings, tmp_path)
    assert decode(AttemptSpec, json.loads(json.dumps(encode(spec)))) == spec


def spark_type(text: str) -> DataType:
    """Return a type as Spark finds it in a file; what a table cannot have is spelled out."""
    if text in ODD:
        return ODD[text]
    return StructType.fromJson(to_spark_json(schema_of(f"it {text}"))).fields[0].dataType


def never(_: str) -> Any:
    raise AssertionError("nothing is computed before Spark is there")


ODD = {
    "TIMESTAMP_NTZ": TimestampNTZType(),
    "MAP<INT, INT>": MapType(IntegerType(), IntegerType()),
}
TAKEN = [
    ("BIGINT", "BIGINT"),
    ("BIGINT", "INT"),
    ("INT", "DOUBLE"),
    ("INT", "DECIMAL(10,2)"),
    ("DOUBLE", "FLOAT"),
    ("DECIMAL(5,1)", "DECIMAL(10,2)"),
    ("TIMESTAMP_NTZ", "TIMESTAMP"),
    ("ARRAY<BIGINT>", "ARRAY<INT>"),
    ("MAP<STRING, BIGINT>", "MAP<STRING, INT>"),
    ("STRUCT<b: INT, a: BIGINT>", "STRUCT<a: INT, b: INT, c: STRING>"),
]
LEFT = [
    ("STRING", "BIGINT", "it"),
    ("BIGINT", "STRING", "it"),
    ("DOUBLE", "BIGINT", "it"),
    ("DECIMAL(10,4)", "DECIMAL(10,2)", "it"),
    ("DATE", "TIMESTAMP", "it"),
    ("BINARY", "STRING", "it"),
    ("BOOLEAN", "INT", "it"),
    ("ARRAY<STRING>", "ARRAY<INT>", "it[]"),
    ("MAP<INT, INT>", "MAP<STRING, INT>", "it"),
    ("STRUCT<x: INT>", "MAP<STRING, INT>", "it"),
    ("STRUCT<a: STRING>", "STRUCT<a: INT>", "it.a"),
    ("STRUCT<a: INT, d: INT>", "STRUCT<a: INT>", "it.d"),
    ("STRUCT<a: INT>", "STRUCT<a: INT, b: INT NOT NULL>", "it.b"),
]


@pytest.mark.parametrize(("found", "wanted"), TAKEN)
def test_a_type_is_taken_where_no_value_is_lost(found: str, wanted: str) -> None:
    fit(spark_type(found), schema_of(f"it {wanted}").fields[0].type, "it")


@pytest.mark.parametrize(("found", "wanted", "column"), LEFT)
def test_any_other_type_is_refused_and_the_column_named(
    found: str, wanted: str, column: str
) -> None:
    with pytest.raises(Misfit) as caught:
        fit(spark_type(found), schema_of(f"it {wanted}").fields[0].type, "it")
    assert caught.value.column == column
    assert caught.value.hint


def test_what_is_there_already_is_not_computed_again() -> None:
    assert fit(StringType(), Primitive("string"), "it") is None
    assert fit(ArrayType(StringType()), schema_of("it ARRAY<STRING>").fields[0].type, "it") is None
    texts = MapType(StringType(), StringType())
    assert fit(texts, schema_of("it MAP<STRING, STRING>").fields[0].type, "it") is None


def test_a_row_may_lack_what_may_be_null_and_nothing_else() -> None:
    schema = schema_of(f"{USER}, mail STRING")
    fit_row(spark_type("STRUCT<name: STRING, id: INT>"), schema, never)
    with pytest.raises(Misfit) as caught:
        fit_row(spark_type("STRUCT<id: INT, mail: STRING>"), schema, never)
    assert (caught.value.column, "missing" in caught.value.problem) == ("row.name", True)
    with pytest.raises(Misfit) as near:
        fit_row(spark_type("STRUCT<id: INT, nmae: STRING>"), schema, never)
    assert (near.value.column, near.value.hint) == ("row.nmae", "did you mean 'name'?")
    with pytest.raises(Misfit):
        fit_row(StringType(), schema, never)


def test_a_version_is_a_number() -> None:
    for found in ("INT", "BIGINT", "DOUBLE", "FLOAT"):
        fit_version(spark_type(found), "sequence", to="bigint")
    with pytest.raises(Misfit) as caught:
        fit_version(StringType(), "sequence", to="bigint")
    assert caught.value.column == "sequence"
