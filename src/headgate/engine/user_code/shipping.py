"""What executors need of Python: an interpreter, the flow's modules, and Headgate's own.

On one machine they are where the driver has them. To a cluster, the driver sends the modules as an
archive, and the interpreter as another if there is one; each executor unpacks them in its own
working folder.
"""

from __future__ import annotations

import os
import re
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES
from pathlib import Path
from typing import TYPE_CHECKING

from headgate._units import format_size
from headgate.engine.session.masters import is_local
from headgate.engine.settings import MIB, SparkSettings
from headgate.errors import HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import CallNode, Process, Transform

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The folders of unpacked archives in an executor's working folder.
MODULES = "headgate-modules"
ENVIRONMENT = "headgate-python"
# In the archive of modules.
FLOW, CODE = f"{MODULES}/flow", f"{MODULES}/code"
# How the kernel is told of a path in an executor's working folder.
_SENT = "sent:"
_LARGEST = 64 * MIB
_MODULE_SUFFIXES = (*SOURCE_SUFFIXES, *EXTENSION_SUFFIXES)
_PACKAGE = Path(__file__).resolve().parents[2]
# Folders without modules of the user's.
_NO_MODULES = frozenset({"__pycache__", "node_modules", "site-packages"})
# Of a virtual environment.
_ENVIRONMENT_MARK = "pyvenv.cfg"
# Entries of an archive have a time; with a fixed one, equal modules give equal archives.
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Places:
    """Where processes that call Python functions find Python.

    Attributes:
        python: The interpreter.
        modules: The folders that are searched for the flow's modules.
        code: The folder with Headgate's own modules; None for those that are installed.
    """

    python: str
    modules: tuple[str, ...]
    code: str | None = None


def find_places(settings: SparkSettings, near: Path | None) -> Places:
    """Return where the kernel finds Python in processes with tasks.

    Args:
        near: The flow's folder; None for a flow without one.
    """
    if is_local(settings.master):
        return Places(sys.executable, () if near is None else (str(near),))
    if settings.py_env is not None:
        python = f"{_SENT}{ENVIRONMENT}/bin/python"
    else:
        python = settings.python or sys.executable
    return Places(python, (f"{_SENT}{FLOW}",), f"{_SENT}{CODE}")


def find_spark_python(settings: SparkSettings) -> str:
    """Return the interpreter of Spark's own Python workers on a cluster."""
    # Relative to the working folder of an executor.
    if settings.py_env is not None:
        return f"./{ENVIRONMENT}/bin/python"
    return settings.python or sys.executable


def calls_python(graph: Graph) -> bool:
    """Return True if a flow calls functions of the user in Python."""
    return any(isinstance(node, CallNode | Process | Transform) for node in graph.nodes)


def send(spark: SparkSession, settings: SparkSettings, near: Path | None) -> None:
    """Let executors have the flow's modules and the Python environment before their first task."""
    archive = settings.log_file.absolute().with_name("modules.zip")
    pack(near, archive)
    context = spark.sparkContext
    context.addArchive(f"{archive.as_uri()}#{MODULES}")
    if settings.py_env is not None:
        context.addArchive(f"{settings.py_env.absolute().as_uri()}#{ENVIRONMENT}")


def pack(near: Path | None, archive: Path) -> None:
    """Write the modules of a flow's folder and Headgate's own into an archive.

    Raises:
        HeadgateError: FLOW_FOLDER_TOO_LARGE.
    """
    making = archive.with_name(f"{archive.name}.{os.getpid()}.tmp")
    with zipfile.ZipFile(making, "w", zipfile.ZIP_DEFLATED) as target:
        _add(target, "code", _PACKAGE.parent, sorted(_PACKAGE.rglob("*.py")))
        if near is not None:
            files = sorted(find_modules(near))
            _check_size(near, files)
            _add(target, "flow", near, files)
        # An archive without the folder would leave a path that nobody can search.
        target.writestr(zipfile.ZipInfo("flow/", _EPOCH), "")
    making.replace(archive)


def find_modules(folder: Path) -> Iterator[Path]:
    """Yield what Python can import from a folder: its modules, and all files of its packages."""
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not _is_skipped(Path(root, name))]
        is_package = Path(root) != folder and "__init__.py" in files
        for name in files:
            file = Path(root, name)
            if (is_package or name.endswith(_MODULE_SUFFIXES)) and file.is_file():
                yield file


def in_users_terms(texts: Sequence[str], near: Path | None) -> list[str]:
    """Return texts of executors with the paths that sent modules have on this machine."""
    return [_in_users_terms(text, near) for text in texts]


def _in_users_terms(text: str, near: Path | None) -> str:
    for sent, here in ((FLOW, near), (CODE, _PACKAGE.parent)):
        if here is not None:
            # Tracebacks have paths between quotes.
            text = re.sub(rf'[^"\n]*/{sent}/', f"{here}/".replace("\\", "\\\\"), text)
    return text


def _is_skipped(folder: Path) -> bool:
    return (
        folder.name.startswith(".")
        or folder.name in _NO_MODULES
        or (folder / _ENVIRONMENT_MARK).is_file()
    )


def _check_size(folder: Path, files: Sequence[Path]) -> None:
    size = sum(file.stat().st_size for file in files)
    if size > _LARGEST:
        raise HeadgateError(
            "FLOW_FOLDER_TOO_LARGE",
            f"cannot send the modules in {folder} to executors: they have {format_size(size)}, and "
            f"the limit is {format_size(_LARGEST)}",
            hint="move the flow to a folder of its own, or install packages: --py-env env.tar.gz",
        )


def _add(target: zipfile.ZipFile, name: str, base: Path, files: Sequence[Path]) -> None:
    for file in files:
        entry = zipfile.ZipInfo(f"{name}/{file.relative_to(base).as_posix()}", _EPOCH)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = 0o644 << 16
        target.writestr(entry, file.read_bytes())
