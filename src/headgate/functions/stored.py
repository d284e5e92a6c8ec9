"""Functions as text: pickled by value, so that a later attempt calls what was stored."""

from __future__ import annotations

import base64
import hashlib
import inspect
import pickle
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from headgate.errors import HeadgateError
from headgate.functions.code_text import read_code
from headgate.functions.declared import DeclaredState, StateKind
from headgate.functions.installed import Installed, find_installed
from headgate.functions.keyed import AnyProcess
from headgate.functions.moved import unpickle
from headgate.functions.python_types import PythonType

# A flow's JSON contains its functions, and every checkpoint contains the flow's JSON.
LARGEST = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class StoredFunction:
    """A function of the user.

    Two are equal if their names and sources are: the bytes of equal functions may differ.

    Attributes:
        name: `module:function`; the module of a flow's own file is `flow`.
        digest: The SHA-256 of its source, and of the user's files beside it or of the module of an
            installed package.
        code: The function and the type of its argument, pickled, compressed, in base64; empty
            while the flow is being declared.
        python: The Python version that pickled it: "3.11".
        source: The SHA-256 of the module's file, if that is of an installed package: `code` names
            the function then, and does not contain it.
    """

    name: str
    digest: str
    code: str = field(default="", compare=False)
    python: str = field(default="", compare=False)
    source: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class RowType:
    """What a row, or a struct in it, is in Python.

    Annotations are resolved when the flow is declared: a worker does not have the modules that
    they name.

    Attributes:
        make: A dataclass, `dict`, or None for a row with the columns as attributes.
        parts: The types of structs in its columns, also inside lists and maps, by column.
    """

    make: type | None = None
    parts: Mapping[str, RowType] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Callback:
    """A function, and what it is called with."""

    function: Callable[..., Any]
    argument: RowType = RowType()


@dataclass(frozen=True, slots=True)
class StoredState:
    """A state of a process, as its worker needs it.

    Attributes:
        ttl: How long it is kept after it was last written, in milliseconds; None for ever.
    """

    name: str
    kind: StateKind
    value: PythonType
    key: PythonType | None = None
    ttl: int | None = None


@dataclass(frozen=True, slots=True)
class ProcessCallback:
    """A keyed process function, what it is called with, and what it keeps."""

    function: AnyProcess[Any]
    argument: RowType = RowType()
    states: tuple[StoredState, ...] = ()


@dataclass(frozen=True, slots=True)
class CoProcessCallback(ProcessCallback):
    """A process of two connected streams; `argument` is what it is called with for left events.

    Attributes:
        right: What it is called with for right events.
    """

    right: RowType = RowType()


@dataclass(frozen=True, slots=True)
class BroadcastCallback(ProcessCallback):
    """A process that sees a broadcast table.

    Attributes:
        rule: What a row of the table is for it.
    """

    rule: RowType = RowType()


def stored_states(states: Iterable[DeclaredState]) -> tuple[StoredState, ...]:
    """Return the states of a process for its callback."""
    return tuple(
        StoredState(
            state.name,
            state.kind,
            state.value_type,
            state.key_type,
            None if state.ttl is None else state.ttl // timedelta(milliseconds=1),
        )
        for state in states
    )


def describe(
    function: Callable[..., Any] | AnyProcess[Any], *, what: str, is_async: bool = False
) -> StoredFunction:
    """Return a function's name and digest, without its code.

    Args:
        function: A function, or a process.
        what: Opening words of an error message: "cannot add map 'clean' to flow 'orders'".
        is_async: Whether it is awaited.
    """
    if isinstance(function, AnyProcess):
        return StoredFunction(_name(function), _digest(function))
    if not callable(function):
        raise HeadgateError(
            "BAD_FUNCTION",
            f"{what}: it needs a function, got {function!r}",
            hint="pass a function, a lambda or an object with __call__",
        )
    if is_async:
        check_async(function, what=what)
    elif inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise HeadgateError(
            "BAD_FUNCTION",
            f"{what}: {_name(function)} is async, and functions of a flow are called directly",
            hint="use call for an async function: .call('geo', locate).ok",
        )
    return StoredFunction(_name(function), _digest(function))


def check_async(function: Callable[..., Any], *, what: str) -> None:
    """Refuse a function that does not say that it is awaited."""
    called = function if inspect.isroutine(function) else type(function).__call__
    if not inspect.iscoroutinefunction(function) and not inspect.iscoroutinefunction(called):
        raise HeadgateError(
            "BAD_FUNCTION",
            f"{what}: {_name(function)} is not an async function",
            hint="write it with async def; map calls a function that is not async",
        )


def store(
    callback: Callback | ProcessCallback, described: StoredFunction, *, what: str
) -> StoredFunction:
    """Return a function with its code.

    Everything from the user's own files is stored by value. A function of an installed package is
    stored by its name, and others use what is installed.
    """
    # Its library is needed here alone.
    from headgate.functions.pickling import digest_of_files, pickle_by_value

    try:
        pickled = pickle_by_value(callback, callback.function)
    except (pickle.PicklingError, TypeError, ValueError, RecursionError, AttributeError) as error:
        raise HeadgateError(
            "FUNCTION_NOT_STORED",
            f"{what}: {described.name} cannot be stored: {error}",
            hint="create connections, locks and open files inside the function",
        ) from error
    installed = find_installed(callback.function)
    if installed is not None:
        pickled = pickle.dumps(replace(installed, callback=pickled))
    code = base64.b64encode(zlib.compress(pickled)).decode()
    if len(code) > LARGEST:
        raise HeadgateError(
            "FUNCTION_NOT_STORED",
            f"{what}: {described.name} has {len(code)} bytes with the values that it uses, and "
            f"the limit is {LARGEST}",
            hint="load large values inside the function, from a file or a package",
        )
    source = "" if installed is None else installed.digest
    files = source or digest_of_files(callback.function)
    digest = hashlib.sha256(f"{described.digest}{files}".encode()).hexdigest()
    return StoredFunction(described.name, digest, code, present_python(), source)


def load(code: bytes) -> Callback | ProcessCallback:
    """Return the function that `store` wrote; `code` is the decoded base64.

    Raises:
        HeadgateError: PACKAGE_MISSING or FUNCTION_CHANGED, for one of an installed package.
    """
    stored = unpickle(zlib.decompress(code))
    callback = stored.load() if isinstance(stored, Installed) else stored
    assert isinstance(callback, Callback | ProcessCallback)
    return callback


def present_python() -> str:
    """Return the version of this Python, as far as pickled functions depend on it."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _name(function: Any) -> str:
    of = function if hasattr(function, "__qualname__") else type(function)
    module = getattr(function, "__module__", None) or type(function).__module__
    if module in ("headgate_user_flow", "__main__"):
        module = "flow"
    return f"{module}:{of.__qualname__}"


def _digest(function: Any) -> str:
    return hashlib.sha256(read_code(function).encode()).hexdigest()
