"""Two keyed streams that one process takes, on shared state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from headgate.errors import HeadgateError
from headgate.flow.building.builder import Builder
from headgate.flow.building.computed_columns import compute_columns
from headgate.flow.building.processing import check_process_uid, kept_states
from headgate.flow.names import parse_member
from headgate.flow.operators.nodes import CoProcess, OnError, Port, WithColumns
from headgate.flow.schemas.schema import Schema
from headgate.flow.schemas.signatures import process_schema, read_process, read_right
from headgate.flow.streams.missing_methods import CONNECTED, Explained
from headgate.flow.streams.outputs import Processed
from headgate.functions.declared import describe_process
from headgate.functions.keyed import KeyedCoProcess
from headgate.functions.stored import CoProcessCallback, describe, stored_states

if TYPE_CHECKING:
    # Streams import this module: their methods return what is here.
    from headgate.flow.streams.keyed import KeyedStream


@dataclass(frozen=True, slots=True, eq=False)
class ConnectedStreams(Explained):
    """Two keyed streams without their process."""

    left: KeyedStream
    right: KeyedStream

    _kind: ClassVar[str] = "connected streams without a process"
    _instead: ClassVar[Mapping[str, str]] = CONNECTED

    def process(
        self,
        uid: str,
        function: KeyedCoProcess[Any, Any, Any],
        *,
        schema: type | str | Schema | None = None,
        on_error: str = "fail",
        name: str | None = None,
    ) -> Processed:
        """Call a process of your own with the events of both streams, on one state for each key.

        The events of a key come in the order of time; those of one partition keep their order.

        Args:
            uid: The permanent id of the operator's state; keep it to keep the state.
            function: An object of a class derived from `KeyedCoProcess[Order, Payment, Match]`,
                where `Order` is what `on_left` takes, `Payment` what `on_right` takes, and `Match`
                the dataclass of the rows that they emit.
            schema: The columns of the rows that it emits, if the class does not name a dataclass.
            on_error: As in `KeyedStream.process`, like `name`.
        """
        builder = self.left._builder
        check_process_uid(builder, uid)
        what = builder.cannot_add(f"co-process {uid!r}")
        _check_function(function, what)
        declared = describe_process(function, what=what)
        left = _keyed(self.left, what)
        right = _keyed(self.right, what, taken=[node.id for node in left.before])
        signature = read_process(declared, builder.schemas[self.left.port], what=what)
        other = read_right(declared, builder.schemas[self.right.port], what=what)
        node = CoProcess(
            uid,
            left.port,
            left.key,
            describe(function, what=what),
            process_schema(signature, schema, what=what),
            kept_states(declared, function),
            columns=signature.columns,
            timers=declared.has_timers,
            on_error=parse_member(
                OnError, on_error, name="on_error", code="BAD_FUNCTION", what=what
            ),
            right=right.port,
            right_key=right.key,
            right_columns=other.columns,
        )
        builder.add(*left.before, *right.before, node, name=name)
        builder.callbacks[uid] = CoProcessCallback(
            function, signature.argument, stored_states(declared.states), other.argument
        )
        return self.left._processed(uid)


def check_connected(builder: Builder, other: object, *, is_keyed: bool) -> None:
    """Refuse to connect a stream with something else than a keyed stream of its flow.

    Args:
        is_keyed: Whether the other one is a keyed stream, maybe of another flow.
    """
    if is_keyed and getattr(other, "_builder", None) is builder:
        return
    got = "one of another flow" if is_keyed else f"a {type(other).__name__}"
    raise HeadgateError(
        "BAD_CONNECT",
        f"{builder.cannot_add('connect')}: it needs a keyed stream of this flow, got {got}",
        hint="call key_by on both streams of one flow: "
        "orders.key_by('id').connect(payments.key_by('orderId'))",
    )


@dataclass(frozen=True, slots=True)
class _Keyed:
    """A stream whose key columns exist: those that are expressions are computed before."""

    port: Port
    key: tuple[str, ...]
    before: tuple[WithColumns, ...]


def _keyed(stream: KeyedStream, what: str, taken: list[str] | None = None) -> _Keyed:
    builder, port = stream._builder, stream.port
    computed = compute_columns(stream.columns, builder.schemas[port], reserved=(), what=what)
    key = tuple(computed.name(column) for column in stream.columns)
    if not computed.columns:
        return _Keyed(port, key, ())
    node_id = builder.free_id(port, WithColumns.operator, besides=taken or ())
    return _Keyed(Port(node_id, "out"), key, (WithColumns(node_id, port, computed.columns),))


def _check_function(function: object, what: str) -> None:
    if isinstance(function, KeyedCoProcess):
        return
    if isinstance(function, type):
        name = function.__name__
        problem, hint = f"it needs an object, got the class {name}", f"pass an object: {name}()"
    else:
        problem = f"it needs a KeyedCoProcess, got {function!r:.100}"
        hint = "derive a class from headgate.KeyedCoProcess, and pass an object of it"
    raise HeadgateError("BAD_FUNCTION", f"{what}: {problem}", hint=hint)
