"""Methods that users of other libraries look for on a flow's objects, and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from headgate.errors import HeadgateError

_ENRICH = ".enrich('with-user', flow.table('users', User, key='id'), on='userId', into='user')"
_WINDOW = ".key_by('shop').window('per-shop', tumbling('15m')).aggregate(orders=count()).updates"
_COMPUTE = ".with_columns(total='price * 2'), or .map('clean', my_function) for Python"
_UNION = ".union(returns), a stream with the same columns"
_PROCESS = ".key_by('userId').process('fraud', Fraud()).out, where Fraud is a KeyedProcess"
_CONNECT = ".key_by('id').connect(payments.key_by('orderId')).process('match', Match()).out"
_CALL = ".call('geo', locate).ok, where locate is an async function"
_OUTPUT = ".to('my-topic'), or .to(Console()) to see the rows"

# What to write on a stream, by the name in other libraries.
STREAM: Mapping[str, str] = {
    "shuffle": ".rebalance()",
    "repartition": ".rebalance()",
    "merge": _UNION,
    "concat": _UNION,
    "unionAll": _UNION,
    "unionByName": _UNION,
    "flatMap": ".flat_map('lines', my_function)",
    "mapInPandas": ".map_batches('score', my_function) on pyarrow.Tables",
    "map_async": _CALL,
    "async_map": _CALL,
    "async_io": _CALL,
    "mapInArrow": ".map_batches('score', my_function) on pyarrow.Tables",
    "apply": _COMPUTE,
    "withColumn": _COMPUTE,
    "with_column": _COMPUTE,
    "process": _PROCESS,
    "stateful_map": _PROCESS,
    "transformWithState": _PROCESS,
    "flatMapGroupsWithState": _PROCESS,
    "applyInPandasWithState": _PROCESS,
    "connect": _CONNECT,
    "cogroup": _CONNECT,
    "coGroup": _CONNECT,
    "group_by": _WINDOW,
    "groupBy": _WINDOW,
    "keyBy": _WINDOW,
    "aggregate": _WINDOW,
    "agg": _WINDOW,
    "sum": _WINDOW,
    "count": _WINDOW,
    "distinct": ".dedupe('first-orders', by='id', within='1h').unique",
    "dropDuplicates": ".dedupe('first-orders', by='id', within='1h').unique",
    "broadcast": "flow.broadcast('rules', Rule, key='id'), then .label or .with_broadcast",
    "print": ".to(Console())",
    "sink": _OUTPUT,
    "sink_to": _OUTPUT,
    "write": _OUTPUT,
    "writeStream": _OUTPUT,
}
# The methods of a stream, which its neighbours do not have.
_OF_STREAM = (
    "enrich",
    "key_by",
    "window",
    "dedupe",
    "join",
    "union",
    "rebalance",
    "select",
    "where",
    "with_columns",
    "transform",
    "map",
    "flat_map",
    "filter",
    "map_batches",
    "call",
    "label",
    "with_broadcast",
    "to",
)
_KEYED = f"key_by is for window and process: {_WINDOW}; {_PROCESS}"
_TABLE = f"enrich a stream with it: orders{_ENRICH}"

_BROADCAST = (
    "label a stream with it: orders.label('apply', rules), or call a process with it: "
    "orders.with_broadcast('apply', rules, Apply())"
)

BROADCAST: Mapping[str, str] = dict.fromkeys((*_OF_STREAM, *STREAM), _BROADCAST)
TABLE: Mapping[str, str] = dict.fromkeys((*_OF_STREAM, *STREAM), _TABLE)
KEYED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            name
            for name in (*_OF_STREAM, *STREAM)
            if name not in ("window", "process", "connect", "with_broadcast")
        ),
        _KEYED,
    ),
    "reduce": _KEYED,
}
CONNECTED: Mapping[str, str] = dict.fromkeys(
    (name for name in (*_OF_STREAM, *STREAM, "reduce") if name != "process"),
    "call process first: .process('match', Match()).out.to('my-topic')",
)
WINDOWED: Mapping[str, str] = dict.fromkeys(
    (name for name in (*_OF_STREAM, *STREAM, "reduce") if name != "aggregate"),
    "call aggregate first: .aggregate(orders=count()).updates.to('my-topic')",
)


def of_outputs(main: str) -> Mapping[str, str]:
    """Return what to write on the outputs of an operator, whose main output has this name."""
    hints = {name: f"choose an output: .{main}.{name}(...)" for name in _OF_STREAM}
    return {**{name: f"on .{main}: {hint}" for name, hint in STREAM.items()}, **hints}


class MissingMethodError(HeadgateError, AttributeError):
    """A method that does not exist; also an AttributeError, as `hasattr` and `copy` need it."""


class Explained:
    """Explains the methods that its users may look for; other names stay plain AttributeErrors."""

    __slots__ = ()

    _kind: ClassVar[str]
    _instead: ClassVar[Mapping[str, str]]

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the columns of a stream, or of an operator's outputs."""
        from headgate.flow.drawing.html import show_part

        return show_part(self, self._kind)

    # Hidden from type checkers, which report missing methods themselves.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> None:
            """Raise the error of a missing attribute."""
            kind = type(self)
            if name not in kind._instead:
                raise AttributeError(
                    f"{kind.__name__!r} object has no attribute {name!r}", name=name, obj=self
                )
            raise MissingMethodError(
                "NO_SUCH_METHOD",
                f"cannot call {name!r} on {kind._kind}: there is no such method",
                hint=kind._instead[name],
            )
