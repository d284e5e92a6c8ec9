"""Broadcasts in whole jobs: every task has all rules, after restarts and at any parallelism."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, bag, refused
from broadcast_flow import END, JOB, Model, Order, broadcasts, changes, orders
from eventually import eventually
from test_killed_processes import last_commit

from headgate import Flow
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.state.client import StateDesk
from headgate.testing import CrashAt, run_flow

ROUNDS: list[dict[str, Any]] = [
    {"parallelism": 2, "check_determinism": True},
    {"parallelism": 3, "restore_from": "savepoint"},
    {},
    {"parallelism": 5, "restore_from": "latest"},
    {"parallelism": 1, "restore_from": "savepoint", "drain": True},
]


def put(bench: Bench, rules: Sequence[dict[str, Any]], events: Sequence[Order]) -> None:
    if rules:
        bench.put("rules", rules)
    if events:
        bench.put("orders", [asdict(event) for event in events])


def check(bench: Bench, model: Model) -> None:
    for output, rows in model.out.items():
        assert bench.bag(output) == bag(rows), output
    assert [letter["code"] for letter in bench.read("dead-letters")] == ["BAD_RULE"] * model.bad


def test_every_task_has_all_rules_at_any_parallelism(bench: Bench, seed: int) -> None:
    draw, model, home = random.Random(seed), Model(), FolderHome(bench.home)
    past: tuple[dict[int, Any], Counter[int]] = ({}, Counter())
    saved = ""
    for number, options in enumerate(ROUNDS):
        if options.get("restore_from") == "savepoint":
            options = {**options, "restore_from": saved}
        # One round has only events, one only rules.
        rules = changes(draw, 0 if number == 1 else 25)
        events = orders(draw, 100 * number, 0 if number == 2 else 60)
        put(bench, rules, events)
        bench.run(broadcasts(), **options)
        model.round(rules, events)
        if number == 0:
            past = dict(model.rules.rows), Counter(event.user for event in events)
        if number == 1:
            with closing(StateDesk(bench.home)) as desk:
                check_state(bench, desk, model)
                check_past(desk, saved, *past)
            with refused("SAVEPOINT_NOT_TAKEN") as caught:
                home.take_portable_savepoint(JOB)
            assert "process 'counts'" in caught.value.message
        if number in {0, 3}:
            saved = home.take_savepoint(JOB).name
    # Batches without records fire the timers.
    model.fire(END)
    check(bench, model)
    assert model.bad
    assert any(row["n"] == -1 and row["rules"] for row in model.out["counted"])


def check_state(bench: Bench, desk: StateDesk, model: Model) -> None:
    """Compare what is read of state with the rules: each is there once."""
    rows = desk.query(JOB, "SELECT id, label FROM marks", limit=100).rows
    rules = model.rules.rows
    assert sorted((row[0], row[1]) for row in rows) == sorted(
        (key, rule["label"]) for key, rule in rules.items()
    )
    told = desk.query(JOB, "SELECT id FROM counts_broadcast ORDER BY id", limit=100).rows
    assert [row[0] for row in told] == sorted(rules)
    key = next(iter(rules))
    assert desk.look_up(JOB, "marks", str(key)).value == rules[key]
    assert desk.look_up(JOB, "marks", "99").value is None
    kinds = {each.uid: each.kind for each in FolderHome(bench.home).operators(JOB).operators}
    assert kinds == {"marks": "label", "counts": "process", "tells": "process"}


def check_past(desk: StateDesk, saved: str, rules: dict[int, Any], users: Counter[int]) -> None:
    """Compare what a savepoint has of rules and of a process with what there was then."""
    for key in (0, 7, 14):
        assert desk.look_up(JOB, "marks", str(key), at=saved).value == rules.get(key)
    user = next(iter(users))
    found: Any = desk.look_up(JOB, "counts", str(user), at=saved).value
    assert found["total"] == users[user]
    told = desk.query(JOB, "SELECT id, label FROM counts_broadcast", at=saved, limit=100).rows
    assert sorted((row[0], row[1]) for row in told) == sorted(
        (key, rule["label"]) for key, rule in rules.items()
    )


@pytest.mark.long
def test_a_portable_savepoint_has_the_rules_once(bench: Bench) -> None:
    flow = Flow(JOB)
    rules = flow.broadcast("rules", "id INT NOT NULL, when STRING, label STRING", key="id")
    flow.stream("orders", "n INT").label("marks", rules).out.to("marked")
    bench.put("rules", [{"id": i, "when": f"n > {i}", "label": f"over {i}"} for i in range(20)])
    bench.run(flow, parallelism=4)
    saved = FolderHome(bench.home).take_portable_savepoint(JOB)
    assert saved.rows == {"marks": 20}
    bench.put("orders", [{"n": n} for n in range(20)])
    bench.run(flow, parallelism=3, restore_from=saved.name)
    assert bench.bag("marked") == bag(
        {"n": n, "labels": [f"over {i}" for i in range(n)]} for n in range(20)
    )


def test_a_crashed_batch_gives_the_same_rows_again() -> None:
    draw = random.Random(5)
    inputs = {
        "rules": changes(draw, 30),
        "orders": [asdict(event) for event in orders(draw, 0, 60)],
    }
    plain = run_flow(broadcasts(), inputs, batches=3)
    assert run_flow(broadcasts(), inputs, batches=3, faults=[CrashAt(2), CrashAt(3)]) == plain
    model = Model()
    model.round(inputs["rules"], [Order(**row) for row in inputs["orders"]])
    model.fire(END)
    assert {name: bag(plain[name]) for name in model.out} == {
        name: bag(rows) for name, rows in model.out.items()
    }


@pytest.mark.long
def test_killed_jobs_keep_their_rules(bench: Bench, seed: int) -> None:
    draw, model = random.Random(seed), Model()
    file = bench.flow_file(broadcasts())
    rules = changes(draw, 200)
    bench.put("rules", rules)
    bench.run(file, parallelism=2)
    model.round(rules, [])
    # Rules stay as they are from here, so that it does not matter where batches end.
    events = orders(draw, 0, 3000)
    for begin in range(0, 3000, 50):
        bench.put("orders", [asdict(event) for event in events[begin : begin + 50]])
    model.round([], events)
    for _ in range(10):
        process = after_a_batch(bench, file, draw)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=120)
    # A restore repeats what came after its checkpoint; a graceful stop keeps the last batch as one.
    process = after_a_batch(bench, file, draw)
    process.terminate()
    assert "STOPPED" in process.communicate(timeout=120)[0]
    bench.run(file, parallelism=3, restore_from="latest", max_batch=20_000)
    bench.run(file, drain=True)
    model.fire(END)
    check(bench, model)


def after_a_batch(bench: Bench, file: Path, draw: random.Random) -> subprocess.Popen[str]:
    """Return a job that has committed a batch or two; its process is killed if it does not."""
    wanted = last_commit(bench, JOB) + draw.randint(1, 2)
    process = bench.spawn(file, max_batch=6000)
    try:
        eventually(
            lambda: last_commit(bench, JOB) >= wanted, every=0.01, what="a batch", alive=process
        )
    except BaseException:
        process.kill()
        raise
    return process
