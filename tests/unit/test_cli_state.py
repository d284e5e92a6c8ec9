"""The verb on state as far as it needs no reader: the list of operators, and what is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cli_runs import run
from stored_run import LAST, NOON, facts, local, unpack
from typer.testing import Result

from headgate import Flow
from headgate._codec import encode
from headgate.checkpoints.catalog import keep
from headgate.checkpoints.manifest import StateFacts
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import new_run, write_run
from headgate.jobs.values import RunOptions


def shop() -> Flow:
    flow = Flow("shop")
    users = flow.table("users", "id BIGINT NOT NULL, name STRING", key="id")
    items = flow.table("items", "shop STRING NOT NULL, n INT NOT NULL", key=["shop", "n"])
    orders = flow.stream("orders", "user BIGINT, shop STRING, item INT")
    found = orders.enrich("with-user", users, on="user", into="u")
    found.matched.enrich("with-item", items, on=["shop", "item"], into="i").matched.to("out")
    return flow


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobFolder:
    """Give a job that has stopped, with one kept checkpoint."""
    monkeypatch.chdir(tmp_path)
    home = JobFolder(Path(".headgate"), "shop")
    graph = shop().graph()
    now = datetime(2026, 11, 15, tzinfo=UTC)
    run = new_run(home, graph, parallelism=2, checkpoints=None, now=now)
    write_run(home, run)
    home.write_job(run.lineage, flow="flow.py", options=encode(RunOptions()))
    home.write_status(
        {
            "state": "STOPPED",
            "lineage": run.lineage,
            "state_rows": {"with-user": 1200, "with-item": 7},
            "state_bytes": {"with-user": 2048, "with-item": 1024},
        }
    )
    run.checkpoint.parent.mkdir(parents=True, exist_ok=True)
    unpack(local(run.checkpoint).parent)
    # The stored run has a manifest of its own.
    write_run(home, run)
    told = facts(
        lineage=run.lineage,
        completed_at=NOON,
        state={"with-user": StateFacts(3, 10)},
        tables={
            table: [each.to_json() for each in schemas] for table, schemas in run.history.items()
        },
        keys={table: list(key) for table, key in run.keys.items()},
        flow=json.loads(graph.to_json()),
    )
    keep(run.checkpoint, LAST - 1, home.checkpoints_folder(run.lineage), told)
    return home


def told(result: Result) -> tuple[int, str, str]:
    error = json.loads(result.stderr) if result.exit_code else {}
    return result.exit_code, error.get("code", ""), error.get("message", "")


def test_state_lists_operators_with_their_keys_and_sizes(home: JobFolder) -> None:
    lines = run("state", "shop").stdout.splitlines()
    assert [" ".join(line.split()) for line in lines[1:3]] == [
        "with-user enrich table id BIGINT 1,200 2KiB",
        "with-item enrich table shop STRING, n INT 7 1KiB",
    ]
    now = json.loads(run("state", "shop", "--json").stdout)
    assert (now["checkpoint"], now["batch"]) == ("now", LAST)
    assert now["operators"][1]["keys"] == ["shop", "n"]


def test_state_of_a_checkpoint_is_what_that_checkpoint_says(home: JobFolder) -> None:
    old = json.loads(run("state", "shop", "--at", f"chk-{LAST - 1}", "--json").stdout)
    assert (old["checkpoint"], old["batch"]) == (f"chk-{LAST - 1}", LAST - 1)
    assert [each["rows"] for each in old["operators"]] == [3, 0]
    assert json.loads(run("state", "shop", "--at", "latest", "--json").stdout) == old


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--key", "1"], "name the operator"),
        (["--rows", "5"], "name the operator"),
        (["with-user", "--history"], "--key"),
        (["with-user", "--key", "1", "--history", "--at", "chk-1"], "--at"),
        (["with-user", "--key", "1", "--rows", "5"], "--key"),
        (["with-user", "--key", "1", "--sql", "select 1"], "--key"),
    ],
)
def test_what_does_not_go_together_is_refused(home: JobFolder, words: list[str], part: str) -> None:
    code, kind, message = told(run("state", "shop", *words, "--json"))
    assert (code, kind) == (2, "BAD_USAGE")
    assert part in message


def test_what_is_not_there_is_named_before_any_reader_is_started(home: JobFolder) -> None:
    found = told(run("state", "shop", "with-usr", "--key", "1", "--json"))
    assert found[:2] == (2, "STATE_OPERATOR_NOT_FOUND")
    assert told(run("state", "shop", "with-user", "--key", "1", "--at", "chk-3", "--json"))[1] == (
        "CHECKPOINT_NOT_FOUND"
    )
    assert told(run("state", "none", "--json"))[1] == "JOB_NOT_FOUND"
    assert not (home.root / "state-reader").exists()


def test_a_job_that_has_committed_nothing_has_no_state_yet(home: JobFolder) -> None:
    home.forget_run()
    assert told(run("state", "shop", "--json"))[:2] == (2, "NOTHING_COMMITTED")
