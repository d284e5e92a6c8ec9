"""Functions of installed packages: stored by their name, with a digest of their source."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import operator
import sys
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

from headgate.errors import HeadgateError
from headgate.functions.keyed import AnyProcess
from headgate.functions.moved import unpickle

# Folders of installed packages.
FOLDERS = ("site-packages", "dist-packages")


@dataclass(frozen=True, slots=True)
class Installed:
    """What is stored of a function, or of a process's class, of an installed package.

    Attributes:
        name: Its name in the module.
        digest: The SHA-256 of the module's file.
        callback: The callback, pickled; it has the function or the class by name.
    """

    module: str
    name: str
    digest: str
    callback: bytes = b""

    def load(self) -> Any:
        """Return the callback, or raise HeadgateError if the module's file is another one.

        That is compared before anything is imported.
        """
        check_source(self.module, self.digest, what=f"cannot load {self.module}:{self.name}")
        return unpickle(self.callback)


def find_installed(function: Any) -> Installed | None:
    """Return a function or process by its name; None if it is not of an installed package.

    Functions without a name that leads to them, such as lambdas, are not found.
    """
    of = type(function) if isinstance(function, AnyProcess) else function
    if not (inspect.isfunction(of) or inspect.isclass(of)):
        return None
    module = sys.modules.get(of.__module__)
    if module is None or _find_member(module, of.__qualname__) is not of:
        return None
    digest = find_digest(of.__module__)
    return None if digest is None else Installed(of.__module__, of.__qualname__, digest)


def check_source(module: str, digest: str, *, what: str) -> None:
    """Raise HeadgateError unless the file of an installed module has this digest.

    Args:
        what: Opening words of the message: "cannot plan map 'clean'".
    """
    present = find_digest(module)
    if present is None:
        package = module.partition(".")[0]
        raise HeadgateError(
            "PACKAGE_MISSING",
            f"{what}: the module {module!r} is not installed",
            hint=f"pip install {package}, in the version that the job ran with",
        )
    if present != digest:
        raise HeadgateError(
            "FUNCTION_CHANGED",
            f"{what}: the file of module {module!r} has the digest {present[:12]}, and the job "
            f"was stored with {digest[:12]}",
            hint="install the version of the package that the job ran with, or start the job from "
            "its flow's file: headgate run FLOW",
        )


def find_digest(module: str) -> str | None:
    """Return the digest of an installed module's file, without importing it; None without one."""
    spec = _find_spec(module)
    if spec is None or not spec.has_location or spec.origin is None:
        return None
    file = Path(spec.origin).resolve()
    if not any(part in FOLDERS for part in file.parts):
        return None
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return None


def _find_spec(module: str) -> ModuleSpec | None:
    top, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except ValueError:
        # A module that somebody put together by hand.
        return None
    name = top
    for part in rest:
        if spec is None or spec.submodule_search_locations is None:
            return None
        name = f"{name}.{part}"
        # importlib's own search imports the package first.
        spec = PathFinder.find_spec(name, list(spec.submodule_search_locations))
    return spec


def _find_member(module: Any, name: str) -> Any:
    try:
        return operator.attrgetter(name)(module)
    except AttributeError:
        return None
