"""The folder in which a flow's classes are recorded: it and its processes end with the block.

All processes of a recording have the folder in their environment. SIGTERM and SIGHUP end them as
Ctrl-C does. What a killed `headgate prepare` left behind is removed by the next one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from headgate._kernel.archive import RECORD, clear_unfinished

_PREFIX = "headgate-prepare-"
_LOCK = "lock"
# A folder without a lock is being created, or an older release made it.
_UNLOCKED_S = 600.0
_ENDING_S = 10.0
_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
_PROC = Path("/proc")


@contextmanager
def open_recording_folder() -> Iterator[Path]:
    """Give an empty folder; at the end, its processes are killed and the folder is removed.

    Folders whose process was killed are cleared first.
    """
    clear_leftovers()
    with _signals_as_exits():
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
        try:
            with (folder / _LOCK).open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield folder
        finally:
            _clear(folder)


def clear_leftovers() -> None:
    """Remove the folders of recordings whose process is gone, and end their processes.

    Parts of archives that such a process left in the cache are removed, too.
    """
    for folder in Path(tempfile.gettempdir()).resolve().glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_uid == os.getuid() and _is_left(folder):
                _clear(folder)
    clear_unfinished()


def _is_left(folder: Path) -> bool:
    try:
        with (folder / _LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except BlockingIOError:
        return False
    except FileNotFoundError:
        return time.time() - folder.stat().st_mtime > _UNLOCKED_S


def _clear(folder: Path) -> None:
    deadline = time.monotonic() + _ENDING_S
    while (processes := _find_processes(folder)) and time.monotonic() < deadline:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)


def _find_processes(folder: Path) -> list[int]:
    """Return the processes of a recording; empty on systems that do not show environments."""
    wanted = f"{RECORD}={folder}".encode()
    processes = []
    for file in _PROC.glob("[0-9]*/environ"):
        # One that has ended meanwhile, or is of another user.
        with contextlib.suppress(OSError):
            if wanted in file.read_bytes().split(b"\0"):
                processes.append(int(file.parent.name))
    return [process for process in processes if process != os.getpid()]


@contextmanager
def _signals_as_exits() -> Iterator[None]:
    def leave(number: int, _frame: FrameType | None) -> None:
        # Only the first one: another must not cut the cleaning short.
        for other in _SIGNALS:
            signal.signal(other, signal.SIG_IGN)
        raise SystemExit(128 + number)

    try:
        kept = {number: signal.signal(number, leave) for number in _SIGNALS}
    except ValueError:
        # Another thread than the main one: signals are not its business.
        kept = {}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
