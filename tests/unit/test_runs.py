"""A run's manifest says what its state means, and a flow that does not fit it is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headgate import Flow, Graph, HeadgateError
from headgate.flow.schemas.schema import Field, Primitive, schema_of
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import Run, continue_run, find_run, new_run, write_run

NOW = datetime(2026, 11, 15, 12, 30, 1, tzinfo=UTC)
USER = "id BIGINT NOT NULL, name STRING NOT NULL"


def graph(
    user: Any = USER,
    *,
    uids: tuple[str, ...] = ("first", "second"),
    tables: tuple[str, ...] = ("users", "items"),
    key: str | tuple[str, ...] = "id",
) -> Graph:
    """Return a flow of two enrichments, the first with the table under test."""
    flow = Flow("orders")
    known = {
        tables[0]: flow.table(tables[0], user, key=key),
        tables[1]: flow.table(tables[1], "id BIGINT NOT NULL", key="id"),
    }
    stream = flow.stream("in", "a BIGINT, b STRING")
    on = "a" if isinstance(key, str) else ["a", "b"][: len(key)]
    one = stream.enrich(uids[0], known[tables[0]], on=on, into="u")
    two = one.matched.enrich(uids[1], known[tables[1]], on="a", into="i")
    two.matched.to("out")
    return flow.graph()


@pytest.fixture
def home(tmp_path: Path) -> JobFolder:
    return JobFolder(tmp_path, "orders")


def begin(home: JobFolder, flow: Graph, **options: Any) -> Run:
    chosen = {"parallelism": 2, "checkpoints": None, "now": NOW, **options}
    return new_run(home, flow, **chosen)


def test_a_run_is_named_by_its_time_and_no_two_are_the_same(home: JobFolder) -> None:
    runs = [begin(home, graph()) for _ in range(50)]
    assert all(run.lineage.startswith("20261115T123001-") for run in runs)
    assert len({run.lineage for run in runs}) == 50


def test_a_run_is_read_as_it_was_written(home: JobFolder) -> None:
    run = begin(home, graph())
    write_run(home, run)
    assert find_run(home, run.lineage) == run
    assert run.operators == ("first", "second")
    assert run.keys == {"users": ("id",), "items": ("id",)}
    assert find_run(home, "another") is None


def test_a_checkpoint_lies_in_the_runs_folder_or_where_it_was_asked_for(home: JobFolder) -> None:
    own = begin(home, graph())
    assert own.checkpoint == home.run_folder(own.lineage) / "checkpoint"
    other = begin(home, graph(), checkpoints=Path("/elsewhere"))
    assert other.checkpoint == Path("/elsewhere") / other.lineage / "checkpoint"
    write_run(home, other)
    assert find_run(home, other.lineage) == other


def test_a_run_is_found_again_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = begin(JobFolder(Path("jobs-home"), "orders"), graph())
    write_run(JobFolder(Path("jobs-home"), "orders"), run)
    monkeypatch.chdir("/")
    found = find_run(JobFolder(tmp_path / "jobs-home", "orders"), run.lineage)
    assert found is not None
    assert found.checkpoint == tmp_path / "jobs-home/jobs/orders/runs" / run.lineage / "checkpoint"


def test_the_same_flow_goes_on_unchanged(home: JobFolder) -> None:
    run = begin(home, graph())
    assert continue_run(run, graph(), job="orders") == run


def test_a_table_that_gains_columns_remembers_every_schema_it_had(home: JobFolder) -> None:
    wider = schema_of(USER).with_fields(Field("mail", Primitive("string"), True))
    widest = wider.with_fields(Field("level", Primitive("bigint"), False, 7))
    run = begin(home, graph())
    for schema in (wider, wider, widest):
        run = continue_run(run, graph(schema), job="orders")
    assert run.history["users"] == (schema_of(USER), wider, widest)
    assert run.history["items"] == (schema_of("id BIGINT NOT NULL"),)
    write_run(home, run)
    assert find_run(home, run.lineage) == run


@pytest.mark.parametrize(
    ("flow", "code", "told"),
    [
        (graph("id BIGINT NOT NULL"), "SCHEMA_CHANGED", "name was removed (STRING NOT NULL)"),
        (graph(f"{USER}, x INT NOT NULL"), "SCHEMA_CHANGED", "x was added (INT NOT NULL)"),
        (graph("id BIGINT, name STRING NOT NULL"), "SCHEMA_CHANGED", "id may be null now"),
        (graph(uids=("first", "third")), "STATE_INCOMPATIBLE", "first, second"),
        (graph(uids=("second", "first")), "STATE_INCOMPATIBLE", "second, first"),
        (graph(tables=("people", "items")), "STATE_INCOMPATIBLE", "'users'"),
        (graph(key=("id", "name")), "STATE_INCOMPATIBLE", "kept by id"),
    ],
)
def test_a_flow_that_its_state_does_not_fit_is_refused(
    home: JobFolder, flow: Graph, code: str, told: str
) -> None:
    run = begin(home, graph())
    with pytest.raises(HeadgateError) as caught:
        continue_run(run, flow, job="orders")
    assert caught.value.code == code
    assert told in caught.value.message
    assert "--fresh" in caught.value.hint
    assert not caught.value.retryable


def test_a_flow_without_state_may_change_as_it_likes(home: JobFolder) -> None:
    before, after = Flow("orders"), Flow("orders")
    before.stream("in", "a BIGINT").to("out")
    after.stream("in", "b STRING").where("b > 'x'").to("other")
    run = continue_run(begin(home, before.graph()), after.graph(), job="orders")
    assert run.flow == after.graph()


@pytest.mark.parametrize(
    ("begun", "committed", "since"), [((), (), 0), ((0, 1), (0, 1), 0), ((6, 7), (6,), 8)]
)
def test_a_batch_that_release_0_7_left_open_is_the_last_of_its_placement(
    home: JobFolder, begun: tuple[int, ...], committed: tuple[int, ...], since: int
) -> None:
    run = begin(home, graph())
    write_run(home, run)
    file = home.run_folder(run.lineage) / "run.json"
    content = json.loads(file.read_text())
    del content["placed_since"]
    file.write_text(json.dumps({**content, "format": 2}))
    for log, batches in (("offsets", begun), ("commits", committed)):
        (run.checkpoint / log).mkdir(parents=True)
        for batch in batches:
            (run.checkpoint / log / str(batch)).touch()
    old = find_run(home, run.lineage)
    assert old is not None
    assert old.placed_since is None
    known = continue_run(old, graph(), job="orders")
    assert known.placed_since == since
    write_run(home, known)
    # A batch of this release that is left open changes nothing any more.
    (run.checkpoint / "offsets" / "20").touch()
    again = find_run(home, run.lineage)
    assert again == known
    assert continue_run(again, graph(), job="orders").placed_since == since
