"""What broadcasts do, in plain Python: the latest rule of each key, and the events behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Row = Mapping[str, Any]


class Rules:
    """The latest row of each key; a change is a row, or an object with `$deleted`."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}

    def apply(self, changes: Iterable[Row]) -> None:
        for change in changes:
            if change.get("$deleted"):
                self.rows.pop(change["id"], None)
            else:
                self.rows[change["id"]] = change

    def ordered(self) -> list[Row]:
        return [self.rows[key] for key in sorted(self.rows)]


def labels(rules: Rules, event: Row, conditions: Mapping[str, Callable[[Row], bool]]) -> list[Any]:
    """Return the labels for an event; a rule whose condition is not among these holds for none."""
    return [
        rule["label"]
        for rule in rules.ordered()
        if rule["when"] in conditions and conditions[rule["when"]](event)
    ]
