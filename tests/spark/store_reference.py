"""What the order-enrichment flow must give, in plain Python over the same files.

Shares no code with the product: reads the topics' lines, keeps dictionaries, compares values.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ORDER = {
    "invoiceId": int,
    "lineItemId": int,
    "userId": int,
    "itemId": int,
    "itemName": str,
    "itemCategory": str,
    "price": float,
    "createdAt": int,
    "paidAt": int,
}


def lines_of(topic: Path) -> Iterator[bytes]:
    """Yield the records of a topic's folder, files in the order they were published."""
    files = [
        file
        for file in topic.rglob("*.jsonl")
        if not any(part.startswith(("_", ".")) for part in file.relative_to(topic).parts)
    ]
    for file in sorted(files, key=lambda each: (each.stat().st_mtime_ns, str(each))):
        yield from (line for line in file.read_bytes().split(b"\n") if line.strip())


def order_of(line: bytes) -> dict[str, Any] | None:
    """Return a good order, or None for a record that is a dead letter."""
    try:
        row = json.loads(line.decode("utf-8"))
    except ValueError:
        return None
    if not isinstance(row, dict):
        return None
    order = {}
    for name, kind in ORDER.items():
        value = row.get(name)
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind:
            return None
        order[name] = value
    return order


class StoreReference:
    """The flow's state and outputs, brought up to date round by round."""

    def __init__(self) -> None:
        self.users: dict[int, Any] = {}
        self.items: dict[int, Any] = {}
        self.outputs: dict[str, Counter[str]] = {
            name: Counter() for name in ("enriched-orders", "missing-users", "missing-items")
        }
        self.dead: Counter[bytes] = Counter()
        self._seen = Counter[str]()

    def take(self, topics: Path) -> None:
        """Take in what has come since the last call: tables first, then orders."""
        for table, name in ((self.users, "users"), (self.items, "items")):
            for line in self._new(topics / name):
                self._change(table, json.loads(line))
        self.take_orders(self._new(topics / "orders"))

    def take_table(self, name: str, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Take in the changes of a table as a broker has them: a null value is a deletion."""
        table = self.users if name == "users" else self.items
        for key, value in changes:
            self._change(
                table, {"id": int(key), "$deleted": True} if not value else json.loads(value)
            )

    def take_orders(self, lines: Iterable[bytes]) -> None:
        """Take in orders, each against the tables as they are now."""
        for line in lines:
            self._order(line)

    def _new(self, topic: Path) -> list[bytes]:
        lines = list(lines_of(topic))[self._seen[topic.name] :]
        self._seen[topic.name] += len(lines)
        return lines

    @staticmethod
    def _change(table: dict[int, Any], row: dict[str, Any]) -> None:
        if row.get("$deleted"):
            table.pop(row["id"], None)
        else:
            table[row["id"]] = row

    def _order(self, line: bytes) -> None:
        order = order_of(line)
        if order is None:
            self.dead[line] += 1
            return
        user, item = self.users.get(order["userId"]), self.items.get(order["itemId"])
        if user is None:
            self._add("missing-users", order)
        elif item is None:
            self._add("missing-items", {**order, "user": user})
        else:
            kept = {name: order[name] for name in ("invoiceId", "lineItemId")}
            times = {name: order[name] for name in ("createdAt", "paidAt")}
            self._add("enriched-orders", {**kept, "user": user, "item": item, **times})

    def _add(self, output: str, row: dict[str, Any]) -> None:
        self.outputs[output][canonical(row)] += 1


def canonical(row: Any) -> str:
    """Return one text for equal rows."""
    return json.dumps(row, sort_keys=True)
