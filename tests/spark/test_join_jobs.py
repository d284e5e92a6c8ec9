"""Interval joins in whole jobs: restored at other parallelism, and with other columns."""

from __future__ import annotations

import json
import random
import runpy
from collections import Counter, defaultdict
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, bag, refused
from join_reference import Arrival, JoinModel
from test_event_time import until

from headgate import Context, Flow, KeyedCoProcess, ListOf, Timer
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.state.client import StateDesk
from headgate.testing import CrashAt, run_flow

EXAMPLES = Path(__file__).parents[2] / "examples"
BASE = 1_767_258_000_000
SPAN = timedelta(seconds=40)
SPAN_MS = 40_000
SCHEMA = "n BIGINT NOT NULL, key STRING, at BIGINT NOT NULL"
TALLY = "key STRING, left ARRAY<BIGINT>, right ARRAY<BIGINT>"
END = BASE + 10**9
JOB = "joined"


class Tally(KeyedCoProcess[Any, Any, Any]):
    """Tells at the end which rows a key had on both sides."""

    left: ListOf[int]
    right: ListOf[int]

    def on_left(self, row: Any, ctx: Context[Any]) -> None:
        self.left.append(row.n)
        ctx.timers.at(END)

    def on_right(self, row: Any, ctx: Context[Any]) -> None:
        self.right.append(row.n)
        ctx.timers.at(END)

    def on_timer(self, timer: Timer, ctx: Context[Any]) -> None:  # noqa: ARG002
        ctx.emit({"key": ctx.key, "left": sorted(self.left), "right": sorted(self.right)})


def tallies(rows: list[Arrival]) -> Counter[str]:
    """Return what comes of connected streams, whatever the order of their rows."""
    sides = {
        key: {
            side: sorted(row.n for row in rows if (row.key, row.side) == (key, side))
            for side in ("left", "right")
        }
        for key in {row.key for row in rows}
    }
    return bag({"key": key, **numbers} for key, numbers in sides.items())


def joined(
    schema: str = SCHEMA,
    *,
    right: str = SCHEMA,
    key: str = "key",
    idle_after: str = "30s",
    tallied: bool = False,
) -> Flow:
    """Return a flow that joins within 40 seconds, and lets rows be a minute late.

    Args:
        tallied: Whether its streams are connected as well.
    """
    flow = Flow(JOB)
    streams = [
        flow.stream(name, columns, event_time="at", out_of_orderness="1m", idle_after=idle_after)
        for name, columns in (("left", schema), ("right", right))
    ]
    made = streams[0].join("pairs", streams[1], on=key, within=SPAN)
    made.matched.to("matched")
    made.left_only.to("left-only")
    made.right_only.to("right-only")
    made.late.to("late")
    if tallied:
        both = streams[0].key_by(key).connect(streams[1].key_by(key))
        both.process("tallies", Tally(), schema=TALLY).out.to("tallies")
    return flow


def rounds(many: int) -> list[list[Arrival]]:
    """Return rows of rounds a minute apart, none of which is late."""
    draw, number, made = random.Random(23), 0, []
    for minute in range(many):
        rows = []
        for _ in range(160):
            key = "hot" if draw.random() < 0.3 else f"k{draw.randint(0, 40)}"
            at = BASE + minute * 60_000 + draw.randint(0, 60_000)
            rows.append(Arrival(number, draw.choice(["left", "right"]), key, at))
            number += 1
        made.append(rows)
    return made


def put(bench: Bench, rows: list[Arrival], **more: Any) -> None:
    for side in ("left", "right"):
        values = [
            {"n": row.n, "key": row.key, "at": row.at, **more} for row in rows if row.side == side
        ]
        bench.put(side, values)


def found(bench: Bench) -> dict[str, Counter[object]]:
    """Return what the outputs have, in the form of the model."""
    return {
        "matched": Counter((row["n"], row["right"]["n"]) for row in bench.read("matched")),
        "left_only": Counter(row["n"] for row in bench.read("left-only")),
        "right_only": Counter(row["n"] for row in bench.read("right-only")),
    }


def wanted(rows: list[Arrival]) -> dict[str, Counter[object]]:
    """Return what comes out of rows none of which is late, however they are cut into batches."""
    model = JoinModel(SPAN_MS, SPAN_MS)
    made, last = model.batch(0, rows), model.batch(10**15, [])
    return {name: made[name] + last[name] for name in ("matched", "left_only", "right_only")}


