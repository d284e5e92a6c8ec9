"""An interval join in plain Python: a nested loop over all rows that ever came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

OUTPUTS = ("matched", "left_only", "right_only", "late")


@dataclass(frozen=True, slots=True)
class Arrival:
    """A row of one side; times are epoch milliseconds."""

    n: int
    side: str
    key: str
    at: int


@dataclass(slots=True)
class _Waiting:
    row: Arrival
    matched: bool = False


@dataclass(slots=True)
class JoinModel:
    """One join, batch by batch. A right row matches from `before` earlier to `after` later."""

    before: int
    after: int
    waiting: list[_Waiting] = field(default_factory=list)

    def batch(self, watermark: int, rows: Iterable[Arrival]) -> dict[str, Counter[object]]:
        """Return what each output gets: pairs of numbers, or numbers."""
        made: dict[str, Counter[object]] = {name: Counter() for name in OUTPUTS}
        for row in rows:
            if row.at < watermark:
                made["late"][row.n] += 1
                continue
            own = _Waiting(row)
            for other in self.waiting:
                left, right = (own, other) if row.side == "left" else (other, own)
                if self._is_pair(left.row, right.row):
                    made["matched"][left.row.n, right.row.n] += 1
                    left.matched = right.matched = True
            self.waiting.append(own)
        over = [each for each in self.waiting if self.leaves(each.row) <= watermark]
        self.waiting = [each for each in self.waiting if self.leaves(each.row) > watermark]
        for each in over:
            if not each.matched:
                made[f"{each.row.side}_only"][each.row.n] += 1
        return made

    def leaves(self, row: Arrival) -> int:
        """Return the watermark from which on nothing can match a row."""
        return row.at + (self.after if row.side == "left" else self.before) + 1

    def keys(self) -> set[str]:
        """Return the keys with a row that something may still match."""
        return {each.row.key for each in self.waiting}

    def _is_pair(self, left: Arrival, right: Arrival) -> bool:
        sides = (left.side, right.side) == ("left", "right")
        close = left.at - self.before <= right.at <= left.at + self.after
        return sides and left.key == right.key and close


def total(made: Sequence[dict[str, Counter[object]]]) -> dict[str, Counter[object]]:
    """Return what each output got in all batches together."""
    return {name: sum((batch[name] for batch in made), Counter()) for name in OUTPUTS}
