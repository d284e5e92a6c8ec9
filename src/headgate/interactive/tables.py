"""Lists that show themselves as a table: as text at a prompt, as HTML in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from headgate.flow.drawing.html import table

_Item = TypeVar("_Item")
_LONGEST_CELL = 60


class Rows(list[_Item]):
    """A list with the columns of a table.

    Args:
        cells: Returns the texts of an item, by column.
    """

    def __init__(
        self,
        items: Iterable[_Item],
        columns: Sequence[str],
        cells: Callable[[_Item], Sequence[str]],
    ) -> None:
        super().__init__(items)
        self._columns = columns
        self._cells = cells

    def __repr__(self) -> str:
        return text_table(self._columns, [self._cells(item) for item in self])

    def _repr_html_(self) -> str:
        return table(self._columns, [self._cells(item) for item in self])


def text_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as lines of text, with long cells cut."""
    lines = [[_cut(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _cut(cell: str) -> str:
    flat = cell.replace("\n", " ")
    return flat if len(flat) <= _LONGEST_CELL else f"{flat[: _LONGEST_CELL - 1]}…"
