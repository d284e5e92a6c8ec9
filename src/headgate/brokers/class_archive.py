"""Archives of a broker's classes, with which a start takes half as long.

To create one, a separate broker is started and stopped once for each Java and version. If that
fails, brokers start without it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

from headgate._artifacts import Progress, get_java
from headgate._clock import Clock
from headgate.brokers.process import Process, alone_in, stop_process

_LOOK_EVERY = timedelta(milliseconds=200)
_SERVES_WITHIN = timedelta(seconds=60)
_ENDS_WITHIN = timedelta(seconds=60)

Launch: TypeAlias = Callable[[Path, Sequence[str]], Process]
"""Starts a broker in an empty folder with further options of Java."""


def get_archive(
    folder: Path,
    launch: Launch,
    is_serving: Callable[[Process], bool],
    *,
    jars: Sequence[Path] = (),
    progress: Progress,
    clock: Clock,
) -> Path | None:
    """Return the archive of a broker's classes; None if it cannot be created.

    Args:
        folder: Where archives of this version are.
        jars: The class path, as far as it may change in place.
    """
    file = folder / f"classes-{_identify(jars)}.jsa"
    with suppress(OSError):
        # Fails in a read-only cache, as in an image.
        folder.mkdir(parents=True, exist_ok=True)
    if not file.exists() and os.access(folder, os.W_OK):
        with alone_in(folder):
            # Another process may have created it meanwhile.
            if not file.exists():
                progress("preparing for faster starts, once: some 20 s")
                _create(file, folder, launch, is_serving, clock)
    return file if file.exists() and file.stat().st_size else None


def use_archive(archive: Path | None) -> list[str]:
    """Return the options of Java that use an archive; empty without one."""
    return [] if archive is None else [f"-XX:SharedArchiveFile={archive}"]


def _identify(jars: Sequence[Path]) -> str:
    """Return a text that identifies a Java and jars: Java reads only archives of its own."""
    java = Path(get_java("start a broker")).resolve()
    known = hashlib.sha256()
    for path in (java, *jars):
        facts = path.stat()
        known.update(f"{path} {facts.st_size} {facts.st_mtime_ns}".encode())
    return known.hexdigest()[:12]


def _create(
    file: Path,
    folder: Path,
    launch: Launch,
    is_serving: Callable[[Process], bool],
    clock: Clock,
) -> None:
    with tempfile.TemporaryDirectory(prefix=".classes-", dir=folder) as trial:
        made = Path(trial) / "classes.jsa"
        process = launch(Path(trial), [f"-XX:ArchiveClassesAtExit={made}", "-Xlog:disable"])
        deadline = clock.monotonic() + _SERVES_WITHIN.total_seconds()
        while process.is_alive and clock.monotonic() < deadline and not is_serving(process):
            clock.sleep(_LOOK_EVERY)
        stop_process(process, grace=_ENDS_WITHIN, clock=clock)
        # An empty file records the failure, so that later starts do not try again.
        made.touch()
        made.rename(file)