def test_a_join_and_connected_streams_go_on_from_savepoints_at_another_parallelism(
    bench: Bench,
) -> None:
    parts, home = rounds(4), FolderHome(bench.home)
    flow = joined(tallied=True)
    put(bench, parts[0])
    bench.run(flow, parallelism=2, max_batch=4000)
    saved = home.take_savepoint(JOB).name
    with closing(StateDesk(bench.home)) as desk:
        check_state(bench, desk, parts[0])
        put(bench, parts[1])
        bench.run(flow, parallelism=1, restore_from=saved, max_batch=4000)
        check_past(desk, saved, parts[0], parts[1])
    put(bench, parts[2])
    bench.run(flow, parallelism=3, restore_from="latest", max_batch=4000)
    put(bench, parts[3], note="new")
    # The right rows in state have no note.
    more = joined(right=f"{SCHEMA}, note STRING", tallied=True)
    saved = home.take_savepoint(JOB).name
    ended = bench.run(more, parallelism=5, restore_from=saved, drain=True)
    rows = [row for part in parts for row in part]
    assert found(bench) == wanted(rows)
    assert bench.bag("tallies") == tallies(rows)
    assert bench.read("late") == []
    notes = {row["right"]["note"] for row in bench.read("matched") if "note" in row["right"]}
    assert notes == {None, "new"}
    assert ended.totals.state_rows["pairs"] == 0


def check_past(desk: StateDesk, saved: str, before: list[Arrival], behind: list[Arrival]) -> None:
    """Compare what a savepoint has of a key with the rows of its time, and the present with all."""
    for at, rows in ((saved, before), (None, [*before, *behind])):
        numbers = {
            side: sorted(row.n for row in rows if (row.key, row.side) == ("hot", side))
            for side in ("left", "right")
        }
        tally: Any = desk.look_up(JOB, "tallies", "hot", at=at).value
        assert tally["left_size"] == len(numbers["left"])
        assert tally["right_size"] == len(numbers["right"])
        waiting: Any = desk.look_up(JOB, "pairs", "hot", at=at).value
        last = max(row.at for row in rows)
        newest = {row.n for row in rows if row.key == "hot" and row.at > last - 60_000}
        held = {row["row"]["n"] for side in ("left", "right") for row in waiting[side]}
        assert newest <= held <= {*numbers["left"], *numbers["right"]}


def check_state(bench: Bench, desk: StateDesk, rows: list[Arrival]) -> None:
    """Compare what is read of state with the rows that still wait."""
    value: Any = desk.look_up(JOB, "pairs", "hot").value
    assert value["key"] == "hot"
    numbers = {row["row"]["n"]: row for side in ("left", "right") for row in value[side]}
    known = {row.n: row for row in rows if row.key == "hot"}
    assert numbers
    assert numbers.keys() <= known.keys()
    # The watermark is a minute behind the last row, and waits for it another 40 seconds.
    last = max(row.at for row in rows)
    waiting = {row.n for row in known.values() if row.at > last - 60_000}
    assert waiting <= numbers.keys()
    keys = desk.query(JOB, "SELECT key, size(left) + size(right) AS n FROM pairs", limit=1000)
    assert {row[0]: row[1] for row in keys.rows}["hot"] == len(numbers)
    assert desk.look_up(JOB, "pairs", "nobody").value is None
    assert len(desk.first_rows(JOB, "pairs", limit=3).rows) == 3
    *before, now = desk.history(JOB, "pairs", "hot").entries
    assert before
    assert now.value == value
    operators = FolderHome(bench.home).operators(JOB).operators
    assert {each.uid: (each.kind, each.keys) for each in operators} == {
        "pairs": ("join", ("key",)),
        "tallies": ("co-process", ("key",)),
    }


def test_rows_without_key_or_time_are_dead_letters_and_none_waits_behind_the_watermark(
    bench: Bench,
) -> None:
    rows = rounds(1)[0]
    put(bench, rows)
    odd = [{"n": 1000, "key": None, "at": BASE}, {"n": 1001, "key": "k1", "at": None}]
    # Neither matches the other, and both let all others go.
    last = BASE + 3_600_000
    bench.put("left", [*odd, {"n": 1002, "key": "last", "at": last}])
    bench.put("right", [*odd, {"n": 1003, "key": "last", "at": last + SPAN_MS + 1}])
    schema = SCHEMA.replace("at BIGINT NOT NULL", "at BIGINT")
    ended = bench.run(joined(schema, right=schema), max_batch=4000)
    assert found(bench) == wanted(rows)
    assert bench.read("late") == []
    # One key, and when it is due.
    assert ended.totals.state_rows == {"pairs": 2}
    letters = Counter(row["code"] for row in bench.read("dead-letters"))
    assert letters == {"NO_KEY": 2, "MISSING_FIELD": 2}


