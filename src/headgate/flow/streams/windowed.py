"""Windows of a keyed stream, before their aggregates are named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

from headgate.errors import HeadgateError
from headgate.flow.building.computed_columns import ComputedColumns, compute_columns
from headgate.flow.operators.aggregates import Aggregate, NamedAggregate
from headgate.flow.operators.nodes import (
    RESULT_COLUMNS,
    Port,
    Window,
    WithColumns,
)
from headgate.flow.operators.windowing import (
    Trigger,
    Windows,
)
from headgate.flow.streams.missing_methods import (
    WINDOWED,
    Explained,
)
from headgate.flow.streams.outputs import (
    Windowed,
)
from headgate.flow.streams.stream import outputs

if TYPE_CHECKING:
    # Keyed streams import this module.
    from headgate.flow.streams.keyed import KeyedStream


@dataclass(frozen=True, slots=True, eq=False)
class WindowedStream(Explained):
    """A window operator without its aggregates."""

    _keyed: KeyedStream
    uid: str
    windows: Windows
    lateness: timedelta
    early: tuple[Trigger, ...]
    name: str | None = None

    _kind: ClassVar[str] = "a window without aggregates"
    _instead: ClassVar[Mapping[str, str]] = WINDOWED

    def aggregate(self, **aggregates: Aggregate) -> Windowed:
        """Compute these aggregates for each key and window.

        Rows of `updates` have the key columns, `window_start`, `window_end`, the aggregates,
        `partial`, `correction` and `processed_at`. Keys and arguments that are expressions are
        computed first, as with `with_columns`; rows of `late` have these columns too.

        Args:
            aggregates: Aggregates by result column: visits=count(), total=sum("price * 2").
        """
        keyed = self._keyed
        for name, aggregate in aggregates.items():
            if not isinstance(aggregate, Aggregate):
                raise HeadgateError(
                    "BAD_AGGREGATE",
                    f"{keyed._builder.cannot_add(f'window {self.uid!r}')}: {name} must be an "
                    f"aggregate, got {aggregate!r}",
                    hint="from headgate.windows import count, sum, min, max",
                )
        computed = self._computed(aggregates)
        before = self._before(computed)
        named = tuple(
            NamedAggregate(name, _on_column(aggregate, computed))
            for name, aggregate in aggregates.items()
        )
        port = Port(before[-1].id, "out") if before else keyed.port
        key = tuple(computed.name(column) for column in keyed.columns)
        node = Window(self.uid, port, key, self.windows, named, self.lateness, self.early)
        keyed._builder.add(*before, node, name=self.name)
        return Windowed(*outputs(self.uid, Window.outputs, keyed._builder))

    def _computed(self, aggregates: Mapping[str, Aggregate]) -> ComputedColumns:
        keyed = self._keyed
        arguments = [aggregate.column for aggregate in aggregates.values()]
        return compute_columns(
            (*keyed.columns, *(text for text in arguments if isinstance(text, str))),
            keyed._builder.schemas[keyed.port],
            reserved=(*RESULT_COLUMNS, *aggregates),
            what=keyed._builder.cannot_add(f"window {self.uid!r}"),
        )

    def _before(self, computed: ComputedColumns) -> tuple[WithColumns, ...]:
        if not computed.columns:
            return ()
        port, builder = self._keyed.port, self._keyed._builder
        node_id = builder.free_id(port, WithColumns.operator)
        return (WithColumns(node_id, port, computed.columns),)


def _on_column(aggregate: Aggregate, computed: ComputedColumns) -> Aggregate:
    column = aggregate.column
    return aggregate if column is None else replace(aggregate, column=computed.name(column))
