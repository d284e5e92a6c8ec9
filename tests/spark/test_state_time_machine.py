"""The state time machine: values, histories, rows and SQL, beside plain Python over the same input.

One job for the whole module. It runs while the first tests ask, and is stopped for the last ones.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, refused
from eventually import eventually
from stored_run import local

from headgate import Flow, windows
from headgate.checkpoints.checkpoint import Checkpoint
from headgate.errors import HeadgateError
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.processes.messages import to_line
from headgate.jobs.state.client import StateDesk
from headgate.jobs.state.connection import ReaderFolder, introduction, receive
from headgate.jobs.state.values import HistoryEntry

JOB = "shop"
BASE = int(datetime(2026, 11, 16, 10, 0, tzinfo=UTC).timestamp() * 1000)
# One key in so many is looked up.
LOOKED_UP = 6
# Counts more rows than anybody could wait for.
SLOW = f"select count(*) from {', '.join(f'with_user u{n}' for n in range(6))}"
ODD = 'a "quoted" Ärger ☃ \\ key'


def shop() -> Flow:
    """Return a flow with every kind of state."""
    flow = Flow(JOB)
    users = flow.table("users", "id BIGINT NOT NULL, name STRING, level INT", key="id")
    words = flow.table("words", "word STRING NOT NULL, n BIGINT, tags ARRAY<STRING>", key="word")
    prices = flow.table(
        "prices",
        "shop STRING NOT NULL, item BIGINT NOT NULL, price DECIMAL(10,2)",
        key=["shop", "item"],
    )
    events = flow.stream(
        "events",
        "n BIGINT NOT NULL, user BIGINT, word STRING, shop STRING, item BIGINT, at BIGINT NOT NULL",
        event_time="at",
        out_of_orderness="1s",
    )
    once = events.dedupe("once", by="n", within="1h")
    hourly = (
        once.unique.key_by("user")
        .window("hourly", windows.tumbling("1h"))
        .aggregate(
            hits=windows.count(),
            most=windows.max("n"),
            some=windows.collect("word", limit=2),
        )
    )
    hourly.updates.to("hours")
    found = once.unique.enrich("with-user", users, on="user", into="found")
    again = found.matched.enrich("with-word", words, on="word", into="meaning")
    again.matched.enrich("with-price", prices, on=["shop", "item"], into="priced").matched.to("out")
    return flow


@dataclass
class Reference:
    """What state must hold, by plain Python."""

    users: dict[int, Any] = field(default_factory=dict)
    words: dict[str, Any] = field(default_factory=dict)
    prices: dict[tuple[str, int], Any] = field(default_factory=dict)
    seen: dict[int, list[int]] = field(default_factory=dict)
    hours: dict[int, dict[int, list[dict[str, Any]]]] = field(default_factory=dict)

    def copy(self) -> Reference:
        plain = json.loads(json.dumps([self.users, self.words, self.seen, self.hours]))
        return Reference(
            {int(k): v for k, v in plain[0].items()},
            plain[1],
            dict(self.prices),
            {int(k): v for k, v in plain[2].items()},
            {int(k): {int(h): e for h, e in v.items()} for k, v in plain[3].items()},
        )

    def window(self, user: int, hour: int) -> dict[str, Any]:
        events = self.hours[user][hour]
        return {
            "window_start": _iso(BASE + hour * 3_600_000),
            "window_end": _iso(BASE + (hour + 1) * 3_600_000),
            "hits": len(events),
            "most": max(each["n"] for each in events),
            "some": [each["word"] for each in events][:2],
            "partial": True,
        }


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat().replace("+00:00", "Z")


@dataclass
class Shop:
    """The job with its rounds: after each, a checkpoint and what state must hold in it."""

    bench: Bench
    process: subprocess.Popen[bytes]
    desk: StateDesk
    reference: Reference = field(default_factory=Reference)
    rounds: list[tuple[str, Reference]] = field(default_factory=list)
    put: int = 0
    running: bool = True

    @property
    def home(self) -> Path:
        return self.bench.home

    def give(self, topic: str, rows: list[dict[str, Any]]) -> None:
        self.put += len(rows)
        self.bench.put(topic, rows)

    def settle(self) -> None:
        """Wait until all that was given is in a kept checkpoint, and remember that one."""

        def find_checkpoint() -> str | None:
            if JOB not in FolderHome(self.home).names():
                return None
            for each in FolderHome(self.home).checkpoints(JOB):
                sources = each.sources.values() if isinstance(each, Checkpoint) else ()
                if sum(source.records for source in sources) == self.put:
                    return each.id
            return None

        found = eventually(find_checkpoint, within=240, alive=self.process)
        self.rounds.append((found, self.reference.copy()))

    def stop(self) -> None:
        if self.running:
            self.running = False
            FolderHome(self.home).stop(JOB)
            self.process.wait(60)


def event(n: int, user: int, hour: int, minute: int) -> dict[str, Any]:
    at = BASE + hour * 3_600_000 + minute * 60_000
    return {"n": n, "user": user, "word": ODD, "shop": "s", "item": 1, "at": at}


def take_events(job: Shop, rows: list[dict[str, Any]]) -> None:
    reference = job.reference
    for row in rows:
        if row["n"] in reference.seen:
            continue
        reference.seen[row["n"]] = [row["at"]]
        hour = (row["at"] - BASE) // 3_600_000
        reference.hours.setdefault(row["user"], {}).setdefault(hour, []).append(row)
    job.give("events", rows)


def take_users(job: Shop, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if row.get("$deleted"):
            job.reference.users.pop(row["id"], None)
        else:
            job.reference.users[row["id"]] = row
    job.give("users", rows)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    # A path that is too long for a socket.
    root = tmp_path_factory.mktemp("a-rather-long-name-of-a-folder-" + "x" * 60)
    bench = Bench(root)
    for topic in ("users", "words", "prices", "events"):
        (bench.topics / topic).mkdir(parents=True)
    command = [sys.executable, "-m", "headgate", "run", str(bench.flow_file(shop()))]
    command += ["--on", f"files:{bench.topics}", "--home", str(bench.home), "--parallelism", "2"]
    command += ["--batch-every", "100ms", "--checkpoint-every", "0s", "--retain", "100"]
    # Snapshots of state soon, and not after a minute: values are read out of those, too.
    defaults = root / "conf" / "spark-defaults.conf"
    defaults.parent.mkdir()
    store = "spark.sql.streaming.stateStore"
    defaults.write_text(f"{store}.maintenanceInterval 500ms\n{store}.minDeltasForSnapshot 2\n")
    with (root / "job.out").open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=output,
            env={**os.environ, "SPARK_CONF_DIR": str(defaults.parent)},
        )
    shop_job = Shop(bench, process, StateDesk(bench.home))
    try:
        fill(shop_job)
        yield shop_job
    finally:
        shop_job.desk.close()
        try:
            shop_job.stop()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def fill(job: Shop) -> None:
    """Give the job three rounds of input."""
    word = {"word": ODD, "n": 1, "tags": ["ä", None]}
    job.reference.words[ODD] = word
    price = {"shop": 'x"y', "item": -7, "price": 12.34}
    job.reference.prices['x"y', -7] = price
    job.give("words", [word])
    job.give("prices", [price, {"shop": "s", "item": 1, "price": 1.5}])
    take_users(job, [{"id": n, "name": f"U{n}", "level": n % 5} for n in range(1, 201)])
    take_events(job, [event(1, 1, 0, 1), event(2, 1, 0, 2), event(3, 2, 0, 3)])
    job.settle()
    take_users(job, [{"id": 7, "name": "Eve", "level": None}, {"id": 8, "$deleted": True}])
    take_events(job, [event(4, 1, 0, 4), event(1, 1, 0, 5)])
    job.settle()
    # Each of 10 partitions has a first snapshot at once; with a second one, the next checkpoint is
    # kept with that.
    live = next(job.home.glob(f"jobs/{JOB}/runs/*/checkpoint"))
    eventually(lambda: len(list(live.rglob("*.zip"))) > 10, alive=job.process)
    job.reference.words[ODD] = {**word, "n": 2}
    job.give("words", [job.reference.words[ODD]])
    take_users(job, [{"id": 8, "name": "Back", "level": 1}, {"id": 900, "name": "New", "level": 0}])
    take_events(job, [event(5, 1, 0, 6), event(6, 9, 0, 7)])
    job.settle()


def check_values(job: Shop) -> None:
    """Compare values at every round, and now, with the reference."""
    desk = job.desk
    for at, held in [*job.rounds, (None, job.reference)]:
        for user in (1, 7, 8, 200, 900, 12_345):
            found = desk.look_up(JOB, "with-user", str(user), at=at)
            assert found.value == held.users.get(user), (user, at)
            assert found.found is (user in held.users)
            assert found.checkpoint == (at or "now")
        assert desk.look_up(JOB, "with-word", ODD, at=at).value == held.words[ODD]
        priced = desk.look_up(JOB, "with-price", '["x\\"y", -7]', at=at)
        assert priced.value == held.prices['x"y', -7]
        for n in (1, 4, 6):
            seen = desk.look_up(JOB, "once", str(n), at=at).value
            wanted = held.seen.get(n)
            assert seen == (wanted and {"n": n, "seen": [_iso(ms) for ms in wanted]})
        for user in (1, 2, 9):
            value = desk.look_up(JOB, "hourly", str(user), at=at).value
            if user not in held.hours:
                assert value is None
                continue
            assert value["user"] == user
            [window] = value["windows"]
            assert window.pop("processed_at")
            assert window == held.window(user, 0)


def test_values_at_every_checkpoint_and_now_equal_plain_python_while_the_job_runs(
    job: Shop,
) -> None:
    assert job.process.poll() is None
    # Out of snapshots alone, of several of them, and out of changelogs above them.
    kept = FolderHome(job.home).checkpoints(JOB)
    assert {any(each.folder.rglob("*.changelog")) for each in kept} == {False, True}
    assert len({zip_.name for each in kept for zip_ in each.folder.rglob("*.zip")}) > 10
    check_values(job)


def test_a_tombstone_is_told_from_a_key_that_never_was(job: Shop) -> None:
    at, _ = job.rounds[1]
    gone = job.desk.look_up(JOB, "with-user", "8", at=at)
    never = job.desk.look_up(JOB, "with-user", "99999", at=at)
    assert (gone.found, gone.deleted) == (False, True)
    assert (never.found, never.deleted) == (False, False)


def changes(entries: tuple[HistoryEntry, ...]) -> list[str]:
    """Return the changes with what stays the same left out."""
    return [each.change for each in entries if each.change not in ("same", "absent")]


def test_a_history_says_what_changed_and_when(job: Shop) -> None:
    # The job runs, and its clock may make a further checkpoint at any moment.
    before = [each.id for each in FolderHome(job.home).checkpoints(JOB)]
    history = job.desk.history(JOB, "with-user", "7")
    after = [each.id for each in FolderHome(job.home).checkpoints(JOB)]
    by_id = {each.checkpoint: each for each in history.entries}
    *told, now = (each.checkpoint for each in history.entries)
    assert now == "now"
    assert told[: len(before)] == before
    assert told == after[: len(told)]
    for at, held in job.rounds:
        assert by_id[at].value == held.users[7]
    [changed] = [each for each in history.entries if each.change == "changed"]
    assert changed.differences == {"name": ("U7", "Eve"), "level": (2, None)}
    deleted = job.desk.history(JOB, "with-user", "8").entries
    assert changes(deleted)[-2:] == ["deleted", "appeared"]
    assert {each.change for each in job.desk.history(JOB, "with-user", "55555").entries} == {
        "absent"
    }
    window = job.desk.history(JOB, "hourly", "1").entries
    grown = [each for each in window if each.change == "changed"]
    field_name = f"windows[{_iso(BASE)}].hits"
    assert [each.differences[field_name] for each in grown if field_name in each.differences][
        -1
    ] == (3, 4)


def test_rows_have_the_columns_of_the_table_and_leave_deleted_keys_out(job: Shop) -> None:
    at, held = job.rounds[1]
    rows = job.desk.first_rows(JOB, "with-user", at=at, limit=500)
    assert rows.columns == ("id", "name", "level")
    assert rows.types == ("BIGINT", "STRING", "INT")
    assert {row[0]: dict(zip(rows.columns, row, strict=True)) for row in rows.rows} == held.users
    some = job.desk.first_rows(JOB, "with-user", limit=3)
    assert (len(some.rows), some.cut) == (3, True)
    hourly = job.desk.first_rows(JOB, "hourly")
    assert hourly.columns == (
        *("user", "window_start", "window_end", "hits", "most", "some", "partial"),
        "processed_at",
    )
    seen = job.desk.first_rows(JOB, "once")
    assert {row[0] for row in seen.rows} == set(job.reference.seen)


@pytest.mark.parametrize("uid", ["with-user", "once"])
def test_a_key_that_is_looked_up_holds_what_sql_over_all_of_them_gives(job: Shop, uid: str) -> None:
    """Keys share buckets, and each is found among those that are with it."""
    for at in (job.rounds[1][0], job.rounds[2][0], None):
        view = uid.replace("-", "_")
        found = job.desk.query(JOB, f"select * from {view}", at=at, limit=1_000)
        rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
        assert rows
        for row in rows[::LOOKED_UP]:
            key = str(row[found.columns[0]])
            assert job.desk.look_up(JOB, uid, key, at=at).value == row, (uid, key, at)


def test_sql_sees_every_operator_by_its_name_and_the_chosen_one_as_state(job: Shop) -> None:
    desk = job.desk
    sql = "select count(*) as n, max(name) as m from state where level = 1"
    of_level = [each["name"] for each in job.reference.users.values() if each["level"] == 1]
    found = desk.query(JOB, sql, uid="with-user")
    assert (found.columns, found.rows) == (("n", "m"), ((len(of_level), max(of_level)),))
    joined = desk.query(
        JOB,
        "select u.name, sum(h.hits) s, 1 as one, 2 as one from hourly h join with_user u "
        "on u.id = h.user group by u.name order by s desc limit 1",
    )
    assert (joined.columns, joined.rows) == (("name", "s", "one", "one"), (("U1", 4, 1, 2),))
    old, held = job.rounds[0]
    assert desk.query(JOB, "select count(*) from with_user", at=old).rows == ((len(held.users),),)
    odd = desk.query(JOB, "select null, interval 1 day, double('nan'), tags from with_word")
    assert odd.rows[0][0] is None
    assert odd.rows[0][3] == ["ä", None]


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("selec 1", "selec"),
        ("select nothing from with_user", "nothing"),
        ("select * from state", "state"),
        ("drop view with_user", "must be a query"),
        ("create table t as select * from with_user", "must be a query"),
        ("set spark.sql.runSQLOnFiles=true", "must be a query"),
        ("insert overwrite directory '/tmp/x' using csv select 1", "must be a query"),
        ("select transform(id) using 'cat' as (x) from with_user", "must be a query"),
        ("select reflect('java.util.UUID', 'randomUUID')", "reflect"),
        ("select (select java_method('java.util.UUID', 'randomUUID'))", "reflect"),
        ("with x as (select try_reflect('java.util.UUID', 'randomUUID')) select * from x", "refl"),
        (
            "select sum(id) over w from with_user window w as "
            "(partition by reflect('java.util.UUID', 'randomUUID'))",
            "reflect",
        ),
        ("select * from values (reflect('java.util.UUID', 'randomUUID'))", "reflect"),
        ("select * from text.`/etc/passwd`", "text"),
        ("select * from identifier('text.`/etc/passwd`')", ""),
        ("select '${env:HOME}' as home, nothing from with_user", "nothing"),
    ],
)
def test_sql_that_is_no_plain_query_over_state_is_refused_in_one_line(
    job: Shop, sql: str, told: str
) -> None:
    with refused("STATE_SQL_REFUSED") as caught:
        job.desk.query(JOB, sql)
    assert told in caught.value.message
    assert "\n" not in caught.value.message
    assert "with_user" in caught.value.hint


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("select repeat('x', 2000000000)", "larger than 16777216 bytes"),
        ("select max(repeat(name, 2000000000)) from with_user", "larger than 16777216 bytes"),
        ("select id from with_user where length(space(2000000000)) > id", "larger than 16777216"),
        ("select (select max(lpad(name, 2000000000, 'x')) from with_user)", "larger than 16777216"),
        ("with x as (select sequence(1, 1000000000)) select * from x", "larger than 16777216"),
        ("select count(*) from range(1000000000000)", "at most 1000000 rows, got 1000000000000"),
        ("select count(*) from range(1e12)", "at most 1000000 rows"),
        ("select count(*) from range(0, 10, 1, 1000)", "number of partitions"),
        (" union all ".join(["select id from with_user"] * 17), "at most 16 views, got 17"),
        (
            f"select {' + '.join(['(select max(id) from with_user)'] * 16)}",
            "at most 16 views, got 17",
        ),
    ],
)
def test_a_query_that_would_fill_the_reader_is_refused_and_the_reader_answers_on(
    job: Shop, sql: str, told: str
) -> None:
    count = "select count(*) from with_user"
    [[users]] = job.desk.query(JOB, count).rows
    pid = reader_pid(job)
    with refused("STATE_SQL_REFUSED") as caught:
        job.desk.query(JOB, sql)
    assert told in caught.value.message
    assert job.desk.query(JOB, count).rows == ((users,),)
    assert reader_pid(job) == pid


def test_functions_that_stay_within_their_size_give_what_spark_gives(job: Shop) -> None:
    sql = (
        "select repeat('ab', 2), lpad('x', 3, '-'), sequence(1, 3), count(*) from with_user "
        "where repeat(name, 2) = 'U1U1' group by repeat(name, 2)"
    )
    assert job.desk.query(JOB, sql).rows == (("abab", "--x", [1, 2, 3], 1),)
    assert job.desk.query(JOB, "select sum(id) from range(1000000)").rows == ((499_999_500_000,),)


def test_an_answer_that_is_too_large_ends_its_query_alone(job: Shop) -> None:
    pid = reader_pid(job)
    with refused("STATE_ANSWER_TOO_LARGE") as caught:
        job.desk.query(JOB, "select repeat('x', 1000000), id from with_user", limit=10_000)
    assert caught.value.message.endswith("the answer is larger than 16 MiB")
    assert job.desk.look_up(JOB, "with-user", "7").value == job.reference.users[7]
    assert reader_pid(job) == pid


def test_a_query_sees_no_variables_of_the_process(job: Shop) -> None:
    assert job.desk.query(JOB, "select '${env:HOME}'").rows == (("${env:HOME}",),)


def test_what_is_asked_for_wrongly_is_named(job: Shop) -> None:
    desk = job.desk
    with refused("STATE_OPERATOR_NOT_FOUND") as caught:
        desk.look_up(JOB, "with-usr", "1")
    assert caught.value.hint == "did you mean 'with-user'?"
    for key in ("abc", "1.5", '{"name": 1}', ""):
        with refused("STATE_KEY_MISMATCH") as caught:
            desk.look_up(JOB, "with-user", key)
        assert "id BIGINT" in caught.value.message
        assert caught.value.hint == "the value of 'id' must be of type BIGINT"
    for key in ("1", "[1]", '["a","b"]', '{"shop":"s"}'):
        with refused("STATE_KEY_MISMATCH") as caught:
            desk.look_up(JOB, "with-price", key)
        assert "shop STRING, item BIGINT" in caught.value.message
    with refused("CHECKPOINT_NOT_FOUND"):
        desk.look_up(JOB, "with-user", "1", at="chk-99999")
    with refused("STATE_ROWS_OUT_OF_RANGE"):
        desk.first_rows(JOB, "with-user", limit=0)
    assert desk.look_up(JOB, "with-price", '{"item": 1, "shop": "s"}').found


def test_operators_and_their_sizes_are_listed_without_a_reader(job: Shop) -> None:
    now = FolderHome(job.home).operators(JOB)
    assert {each.uid: (each.kind, each.keys, each.variables) for each in now.operators} == {
        "once": ("dedupe", ("n",), ("seen",)),
        "hourly": ("window", ("user",), ("windows",)),
        "with-user": ("enrich", ("id",), ("table",)),
        "with-word": ("enrich", ("word",), ("table",)),
        "with-price": ("enrich", ("shop", "item"), ("table",)),
    }
    [users] = [each for each in now.operators if each.uid == "with-user"]
    assert (users.rows, users.key_types) == (201, ("BIGINT",))
    at, _ = job.rounds[0]
    [old] = [
        each
        for each in FolderHome(job.home).operators(JOB, at=at).operators
        if each.uid == "with-user"
    ]
    assert old.rows == 200
    assert old.bytes > 0


def reader_pid(job: Shop) -> int:
    return int((ReaderFolder(job.home).path / "lock").read_text())


def test_values_are_the_same_once_the_job_is_stopped(job: Shop) -> None:
    job.stop()
    check_values(job)


def test_checkpoints_that_cannot_be_read_are_told_in_a_history_of_the_others(job: Shop) -> None:
    job.stop()
    folders = {each.id: local(each.folder) for each in FolderHome(job.home).checkpoints(JOB)}
    (first, _), (second, _), (third, held) = job.rounds
    shutil.rmtree(folders[first] / "commits")
    shutil.rmtree(folders[second] / "state")
    entries = job.desk.history(JOB, "with-user", "7").entries
    lost = {each.checkpoint: each.problem for each in entries if each.change == "unreadable"}
    assert set(lost) == {first, second}
    assert all(lost.values())
    assert {each.checkpoint: each.value for each in entries}[third] == held.users[7]
    assert entries[-1].value == job.reference.users[7]


# From here on each test ends the reader, so that the next one starts another.
@pytest.mark.long
def test_a_slow_query_is_ended_and_others_are_answered_meanwhile(job: Shop) -> None:
    job.desk.close()
    # The first query of a reader compiles it: on a busy machine it takes more than 15 s.
    desk = StateDesk(job.home, longest_query=timedelta(seconds=45))
    count = "select count(*) from with_user"
    # What is asked meanwhile was asked before: a query that is compiled first takes longer.
    [[users]] = desk.query(JOB, count).rows
    desk.first_rows(JOB, "with-user", limit=3)
    ended: list[HeadgateError] = []

    def ask_slowly() -> None:
        try:
            desk.query(JOB, SLOW)
        except HeadgateError as error:
            ended.append(error)

    slow = threading.Thread(target=ask_slowly)
    jvm = jvm_of(reader_pid(job))
    before = cpu_seconds(jvm)
    try:
        slow.start()
        # Its tasks take all threads that they get.
        eventually(lambda: cpu_seconds(jvm) > before + 2)
        assert desk.query(JOB, count).rows == ((users,),)
        assert [len(desk.first_rows(JOB, "with-user", limit=3).rows), ended] == [3, []]
        slow.join(240)
        assert [error.code for error in ended] == ["STATE_SQL_TOO_LONG"]
        assert ended[0].message.endswith("it took longer than 45s")
        assert desk.query(JOB, count).rows == ((users,),)
    finally:
        desk.close()


def jvm_of(reader: int) -> int:
    threads = Path(f"/proc/{reader}/task").glob("*/children")
    [jvm] = [int(child) for thread in threads for child in thread.read_text().split()]
    return jvm


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.long
def test_a_reader_of_another_release_is_replaced_by_one_that_all_desks_share(job: Shop) -> None:
    job.desk.close()
    folder = ReaderFolder(job.home)
    asked: list[Any] = []

    def answer_as_an_old_one(listening: socket.socket) -> None:
        with listening:
            connection, _ = listening.accept()
            with connection, connection.makefile("rb") as stream:
                connection.sendall(to_line({**introduction(), "headgate": "0.0.1"}))
                asked.append(receive(stream))
            folder.socket_file.unlink()

    eventually(lambda: not folder.socket_file.exists())
    old = threading.Thread(target=answer_as_an_old_one, args=(folder.listen(),))
    old.start()
    assert job.desk.look_up(JOB, "with-user", "7").value == job.reference.users[7]
    old.join()
    assert asked == [{"ask": "end"}]
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert folder.socket_file.stat().st_mode & 0o777 == 0o600


def test_desks_that_find_a_dead_reader_start_one_and_share_it(job: Shop) -> None:
    job.desk.look_up(JOB, "with-user", "7")
    dead = reader_pid(job)
    os.kill(dead, signal.SIGKILL)
    found: list[Any] = []

    def ask() -> None:
        value = StateDesk(job.home).look_up(JOB, "with-user", "7").value
        found.append((value, reader_pid(job)))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    pid = reader_pid(job)
    assert pid != dead
    assert found == [(job.reference.users[7], pid)] * 3


@pytest.mark.long
def test_a_reader_whose_jvm_died_is_replaced_and_ends_when_nobody_asks(job: Shop) -> None:
    job.desk.look_up(JOB, "with-user", "7")
    lame = reader_pid(job)
    os.kill(jvm_of(lame), signal.SIGKILL)
    # So short that a query is ended while it is planned.
    longest = timedelta(milliseconds=10)
    desk = StateDesk(job.home, idle=timedelta(seconds=1), longest_query=longest)
    assert desk.look_up(JOB, "with-user", "7").value == job.reference.users[7]
    pid = reader_pid(job)
    assert pid != lame
    with refused("STATE_SQL_TOO_LONG") as caught:
        desk.query(JOB, SLOW)
    assert caught.value.message.endswith("it took longer than 10ms")
    assert reader_pid(job) == pid
    eventually(lambda: not _lives(pid))
    assert not ReaderFolder(job.home).socket_file.exists()


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
