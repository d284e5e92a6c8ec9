"""The outputs of operators: what their methods return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from headgate.flow.building.processing import add_side
from headgate.flow.operators.nodes import Port
from headgate.flow.schemas.schema import Schema
from headgate.flow.streams.missing_methods import Explained, of_outputs

if TYPE_CHECKING:
    # Streams import this module: their methods return what is here.
    from headgate.flow.streams.stream import Stream


@dataclass(frozen=True, slots=True)
class Enriched(Explained):
    """The outputs of `enrich`.

    Attributes:
        matched: Events with the table's row added. The main output, which must be used.
        missing: Events without a matching row, unchanged. A side output: if unused, its rows are
            counted and not written.
    """

    matched: Stream
    missing: Stream

    _kind: ClassVar[str] = "the outputs of enrich"
    _instead: ClassVar[Mapping[str, str]] = of_outputs("matched")


@dataclass(frozen=True, slots=True)
class Windowed(Explained):
    """The outputs of `aggregate`.

    Attributes:
        updates: A row per result of a window. The main output, which must be used.
        late: Events whose windows are closed, unchanged. A side output: if unused, its rows are
            counted and not written.
    """

    updates: Stream
    late: Stream

    _kind: ClassVar[str] = "the outputs of a window"
    _instead: ClassVar[Mapping[str, str]] = of_outputs("updates")


@dataclass(frozen=True, slots=True)
class Deduped(Explained):
    """The outputs of `dedupe`.

    Attributes:
        unique: The first event of each key. The main output, which must be used.
        repeated: Later events of the same key. A side output.
        late: Events older than the operator's memory of keys. A side output.
    """

    unique: Stream
    repeated: Stream
    late: Stream

    _kind: ClassVar[str] = "the outputs of dedupe"
    _instead: ClassVar[Mapping[str, str]] = of_outputs("unique")


@dataclass(frozen=True, slots=True)
class Joined(Explained):
    """The outputs of `join`.

    Attributes:
        matched: A row per pair: the left row, with the right row added as a struct. The main
            output, which must be used.
        left_only: Left rows that no right row matched, unchanged. A side output: if unused, its
            rows are counted and not written.
        right_only: Likewise right rows.
        late: Rows of both sides that came after the watermark had passed their time: `side`, which
            is "left" or "right", and the row in the struct of that name. A side output.
    """

    matched: Stream
    left_only: Stream
    right_only: Stream
    late: Stream

    _kind: ClassVar[str] = "the outputs of join"
    _instead: ClassVar[Mapping[str, str]] = of_outputs("matched")


@dataclass(frozen=True, slots=True)
class Called(Explained):
    """The outputs of `call`.

    Attributes:
        ok: The rows that the function returned. The main output, which must be used.
        failed: Rows for which every attempt failed, with the struct `failure` added: `error`, the
            text of the last error, and `attempts`. A side output: if unused, its rows are counted
            and not written.
    """

    ok: Stream
    failed: Stream

    _kind: ClassVar[str] = "the outputs of call"
    _instead: ClassVar[Mapping[str, str]] = of_outputs("ok")


@dataclass(frozen=True, slots=True)
class Labelled(Explained):
    """The outputs of `label`.

    Attributes:
        out: Events with the labels of the rules that hold for them, an array. The main output,
            which must be used.
    """

    out: Stream

    _kind: ClassVar[str] = "the outputs of label"
    _instead: ClassVar[Mapping[str, str]] = of_outputs("out")


@dataclass(frozen=True, slots=True)
class Processed(Explained):
    """The outputs of `process`.

    Attributes:
        out: The rows that the process emits. The main output, which must be used.
    """

    out: Stream

    _kind: ClassVar[str] = "the outputs of process"
    _instead: ClassVar[Mapping[str, str]] = of_outputs("out")

    def side(self, name: str, schema: type | str | Schema | None = None) -> Stream:
        """Return the rows that the process emits with `ctx.side(name).emit(row)`.

        A side output: if unused, its rows are counted and not written. The same name gives the
        same output again.

        Args:
            name: Letters, digits, '-' and '_'; not `out`.
            schema: The columns of its rows; by default those of `out`.
        """
        uid, builder = self.out.port.node, self.out._builder
        add_side(builder, uid, name, schema)
        return replace(self.out, port=Port(uid, name))
