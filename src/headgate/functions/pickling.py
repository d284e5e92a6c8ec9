"""Pickles functions by value: with everything that they use from the user's own files."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import inspect
import io
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

from headgate.functions.installed import FOLDERS


def pickle_by_value(value: Any, function: Any) -> bytes:
    """Return a value with a function pickled; raise what pickling raises.

    Modules of the user's own files are pickled by value. Installed packages are pickled by name,
    and imported when the value is read.
    """
    buffer = io.BytesIO()
    with _by_value(function):
        _Pickler(buffer).dump(value)
    return buffer.getvalue()


def digest_of_files(function: Any) -> str:
    """Return the SHA-256 of the user's files that a function is stored with."""
    digest = hashlib.sha256()
    files = [
        (module.__name__, Path(str(module.__file__)))
        for module in _own_modules(function)
        if getattr(module, "__file__", None)
    ]
    for name, file in sorted(files):
        with contextlib.suppress(OSError):
            digest.update(name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Keeps the one value by which dataclasses know that a field has no default."""

    def reducer_override(self, obj: Any) -> Any:
        if obj is dataclasses.MISSING:
            return "MISSING"
        return super().reducer_override(obj)


@contextlib.contextmanager
def _by_value(function: Any) -> Iterator[None]:
    known = cloudpickle.list_registry_pickle_by_value()
    # A module may be in sys.modules twice: multiprocessing gives a script a second name.
    own = {module.__name__: module for module in _own_modules(function)}
    new = [module for name, module in own.items() if name not in known]
    for module in new:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in new:
            cloudpickle.unregister_pickle_by_value(module)


def _own_modules(function: Any) -> list[ModuleType]:
    """Return the modules of the user's that a function may use: of its folder and those below.

    The main module is not among them without a file; it is pickled by value anyway.
    """
    plain = getattr(function, "func", function)
    is_named = inspect.isroutine(plain) or inspect.isclass(plain)
    module = inspect.getmodule(plain if is_named else type(plain))
    file = getattr(module, "__file__", None)
    if module is None:
        return []
    if file is None and module.__name__ == "__main__":
        # A notebook or a prompt: it imports modules from the working directory.
        return _own_modules_of(Path.cwd())
    if file is None:
        # A module without a file cannot be imported elsewhere; Python's own can.
        return [] if module.__name__ in sys.builtin_module_names else [module]
    return _own_modules_of(_resolve(file).parent) if _is_own(file) else []


def _own_modules_of(folder: Path) -> list[ModuleType]:
    return [
        other
        for other in list(sys.modules.values())
        if (path := getattr(other, "__file__", None)) is not None
        and _resolve(path).is_relative_to(folder)
        and _is_own(path)
    ]


@functools.cache
def _is_own(file: str) -> bool:
    """Return True if a module's file is the user's, not Python's, Headgate's or a package's."""
    path = _resolve(file)
    standard = _resolve(sysconfig.get_paths()["stdlib"])
    headgate = _resolve(__file__).parents[1]
    return not (
        path.is_relative_to(standard)
        or path.is_relative_to(headgate)
        or any(part in FOLDERS for part in path.parts)
    )


# Every function of a flow asks for the files of all modules, some 1,500.
@functools.cache
def _resolve(file: str) -> Path:
    return Path(file).resolve()
