"""An interval join on Kafka under fire: drivers are killed amid batches while both sides grow."""

from __future__ import annotations

import json
import random
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from broker_shop import DEAD_LETTERS, PARTITIONS, BrokerShop
from kafka_broker import KafkaBroker
from shop import JOB, Production
from store_reference import canonical

BEGIN = 1_767_258_000_000
BEFORE, AFTER = 5_000, 20_000
HOUR = 3_600_000
SIDES = ("left", "right")
OUTPUTS = ("matched", "left-only", "right-only", "late")
# Rows are at most 10 s out of order. Partitions are never idle, however slow the machine is.
FLOW = f"""
from headgate import Flow

flow = Flow({JOB!r})
schema = "n BIGINT NOT NULL, key STRING, at BIGINT NOT NULL"
left, right = (
    flow.stream(name, schema, event_time="at", out_of_orderness="12s", idle_after=None)
    for name in {SIDES!r}
)
made = left.join("pairs", right, on="key", before="{BEFORE // 1000}s", after="{AFTER // 1000}s")
made.matched.to("matched")
made.left_only.to("left-only")
made.right_only.to("right-only")
made.late.to("late")
"""
Row = dict[str, Any]


class JoinShop(BrokerShop):
    """A job that joins two topics; half a second of event time lies between two rows."""

    def __init__(self, folder: Path, broker: KafkaBroker, seed: int) -> None:
        super().__init__(folder, broker)
        self.topics_of = broker
        self._draw = random.Random(seed)
        self._rows: dict[str, list[Row]] = {side: [] for side in SIDES}
        self._many = 0

    def set_up(self) -> None:
        """Write the flow, and make its topics."""
        self.flow = str(self.folder / "join.py")
        Path(self.flow).write_text(FLOW)
        for name in SIDES:
            self.topics_of.make_topic(name, partitions=PARTITIONS)
        for name in (*OUTPUTS, DEAD_LETTERS):
            self.topics_of.make_topic(name)

    def produce(self, number: int, orders: int, **_: Any) -> None:  # noqa: ARG002
        """Write the next rows to both sides."""
        values: dict[tuple[str, int], list[bytes]] = defaultdict(list)
        for _number in range(orders):
            side, row = self._row()
            self._rows[side].append(row)
            values[side, self._draw.randrange(PARTITIONS)].append(json.dumps(row).encode())
        for (side, partition), records in values.items():
            self.topics_of.send(side, records, partition=partition)

    def _row(self) -> tuple[str, Row]:
        draw, self._many = self._draw, self._many + 1
        at = BEGIN + self._many * 500 - draw.randint(0, 10_000)
        if self._many % 50 == 0:
            at -= HOUR
        key = draw.choice(["hot", f"k{draw.randint(0, 40)}", f"k{draw.randint(0, 40)}"])
        row = {"n": self._many, "key": None if self._many % 70 == 0 else key, "at": at}
        return draw.choice(SIDES), row

    def assert_exactly_once(self) -> None:
        """A reader finds each pair once, and every other row in one output."""
        written = {name: [json.loads(value) for value in self.values(name)] for name in OUTPUTS}
        late: dict[str, set[int]] = {side: set() for side in SIDES}
        for row in written["late"]:
            late[row["side"]].add(row[row["side"]]["n"])
        # Which rows are late depends on the batches; but only old ones can be.
        assert all(number % 50 == 0 for side in SIDES for number in late[side])
        assert late["left"]
        assert late["right"]
        left, right = (
            [row for row in self._rows[side] if row["key"] and row["n"] not in late[side]]
            for side in SIDES
        )
        pairs = list(find_pairs(left, right))
        partners = Counter(row["n"] for pair in pairs for row in pair)
        wanted: dict[str, Iterable[Row]] = {
            "matched": ({**one, "right": other} for one, other in pairs),
            "left-only": (row for row in left if not partners[row["n"]]),
            "right-only": (row for row in right if not partners[row["n"]]),
            "late": (
                {"side": side, "left": None, "right": None, side: row}
                for side in SIDES
                for row in self._rows[side]
                if row["key"] and row["n"] in late[side]
            ),
        }
        for name, rows in wanted.items():
            found, reference = Counter(map(canonical, written[name])), Counter(map(canonical, rows))
            lost, doubled = reference - found, found - reference
            assert not lost, f"{name}: {lost.total()} lost, such as {next(iter(lost))}"
            assert not doubled, f"{name}: {doubled.total()} doubled, such as {next(iter(doubled))}"
            assert found, name
        without_key = sum(not row["key"] for side in SIDES for row in self._rows[side])
        assert self.count_letters() == without_key


def find_pairs(left: list[Row], right: list[Row]) -> Iterator[tuple[Row, Row]]:
    """Yield the rows that belong together, key by key."""
    by_key: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(right, key=lambda row: row["at"]):
        by_key[row["key"]].append(row)
    times = {key: [row["at"] for row in rows] for key, rows in by_key.items()}
    for row in left:
        of_key = times.get(row["key"], [])
        first = bisect_left(of_key, row["at"] - BEFORE)
        end = bisect_right(of_key, row["at"] + AFTER)
        for other in by_key[row["key"]][first:end]:
            yield row, other


@pytest.fixture
def shop(tmp_path: Path, own_kafka: KafkaBroker, seed: int) -> Iterator[JoinShop]:
    made = JoinShop(tmp_path, own_kafka, seed)
    made.set_up()
    made.produce(0, 1_000)
    yield made
    if made.supervisor is not None and made.supervisor.poll() is None:
        made.kill_supervisor()


@pytest.mark.long
@pytest.mark.timeout(3600)  # 40 kills take longer than a test may
def test_kills_of_the_driver_neither_lose_nor_double_a_pair(
    shop: JoinShop, many_kills: int, seed: int
) -> None:
    moments = random.Random(seed)
    shop.start()
    with Production(shop, orders=120):
        for number in range(many_kills):
            # A third of the kills hit the first batch of an attempt, or the one it does again.
            if number % 3 != 2:
                shop.wait_for_a_batch()
            shop.kill_children(1, moments)
        shop.wait_for_a_batch()
    shop.drain()
    assert len(shop.events("FAILURE")) == many_kills
    shop.assert_exactly_once()
    assert shop.status()["state_rows"] == {"pairs": 0}
