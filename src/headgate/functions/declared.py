"""What the class of a keyed process function declares: its state, its rows and its timers."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import sys
import types
import typing
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headgate.errors import HeadgateError
from headgate.functions.broadcast import BroadcastProcess
from headgate.functions.keyed import AnyProcess, KeyedCoProcess, KeyedProcess, ListOf, MapOf, Value
from headgate.functions.python_types import (
    PythonType,
    UnsupportedType,
    key_type,
    python_type,
    shown,
)

# Columns of the stored record, and words of the context.
_RESERVED = frozenset({"key", "cleanup"})
_HINT = "declare state as in: last: Value[float], recent: ListOf[Order] or seen: MapOf[str, int]"


class StateKind(enum.StrEnum):
    """How a state is kept."""

    VALUE = "value"
    LIST = "list"
    MAP = "map"


_KINDS: dict[Any, StateKind] = {
    Value: StateKind.VALUE,
    ListOf: StateKind.LIST,
    MapOf: StateKind.MAP,
}


@dataclass(frozen=True, slots=True)
class DeclaredState:
    """A state of a process.

    Attributes:
        value: The annotation of the value, of a list's items or of a map's values.
        value_type: The same, resolved.
        key: The annotation of a map's keys; None for others.
        ttl: How long it is kept after it was last written; None for ever.
    """

    name: str
    kind: StateKind
    value: Any
    value_type: PythonType
    key: Any = None
    key_type: PythonType | None = None
    ttl: timedelta | None = None


@dataclass(frozen=True, slots=True)
class DeclaredProcess:
    """What a process declares.

    Attributes:
        states: In order of declaration, those of base classes first.
        event: The annotation of its events: a dataclass, dict or Any. Of connected streams, that of
            the left one.
        right: The annotation of the events of the right stream; None without connected streams.
        result: The annotation of its rows; Any if it is not declared.
        has_timers: True if it has an on_timer.
        has_broadcast: True if it sees a broadcast table.
        rule: The annotation of the table's rows.
    """

    states: tuple[DeclaredState, ...]
    event: Any
    result: Any
    has_timers: bool
    right: Any = None
    has_broadcast: bool = False
    rule: Any = Any

    @property
    def has_ttl(self) -> bool:
        """True if some state expires."""
        return any(state.ttl is not None for state in self.states)


def describe_process(
    process: AnyProcess[Any] | type, *, what: str = "cannot use the process"
) -> DeclaredProcess:
    """Return what a process declares, or raise HeadgateError with BAD_FUNCTION.

    Args:
        process: The class, or an object of it.
        what: Opening words of an error message: "cannot add process 'fraud' to flow 'orders'".
    """
    cls = process if isinstance(process, type) else type(process)
    if not issubclass(cls, KeyedProcess | KeyedCoProcess):
        raise _bad(
            f"{what}: it needs a KeyedProcess, got {shown(cls)}",
            "derive the class from headgate.KeyedProcess, and pass an object of it",
        )
    try:
        _check_methods(cls)
        hints = _hints(cls)
        bindings = _bindings(cls)
        states = [
            state
            for name, hint in hints.items()
            if (state := _state(cls, name, _bound(hint, bindings))) is not None
        ]
        _check_names(cls, process, states)
    except _Wrong as error:
        raise _bad(f"{what}: {cls.__name__} {error}", error.hint) from error
    is_connected = issubclass(cls, KeyedCoProcess)
    return DeclaredProcess(
        tuple(states),
        bindings.get(_LEFT if is_connected else _EVENT, Any),
        bindings.get(_RESULT, Any),
        cls.on_timer not in (AnyProcess.on_timer, BroadcastProcess.on_timer),
        bindings.get(_RIGHT, Any) if is_connected else None,
        issubclass(cls, BroadcastProcess),
        bindings.get(_RULE, Any),
    )


_EVENT, _RESULT = KeyedProcess.__parameters__  # type: ignore[attr-defined]
_LEFT, _RIGHT, _ = KeyedCoProcess.__parameters__  # type: ignore[attr-defined]
_RULE = BroadcastProcess.__parameters__[1]  # type: ignore[attr-defined]


class _Wrong(Exception):  # noqa: N818 - a declaration, and what is wrong with it
    def __init__(self, message: str, hint: str = _HINT) -> None:
        super().__init__(message)
        self.hint = hint


def _bad(message: str, hint: str) -> HeadgateError:
    return HeadgateError("BAD_FUNCTION", message, hint=hint)


def _check_methods(cls: type[AnyProcess[Any]]) -> None:
    base = KeyedCoProcess if issubclass(cls, KeyedCoProcess) else KeyedProcess
    handlers = ("on_left", "on_right") if base is KeyedCoProcess else ("on_event",)
    for name in handlers:
        if getattr(cls, name) in (getattr(base, name), BroadcastProcess.on_event):
            raise _Wrong(f"has no {name}", f"define {name}(self, event, ctx)")
    for name, arguments in (("open", 1), *((name, 3) for name in handlers), ("on_timer", 3)):
        method = getattr(cls, name)
        if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
            raise _Wrong(f"has an async {name}", f"write {name} with def instead of async def")
        if inspect.isgeneratorfunction(method):
            raise _Wrong(f"has an {name} with yield", "write rows with ctx.emit(row)")
        try:
            inspect.signature(method).bind(*[None] * arguments)
        except TypeError:
            wanted = {"open": "self", "on_timer": "self, timer, ctx"}.get(name, "self, event, ctx")
            raise _Wrong(
                f"has {name}{inspect.signature(method)}, which is called in another way",
                f"define {name}({wanted})",
            ) from None


def _hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except (NameError, TypeError, AttributeError, SyntaxError) as cause:
        raise _Wrong(
            f"has annotations that cannot be read: {cause}",
            "define the types that it names at the top of the module",
        ) from cause


def _bindings(cls: type) -> dict[Any, Any]:
    """Return what each type variable of the bases of a class stands for."""
    bound: dict[Any, Any] = {}
    for part in cls.__mro__:
        for base in getattr(part, "__orig_bases__", ()) if "__orig_bases__" in vars(part) else ():
            origin = typing.get_origin(base)
            if origin is None or origin is typing.Generic:
                continue
            for variable, argument in zip(
                getattr(origin, "__parameters__", ()), typing.get_args(base), strict=False
            ):
                bound.setdefault(variable, _bound(_evaluated(argument, part), bound))
    return bound


def _evaluated(argument: Any, cls: type) -> Any:
    text = argument.__forward_arg__ if isinstance(argument, typing.ForwardRef) else argument
    if not isinstance(text, str):
        return argument
    names = {**vars(sys.modules[cls.__module__]), cls.__name__: cls}
    try:
        return eval(text, names)
    except NameError as cause:
        raise _Wrong(
            f"names the type {text!r}, which cannot be read: {cause}",
            "define the types that it names at the top of the module",
        ) from cause


def _bound(hint: Any, bindings: dict[Any, Any]) -> Any:
    """Return an annotation with its type variables replaced."""
    if isinstance(hint, typing.TypeVar):
        return bindings.get(hint, Any)
    variables = getattr(hint, "__parameters__", ())
    if not variables or isinstance(hint, type):
        return hint
    return hint[tuple(bindings.get(variable, Any) for variable in variables)]


def _state(cls: type, name: str, hint: Any) -> DeclaredState | None:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    kind = _KINDS.get(origin)
    if kind is None:
        for inner in (hint, *arguments):
            if inner in _KINDS or typing.get_origin(inner) in _KINDS:
                raise _Wrong(f"declares state {name!r} as {shown(hint)}, without a type of its own")
        return None
    default = _default(cls, name)
    if default is not None and type(default) is not origin:
        raise _Wrong(
            f"declares state {name!r} as {shown(origin)} and sets it to {default!r:.100}",
            f"write {name}: {shown(origin)}[…] = {shown(origin)}(ttl='1h'), or set it to nothing",
        )
    key = arguments[0] if kind is StateKind.MAP else None
    try:
        return DeclaredState(
            name,
            kind,
            value=arguments[-1],
            value_type=python_type(arguments[-1]),
            key=key,
            key_type=None if key is None else key_type(key),
            ttl=None if default is None else default.ttl,
        )
    except UnsupportedType as cause:
        raise _Wrong(
            f"declares state {name!r} with a type that cannot be stored: {cause}",
            "use int, float, str, bool, bytes, datetime, date, Decimal, list[X], dict[str, X], "
            "X | None or a dataclass",
        ) from cause


def _default(cls: type, name: str) -> Any:
    """Return what the body of a class sets a name to; None if that is nothing."""
    default = getattr(cls, name, None)
    if isinstance(default, types.MemberDescriptorType):
        # A dataclass with slots has its defaults elsewhere.
        field = getattr(cls, "__dataclass_fields__", {}).get(name)
        default = getattr(field, "default", None)
    return None if default is dataclasses.MISSING else default


def _check_names(cls: type, process: AnyProcess[Any] | type, states: list[DeclaredState]) -> None:
    names = {state.name for state in states}
    lower: dict[str, str] = {}
    for name in names:
        other = lower.setdefault(name.lower(), name)
        if other != name:
            raise _Wrong(
                f"declares states {min(name, other)!r} and {max(name, other)!r}, which differ by "
                "case only",
                "rename one of them",
            )
        if name in _RESERVED or name.startswith(("_", "$")):
            raise _Wrong(f"declares a state with the reserved name {name!r}", "rename it")
        if any(callable(vars(part).get(name)) for part in cls.__mro__):
            raise _Wrong(f"declares a state with the name of its method {name!r}", "rename it")
        own = {} if isinstance(process, type) else getattr(process, "__dict__", {})
        # A dataclass sets each field to its default.
        if name in own and own[name] is not _default(cls, name):
            raise _Wrong(
                f"sets state {name!r} in __init__",
                f"leave self.{name} to Headgate; set it in on_event with self.{name}.set(…)",
            )
    for part in cls.__mro__:
        for name, value in vars(part).items():
            if isinstance(value, Value | ListOf | MapOf) and name not in names:
                kind = type(value).__name__
                raise _Wrong(
                    f"has {name!r} without an annotation", f"write {name}: {kind}[…] = {kind}(…)"
                )