def test_a_side_without_rows_lets_the_rows_of_the_other_go(bench: Bench) -> None:
    flow, model = joined(idle_after="1s"), JoinModel(SPAN_MS, SPAN_MS)
    wanted: dict[str, Counter[object]] = defaultdict(Counter)

    def batch(watermark: int, rows: list[Arrival]) -> None:
        for output, made in model.batch(watermark, rows).items():
            wanted[output] += made

    def run_until(watermark: int) -> None:
        """Run until the watermark has passed, with nothing but what is there."""
        batch(watermark, [])
        at = datetime.fromtimestamp(watermark / 1000, UTC)
        moved = until(
            bench, JOB, lambda each: each.totals.watermark == at and found(bench) == part()
        )
        bench.run(flow, watch=moved, until_caught_up=False)
        assert found(bench) == part()

    def part() -> dict[str, Counter[object]]:
        return {output: wanted[output] for output in ("matched", "left_only", "right_only")}

    left = [row for each in rounds(3) for row in each if row.side == "left"]
    put(bench, left)
    batch(0, left)
    bench.run(flow)
    # Both sides are idle from here: one never had a row, the other one has stopped. On a slow
    # machine they were for a second already, and the rows are gone.
    watermark = max(row.at for row in left) - 60_000
    run_until(watermark)
    assert wanted["left_only"]
    # The right side brings some rows and stops, the left one goes on later.
    right = [
        Arrival(1000 + row.n, "right", row.key if row.n % 2 else "alone", row.at)
        for row in left
        if row.at % 3 == 0
    ]
    put(bench, right)
    batch(watermark, right)
    bench.run(flow)
    more = [Arrival(2000 + row.n, "left", row.key, row.at + 3_600_000) for row in left]
    put(bench, more)
    batch(watermark, more)
    run_until(max(row.at for row in more) - 60_000)
    assert wanted["matched"]
    assert wanted["right_only"]
    assert Counter(row[row["side"]]["n"] for row in bench.read("late")) == wanted["late"]
    assert wanted["late"]


def test_changed_columns_are_refused_with_what_changed(bench: Bench) -> None:
    put(bench, rounds(1)[0])
    bench.run(joined(), parallelism=1)
    changed = joined(right="n STRING, key STRING, at BIGINT NOT NULL")
    with refused("STATE_INCOMPATIBLE") as caught:
        bench.run(changed)
    assert "right: n changed its type from BIGINT to STRING" in caught.value.message
    with refused("STATE_INCOMPATIBLE"):
        bench.run(joined(key="n"))
    with refused("SAVEPOINT_NOT_TAKEN") as caught:
        FolderHome(bench.home).take_portable_savepoint(JOB)
    assert "join 'pairs' holds state that has no portable form" in caught.value.message


@pytest.mark.parametrize("batches", [1, 4])
def test_a_crashed_batch_gives_the_same_rows_again(batches: int) -> None:
    rows = [row for each in rounds(2) for row in each]
    inputs = {
        side: [{"n": row.n, "key": row.key, "at": row.at} for row in rows if row.side == side]
        for side in ("left", "right")
    }
    plain = run_flow(joined(), inputs, batches=batches)
    crashed = run_flow(joined(), inputs, batches=batches, faults=[CrashAt(batches)])
    assert plain == crashed
    assert (
        Counter((row["n"], row["right"]["n"]) for row in plain["matched"])
        == (wanted(rows)["matched"])
    )


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (EXAMPLES / "payments" / name).read_text().splitlines()]


def test_the_example_pays_orders_as_plain_python_does(bench: Bench) -> None:
    given = {name: lines(f"{name}.jsonl") for name in ("orders", "payments")}
    for name, rows in given.items():
        bench.put(name, rows)
    flow = EXAMPLES / "payments" / "flow.py"
    bench.run(flow, parallelism=2, drain=True)
    wanted = paid(given["orders"], given["payments"])
    assert {name: bench.bag(name) for name in wanted} == wanted
    assert bench.read("late-rows") == []
    in_memory = run_flow(runpy.run_path(str(flow))["flow"], given, batches=2)
    assert {name: bag(in_memory[name]) for name in wanted} == wanted


def paid(orders: list[dict[str, Any]], payments: list[dict[str, Any]]) -> dict[str, Counter[str]]:
    """Return what the example's outputs hold, by a nested loop."""
    pairs = [
        (order, payment)
        for order in orders
        for payment in payments
        if order["id"] == payment["orderId"]
        and -60_000 <= payment["at"] - order["at"] <= 30 * 60_000
    ]
    matched, used = ({row["id"] for row in side} for side in zip(*pairs, strict=True))
    return {
        "paid-orders": bag(
            {
                "id": order["id"],
                "customer": order["customer"],
                "amount": order["amount"],
                "paymentId": payment["id"],
                "afterMs": payment["at"] - order["at"],
            }
            for order, payment in pairs
        ),
        "unpaid-orders": bag(row for row in orders if row["id"] not in matched),
        "unknown-payments": bag(row for row in payments if row["id"] not in used),
    }
