"""Tables of PostgreSQL that a flow looks up: their first content, refreshes, and restarts."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, refused
from eventually import eventually
from postgres_server import Database, PostgresServer

from headgate import Flow

COLUMNS = "id BIGINT NOT NULL, name STRING, score DECIMAL(20,4), at TIMESTAMP, raw BINARY"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def looking_up(database: Database, **more: Any) -> Flow:
    """Return a flow that joins each event with the user of its id."""
    flow = Flow("users")
    users = flow.table(database.topic("users", **more), COLUMNS, key="id", uid="users")
    events = flow.stream("events", "id BIGINT NOT NULL, turn BIGINT NOT NULL", uid="events")
    joined = events.enrich("with-user", users, on="id", into="user")
    joined.matched.to("found")
    joined.missing.to("missing")
    return flow


def start(bench: Bench, flow: Path) -> subprocess.Popen[bytes]:
    """Start a job that runs until it is killed, in a process group of its own."""
    command = [sys.executable, "-m", "headgate", "run", str(flow), "--on", f"files:{bench.topics}"]
    command += ["--home", str(bench.home), "--batch-every", "100ms"]
    return subprocess.Popen([*command, "--restart", "fixed-delay:9,0s"], start_new_session=True)


def put_events(bench: Bench, turn: int, ids: range) -> None:
    bench.put("events", [{"id": n, "turn": turn} for n in ids])


def of_turn(bench: Bench, turn: int) -> list[Any]:
    """Return the rows that were made of a turn's events."""
    rows = [*bench.read("found"), *bench.read("missing")]
    return [row for row in rows if row["turn"] == turn]


def found(bench: Bench, turn: int) -> dict[int, str]:
    """Return the name of each user that the events of a turn have found."""
    rows = [row for row in bench.read("found") if row["turn"] == turn]
    assert len(rows) == len({row["id"] for row in rows})
    return {row["id"]: row["user"]["name"] for row in rows}


def change(database: Database, users: dict[int, str], moments: random.Random) -> None:
    """Insert, update and delete users, and the same in the model."""
    for _ in range(30):
        id_ = moments.randrange(200)
        match moments.choice(("put", "put", "drop")):
            case "put":
                name = f"n{moments.randrange(1000)}\n\t\"'\\é"
                database.run(
                    "INSERT INTO users VALUES (%s, %s, 1.5, now(), '') ON CONFLICT (id) DO UPDATE "
                    "SET name = EXCLUDED.name",
                    id_,
                    name,
                )
                users[id_] = name
            case _:
                database.run("DELETE FROM users WHERE id = %s", id_)
                users.pop(id_, None)


def test_refreshes_agree_with_a_model_over_kills_and_an_absent_server(
    bench: Bench, own_postgres: PostgresServer, seed: int
) -> None:
    moments, database = random.Random(seed), own_postgres.make_database()
    database.run(
        "CREATE TABLE users (id bigint PRIMARY KEY, name text, score numeric, at timestamptz, "
        "raw bytea, other int)"
    )
    users = {n: f"first {n}" for n in range(120)}
    database.fill("users", [(n, name, 1, None, b"\x00", 7) for n, name in users.items()])
    file = bench.flow_file(looking_up(database, refresh="500ms"))
    job = start(bench, file)
    turns = itertools.count()

    def agrees() -> bool:
        # What an event finds is as old as the last refresh: ask again until it is new enough.
        turn = next(turns)
        put_events(bench, turn, range(200))
        eventually(lambda: len(of_turn(bench, turn)) == 200)
        return found(bench, turn) == users

    try:
        eventually(lambda: bool(bench.read("found")) or agrees())
        for round_ in range(2):
            change(database, users, moments)
            eventually(agrees)
            if round_ == 0:
                # Without its database the job goes on, with the table as it is.
                own_postgres.kill()
                assert agrees()
                time.sleep(1)
                own_postgres.start()
                os.killpg(job.pid, signal.SIGKILL)
                job.wait()
                job = start(bench, file)
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    spools = list(bench.home.rglob("sources/users/*.refresh"))
    assert len(spools) >= 1, "refreshes are in the checkpoint"
    events = next(bench.home.rglob("events.jsonl")).read_text()
    assert "REFRESH_FAILED" in events


def test_a_query_is_read_once_and_types_arrive_as_they_are(
    bench: Bench, database: Database
) -> None:
    database.run("CREATE TABLE people (id bigint, name text, at timestamp, raw bytea, n numeric)")
    database.run(
        "INSERT INTO people VALUES (1, NULL, '2026-11-19 21:00:00.123456', '\\x00ff', "
        "1234567890123456.7891), (2, 'two', NULL, NULL, NULL), (2, 'again', NULL, NULL, NULL)"
    )
    query = "SELECT id, name, n AS score, at, raw FROM people"
    put_events(bench, 0, range(3))
    bench.run(looking_up(database, query=query))
    (one,) = [row for row in bench.read("found") if row["id"] == 1]
    assert one["user"] == {
        "id": 1,
        "name": None,
        "score": 1234567890123456.7891,
        "at": "2026-11-19T21:00:00.123456Z",
        "raw": "AP8=",
    }
    # Of two rows with one key there is one.
    assert [row["id"] for row in bench.read("missing")] == [0]
    database.run("DELETE FROM people")
    put_events(bench, 1, range(3))
    bench.run(looking_up(database, query=query))
    assert set(found(bench, 1)) == {1, 2}


def test_a_table_without_a_column_and_a_server_that_is_away_are_refused_clearly(
    bench: Bench, own_postgres: PostgresServer
) -> None:
    database = own_postgres.make_database()
    database.run("CREATE TABLE users (id bigint PRIMARY KEY, name text)")
    put_events(bench, 0, range(3))
    with refused("TABLE_MISMATCH") as error:
        bench.run(looking_up(database))
    assert "table public.users: it has no column for 'score'" in error.value.message
    flow = looking_up(database)
    own_postgres.stop()
    started = time.monotonic()
    with refused("BROKER_UNREACHABLE"):
        bench.run(flow, fresh=True)
    assert time.monotonic() - started < 60
