"""Jobs that go back with folders: the numbers of files come along, whichever way."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from typing import Any

from bench import Bench, bag
from folder_files import Row, encode, publish

from headgate import Files, Flow, Folder
from headgate.jobs.checkpoints.portable import take_portable
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.values import JobSnapshot

JOB = "store"


def store(bench: Bench, *, extra: bool = False) -> Flow:
    """Return a flow of orders and users in folders; another operator makes its state move."""
    flow = Flow(JOB, dead_letters=Files("dead-letters", dir=bench.topics / "dead-letters"))
    users = flow.table(
        Folder(bench.root / "users", format="parquet"), "id BIGINT NOT NULL, name STRING", key="id"
    )
    orders = flow.stream(Folder(bench.root / "orders"), "n BIGINT NOT NULL, user_id BIGINT")
    found = orders.enrich("with-user", users, on="user_id", into="user").matched
    if extra:
        found = found.enrich("with-friend", users, on="user_id", into="friend").matched
    found.select("n", "user.name AS name").to(Files("out", dir=bench.topics / "out"))
    return flow


def put_orders(bench: Bench, name: str, *ns: int) -> None:
    publish(
        bench.root / "orders" / f"{name}.jsonl",
        encode("json", [{"n": n, "user_id": 1} for n in ns]),
    )


def put_user(bench: Bench, file: str, *names: str) -> None:
    some: list[Row] = [{"id": 1, "name": name} for name in names]
    publish(bench.root / "users" / f"{file}.parquet", encode("parquet", some))


def run(bench: Bench, flow: Flow, **options: Any) -> JobSnapshot:
    done = bench.run(flow, checkpoint_every=timedelta(0), **options)
    assert done.state is JobState.FINISHED
    return done


def begin(bench: Bench) -> None:
    """Read three files of orders, in the order c, b, a, a checkpoint each."""
    put_user(bench, "a", "Ann")
    for number, name in enumerate("cba"):
        put_orders(bench, name, number)
        run(bench, store(bench))
    # A later row of a file is newer, and so is a later file, whatever its name is.
    put_user(bench, "A-later", "Eve", "Bea")


def row(n: int, name: str) -> Row:
    return {"n": n, "name": name}


def test_every_way_back_has_the_numbers_of_the_files(bench: Bench) -> None:
    begin(bench)
    first = [row(0, "Ann"), row(1, "Ann"), row(2, "Ann")]
    assert bench.bag("out") == bag(first)
    home = JobFolder(bench.home, JOB)
    portable = take_portable(home, to=bench.root / "portable").folder

    # As it was: what followed the checkpoint is read again, and nothing else.
    done = run(bench, store(bench), restore_from="chk-2")
    assert done.totals.inputs["orders"] == 1
    # The changes of the table that came since are in the same batch.
    assert bench.bag("out") == bag([*first, row(2, "Bea")])

    # With another operator, the state moves and sources go on by position alone.
    put_orders(bench, "0", 3)
    shutil.rmtree(bench.topics / "out")
    done = run(bench, store(bench, extra=True), restore_from="latest")
    assert done.totals.inputs["orders"] == 1
    assert bench.bag("out") == bag([])

    # From a portable savepoint, in another home.
    shutil.rmtree(bench.topics, ignore_errors=True)
    bench.home.rename(bench.root / "old-home")
    put_user(bench, "last", "Zoe", "Kim")
    done = run(bench, store(bench), restore_from=str(portable))
    assert done.totals.inputs["orders"] == 1
    assert bench.bag("out") == bag([row(3, "Kim")])
    pages = sorted((bench.home).rglob("sources/orders/ledger-v1-*.json"))
    paths = [each["path"] for page in pages for each in json.loads(page.read_text())["files"]]
    assert list(dict.fromkeys(paths)) == ["c.jsonl", "b.jsonl", "a.jsonl", "0.jsonl"]
