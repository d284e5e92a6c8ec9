"""A store whose flow also shows readers an order, times of results, and outputs of two kinds."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

from broker_shop import BrokerShop
from store_reference import canonical, lines_of, order_of

COPY, BUSY, LINES, EVEN, ODD, LATE = "copy", "busy", "busy-lines", "even", "odd", "late-orders"
EVERY = 3
# What is split by the time of a result goes to the broker and to files: a crash between their
# commits must not move a row from one to the other.
_WIDER = f"""
from headgate import Files
from headgate.windows import count, every_events, tumbling

orders.to("{COPY}", key="invoiceId")
placed = orders.key_by("userId").window("per-user", tumbling("1d"), early=every_events({EVERY}))
busy = placed.aggregate(orders=count())
busy.updates.to("{BUSY}", key="userId")
busy.updates.select(
    "concat(unix_millis(processed_at), ' ', userId, ' ', orders, ' ', partial) AS line"
).to("{LINES}", format="text")
busy.updates.where("unix_millis(processed_at) % 2 = 0").to("{EVEN}", key="userId")
busy.updates.where("unix_millis(processed_at) % 2 = 1").to(Files("{ODD}", dir=FOLDER))
busy.late.to("{LATE}")
"""


class WideShop(BrokerShop):
    """A store with a wider flow."""

    def set_up(self) -> None:
        """Make the topics of the wider flow."""
        wide = self.folder / "wide"
        wide.mkdir()
        folder = f"\nFOLDER = {str(self.folder / ODD)!r}\n"
        text = Path(self.flow).read_text() + folder + _WIDER
        self.flow = str(wide / "flow.py")
        Path(self.flow).write_text(text)
        super().set_up()

    def assert_exactly_once(self) -> None:
        """Every row is where it belongs, once, and what has an order is in it."""
        super().assert_exactly_once()
        good = [order for order in map(order_of, self.values("orders")) if order is not None]
        self._check_copies(good)
        rows = [json.loads(value) for value in self.values(BUSY)]
        self._check_results(rows, len(good))
        files = [json.loads(line) for line in lines_of(self.folder / ODD)]
        split = {0: [json.loads(value) for value in self.values(EVEN)], 1: files}
        for parity, found in split.items():
            wanted = [row for row in rows if _millis(row) % 2 == parity]
            assert Counter(map(canonical, found)) == Counter(map(canonical, wanted))
        lines = Counter(value.decode() for value in self.values(LINES))
        assert lines == Counter(map(_line, rows))

    def _check_copies(self, orders: list[dict[str, Any]]) -> None:
        """An invoice is in one partition of the source, and its lines stay in their order."""
        wanted, found = defaultdict(list), defaultdict(list)
        for order in orders:
            wanted[order["invoiceId"]].append(canonical(order))
        for value in self.values(COPY):
            found[json.loads(value)["invoiceId"]].append(canonical(json.loads(value)))
        assert found == wanted

    def _check_results(self, rows: list[dict[str, Any]], orders: int) -> None:
        windows = defaultdict(list)
        for row in rows:
            windows[row["userId"], row["window_end"]].append((row["orders"], row["partial"]))
        counted = 0
        for told in windows.values():
            last, partial = told[-1]
            assert not partial, "the drain closed every window"
            early = [(number, True) for number in range(EVERY, last + 1, EVERY)]
            # A window that begins behind the watermark, or is over, has no early results.
            assert told[:-1] == early[: len(told) - 1]
            counted += last
        assert counted + len(self.values(LATE)) == orders


def _millis(row: dict[str, Any]) -> int:
    return round(datetime.fromisoformat(row["processed_at"]).timestamp() * 1000)


def _line(row: dict[str, Any]) -> str:
    partial = "true" if row["partial"] else "false"
    return f"{_millis(row)} {row['userId']} {row['orders']} {partial}"
