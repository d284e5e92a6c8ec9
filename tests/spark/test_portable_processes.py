"""Portable savepoints of process functions: taken, changed, and gone on from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bench import Bench, bag, refused
from pyspark.sql import DataFrame

from headgate import Context, Flow, KeyedProcess, ListOf, MapOf, Timer, Value
from headgate._kernel.bridge import CompiledFlow
from headgate.connectors.logs import bind, parse_log
from headgate.engine.plan.plan import plan_flow
from headgate.engine.portable.process_form import ProcessForm
from headgate.engine.portable.processes import taken_process
from headgate.engine.portable.state import write_rows
from headgate.engine.session.session import open_session
from headgate.engine.settings import HeldFiles, SparkSettings
from headgate.engine.user_code.functions import worker_spec
from headgate.flow.operators.nodes import Process
from headgate.flow.state.processes import state_schema
from headgate.jobs.checkpoints.portable import take_portable
from headgate.jobs.job_folder import JobFolder

JOB = "keeping"
KEYS = 3
BEGIN = 1_767_258_000_000
MINUTE = 60_000
DAY = date(1969, 6, 1)
NOON = datetime(1969, 12, 31, 12, tzinfo=UTC)

Row = dict[str, Any]


@dataclass(frozen=True)
class Item:
    n: int
    word: str


@dataclass
class Summary:
    total: int
    largest: Item | None


@dataclass(frozen=True)
class Told:
    n: int
    key: int
    name: str
    total: int
    largest: int
    items: int
    tail: list[str]
    last: str
    words: list[int]
    recent: int
    found: int


class Keeper(KeyedProcess[Any, Told]):
    """Keeps every kind of state, each with more than a page."""

    summary: Value[Summary]
    last: Value[str | None]
    items: ListOf[Item]
    recent: ListOf[int] = ListOf(ttl="30d")
    words: MapOf[str, int] = MapOf(ttl="30d")
    numbers: MapOf[int, int]
    days: MapOf[date, int]
    times: MapOf[datetime, int]
    codes: MapOf[bytes, int]
    flags: MapOf[bool, int]

    def on_event(self, event: Any, ctx: Context[Told]) -> None:
        n, item = event.n, Item(event.n, event.word)
        summary = self.summary.get() or Summary(0, None)
        summary.total += n
        if summary.largest is None or item.word > summary.largest.word:
            summary.largest = item
        self.summary.set(summary)
        self.items.append(item)
        self.recent.append(n)
        self.words[event.word] = self.words.get(event.word, 0) + 1
        for map_, key in zip(self._maps(), _keys(n), strict=True):
            map_[key] = n
        ctx.timers.at(event.at + MINUTE)
        if n < 2 * KEYS:
            ctx.timers.after("1h")
        ctx.emit(
            Told(
                n,
                ctx.key,
                event.user.name,
                summary.total,
                summary.largest.n,
                len(self.items),
                [one.word for one in self.items.tail(3)],
                str(self.last.get("never")),
                [self.words[event.word], len(self.words)],
                len(self.recent),
                self._found(event.key, n) if n % 100 < KEYS else 0,
            )
        )
        self.last.set(None if n % 2 else event.word)

    def on_timer(self, timer: Timer, ctx: Context[Told]) -> None:
        kind = "event" if timer.is_event_time else "clock"
        ctx.side("timers").emit({"key": ctx.key, "kind": kind, "at": timer.ms})

    def _maps(self) -> tuple[MapOf[Any, int], ...]:
        return self.numbers, self.days, self.times, self.codes

    def _found(self, key: int, n: int) -> int:
        """Return how many entries are where they are looked for."""
        self.flags[n % 2 == 0] = n
        return sum(
            map_.get(name) == i
            for i in range(key, n + 1, KEYS)
            for map_, name in zip(self._maps(), _keys(i), strict=True)
        )


def _keys(n: int) -> tuple[int, date, datetime, bytes]:
    span = timedelta(days=n)
    return n - 400, DAY + span, NOON + span / 7, n.to_bytes(3, "big")


def keeping() -> Flow:
    flow = Flow(JOB)
    users = flow.table("users", "id BIGINT NOT NULL, name STRING NOT NULL", key="id")
    columns = "n BIGINT NOT NULL, key BIGINT NOT NULL, at BIGINT NOT NULL, word STRING NOT NULL"
    events = flow.stream("events", columns, event_time="at", out_of_orderness="10s")
    named = events.enrich("named", users, on="key", into="user").matched
    kept = named.key_by("key").process("kept", Keeper())
    kept.out.to("told")
    kept.side("timers", schema="key BIGINT, kind STRING, at BIGINT").to("timers")
    return flow


def events(numbers: Iterable[int]) -> list[Row]:
    return [
        {"n": n, "key": n % KEYS, "at": BEGIN + n * 1000, "word": f"w{n * 7 % 751}"}
        for n in numbers
    ]


@dataclass
class Known:
    """What is known of a key."""

    total: int = 0
    largest: Item | None = None
    last: str = "never"
    items: list[Item] = field(default_factory=list)
    recent: int = 0
    words: dict[str, int] = field(default_factory=dict)

    def take(self, event: Row) -> Row:
        n, item = event["n"], Item(event["n"], event["word"])
        self.total += n
        if self.largest is None or item.word > self.largest.word:
            self.largest = item
        self.items.append(item)
        self.recent += 1
        self.words[item.word] = self.words.get(item.word, 0) + 1
        told = Told(
            n,
            event["key"],
            f"U{event['key']}",
            self.total,
            self.largest.n,
            len(self.items),
            [one.word for one in self.items[-3:]],
            self.last,
            [self.words[item.word], len(self.words)],
            self.recent,
            4 * (n // KEYS + 1) if n % 100 < KEYS else 0,
        )
        self.last = "None" if n % 2 else item.word
        return asdict(told)


def rows_of(savepoint: Path) -> dict[str, Row]:
    return {row["key"]: row for row in pq.read_table(savepoint / "state" / "kept").to_pylist()}


def write(savepoint: Path, rows: Iterable[Row]) -> None:
    folder = savepoint / "state" / "kept"
    schema = pq.read_schema(next(folder.glob("*.parquet")))
    for file in folder.glob("*.parquet"):
        file.unlink()
    pq.write_table(pa.Table.from_pylist(list(rows), schema), folder / "edited.parquet")


def begun(bench: Bench, count: int = 900) -> Path:
    """Run the flow, and return a portable savepoint of it."""
    bench.put("users", [{"id": key, "name": f"U{key}"} for key in range(100)])
    bench.put("events", events(range(count)))
    bench.run(keeping(), parallelism=2, max_batch=16_384)
    folder = bench.root / "taken"
    taken = take_portable(JobFolder(bench.home, JOB), to=folder)
    assert taken.rows == {"named": 100, "kept": KEYS}
    return folder


@pytest.mark.long
def test_a_changed_savepoint_is_gone_on_from_at_another_parallelism(bench: Bench) -> None:
    known = {key: Known() for key in range(KEYS)}
    expected = [known[event["key"]].take(event) for event in events(range(900))]
    savepoint = begun(bench)
    assert bench.bag("told") == bag(expected)

    rows = rows_of(savepoint)
    for key, mine in known.items():
        row = rows[str(key)]["row"]
        assert row["summary"] == {"total": mine.total, "largest": vars(mine.largest)}
        assert row["items"] == [asdict(item) for item in mine.items]
        assert {entry["key"]: entry["value"] for entry in row["words"]} == mine.words
        assert len(row["words"]) == len(mine.words) > 200
        expires = rows[str(key)]["expires"]
        assert set(expires) == {"recent", "words"}
        assert len(expires["recent"]) == len(row["recent"]) == mine.recent
        assert expires["recent"] == sorted(expires["recent"])
        kinds = [timer["event_time"] for timer in rows[str(key)]["timers"]]
        assert kinds.count(False) >= 1
        # The watermark is 10 s behind: what came after the last minute and that waits.
        assert 20 <= kinds.count(True) <= 30
    assert rows["0"]["row"]["last"] == {"value": None}

    # One key is changed, one forgotten, one added that has nothing but a timer.
    row, mine = rows["1"], known[1]
    row["row"]["summary"]["total"] += 1_000_000
    mine.total += 1_000_000
    row["row"]["items"] += [{"n": 5, "word": "added"}] * 70
    mine.items += [Item(5, "added")] * 70
    gone = row["row"]["words"][17]["key"]
    row["expires"]["words"][17] = 1
    del mine.words[gone]
    row["row"]["words"].append({"key": "w-new", "value": 3})
    row["expires"]["words"].append(None)
    mine.words["w-new"] = 3
    row["row"]["recent"] = row["expires"]["recent"] = None
    mine.recent = 0
    row["timers"] = [
        {**timer, "time": timer["time"] if timer["event_time"] else BEGIN}
        for timer in row["timers"]
    ]
    clock = [{"key": 1, "kind": "clock", "at": BEGIN}]
    timers = [{"time": BEGIN + MINUTE, "event_time": True}]
    added = {"key": "77", "row": None, "expires": None, "timers": timers}
    write(savepoint, [rows["0"], row, added])
    known[2] = Known()
    forgotten = {timer["time"] for timer in rows["2"]["timers"] if timer["event_time"]}

    more = events(range(900, 1300))
    bench.put("events", more)
    bench.run(keeping(), restore_from=str(savepoint), parallelism=3, max_batch=8192, drain=True)

    expected += [known[event["key"]].take(event) for event in more]
    told = bench.read("told")
    for each in (*told, *expected):
        if each["n"] >= 900 and each["key"] == 2:
            # Its old entries were forgotten.
            each["found"] = 0
    assert bag(told) == bag(expected)
    fired = [
        {"key": event["key"], "kind": "event", "at": event["at"] + MINUTE}
        for event in events(range(1300))
        if event["at"] + MINUTE not in forgotten
    ]
    fired.append({"key": 77, "kind": "event", "at": BEGIN + MINUTE})
    assert bench.bag("timers") == bag([*fired, *clock])
    # The drain has ended event time, which the next savepoint says.
    drained = take_portable(JobFolder(bench.home, JOB), to=bench.root / "drained")
    with refused("JOB_DRAINED"):
        bench.run(keeping(), restore_from=str(drained.folder))


# The rest is about files alone, and needs no job.

Change = Callable[[Row], object]


@contextmanager
def taking(root: Path) -> Iterator[Callable[[Path], DataFrame]]:
    """Give what takes the state of the process from a folder."""
    settings = SparkSettings(parallelism=2, log_file=root / "logs" / "spark.log")
    spark = open_session(settings)
    graph = bind(keeping().graph(), parse_log("files:topics"))
    plan = plan_flow(graph, history={}, max_record=1 << 20)
    spec = {**plan.spec, "worker": worker_spec(settings, None)}
    try:
        flow = CompiledFlow.compile(spark, spec)
        yield lambda folder: taken_process(spark, HeldFiles(folder), form(), flow, uid="kept")
    finally:
        spark.stop()


def form() -> ProcessForm:
    node = keeping().graph().node("kept")
    assert isinstance(node, Process)
    return ProcessForm.of(node, [state_schema(node)])


def kept(key: str, size: int) -> Row:
    """Return a row as any tool might write it."""

    def entries(*keys: Any) -> list[Row]:
        return [{"key": one, "value": n} for n, one in enumerate(keys)]

    span = range(size)
    row = {
        "summary": {"total": 1, "largest": {"n": 1, "word": "w"}},
        "last": {"value": "w"},
        "items": [{"n": n, "word": f"w{n}"} for n in span],
        "recent": list(span),
        "words": entries(*(f"wörd{n}" for n in span)),
        "numbers": entries(*(n - 50 for n in span)),
        "days": entries(*(DAY + timedelta(days=n) for n in span)),
        "times": entries(*(NOON + timedelta(hours=n) for n in span)),
        "codes": entries(*(n.to_bytes(2, "big") for n in span)),
        "flags": entries(False, True),
    }
    later = BEGIN + 10**12
    expires = {"recent": [later + n for n in span], "words": [later - n for n in span]}
    timers = [{"time": BEGIN + n, "event_time": bool(n)} for n in range(2)]
    return {"key": key, "row": row, "expires": expires, "timers": timers}


def put(folder: Path, rows: list[Row]) -> Path:
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "a.parquet")
    return folder


def ordered(row: Row) -> Row:
    """Return a row with the entries of its maps, and their expiries, in order of the keys."""
    states = dict(row["row"])
    words = zip(states["words"], row["expires"]["words"], strict=True)
    expires = [time for _, time in sorted(words, key=lambda pair: pair[0]["key"])]
    for name in ("words", "numbers", "days", "times", "codes", "flags"):
        states[name] = sorted(states[name], key=lambda entry: entry["key"])
    return {**row, "row": states, "expires": {**row["expires"], "words": expires}}


def with_row(**values: Any) -> Change:
    return lambda row: row["row"].update(values)


REFUSED: list[tuple[Change, str, str]] = [
    (lambda row: row.update(key=None), "PORTABLE_ROW", "its key is null"),
    (lambda row: row.update(key="x"), "PORTABLE_ROW", "its key must be of key BIGINT"),
    (lambda row: row.update(key=" 1"), "PORTABLE_ROW", "its key must be written as '1'"),
    (lambda row: row.update(key="2"), "PORTABLE_ROW", "it occurs 2 times"),
    (with_row(items=[{"n": 1, "word": None}]), "PORTABLE_ROW", "'row.items[0].word' is null"),
    (with_row(numbers=[{"key": None, "value": 1}]), "PORTABLE_ROW", "'row.numbers[0].key' is null"),
    (with_row(numbers=[{"key": 1, "value": 1}] * 2), "PORTABLE_ROW", "'row.numbers' occurs twice"),
    (with_row(recent=[1, 2]), "PORTABLE_ROW", "'row.recent' has 2 entries, and 'expires.recent' 3"),
    (lambda row: row["timers"][0].update(time=None), "PORTABLE_ROW", "'timers[0]' has a null"),
    (lambda row: row["timers"][0].update(time=1 << 60), "PORTABLE_ROW", "years 1 to 9999"),
    (with_row(other=1), "PORTABLE_COLUMN", "'row.other' is not a declared column"),
    (with_row(items=[{"n": 1}]), "PORTABLE_COLUMN", "'row.items[].word' is missing"),
    (with_row(recent=["a"]), "PORTABLE_COLUMN", "'row.recent[]' must be BIGINT"),
    (lambda row: row.update(row="x"), "PORTABLE_COLUMN", "'row' must be a struct of summary"),
    (lambda row: row.update(expires={"other": 1}), "PORTABLE_COLUMN", "'expires.other' is not"),
    (lambda row: row.update(timers=[1]), "PORTABLE_COLUMN", "'timers[]' must be"),
    (lambda row: row.pop("row"), "PORTABLE_COLUMN", "'row' is missing"),
]


def test_rows_come_back_as_they_were_and_wrong_ones_are_refused(tmp_path: Path) -> None:
    rows = [kept("1", 200), kept("-2", 3)]
    rows[0]["row"]["last"] = {"value": None}
    with taking(tmp_path) as take:
        state = take(put(tmp_path / "in", rows))
        spark = state.sparkSession
        assert write_rows(spark, state, form(), tmp_path / "out") == 2
        # A key without most columns, and a list whose times are in no order.
        bare = {"key": "5", "row": {"items": [{"n": 1, "word": "a"}], "recent": [7, 8, 9]}}
        bare["expires"] = {"recent": [3, 1, None], "items": [1]}
        write_rows(spark, take(put(tmp_path / "bare", [bare])), form(), tmp_path / "filled")
        for number, (change, code, told) in enumerate(REFUSED):
            wrong = [kept("1", 3), kept("2", 3)]
            change(wrong[0])
            if code == "PORTABLE_COLUMN":
                change(wrong[1])
            folder = put(tmp_path / str(number), wrong)
            with refused(code) as caught:
                take(folder)
            assert told in caught.value.message, caught.value

    found = {row["key"]: ordered(row) for row in pq.read_table(tmp_path / "out").to_pylist()}
    assert found == {row["key"]: ordered(row) for row in rows}
    [filled] = pq.read_table(tmp_path / "filled").to_pylist()
    first, second, third = filled["expires"]["recent"]
    assert (first, second) == (3, 3)
    assert third > BEGIN
    assert filled["row"]["items"] == [{"n": 1, "word": "a"}]
    assert (filled["row"]["last"], filled["row"]["words"], filled["timers"]) == (None, [], [])
