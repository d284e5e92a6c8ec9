"""A background process that outlives its starter, and is identified by a file.

The file holds the process id and the start time, so that a later process with the same id is never
mistaken for it, and never killed in its place.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path

from headgate._clock import Clock
from headgate._disk import replace_file
from headgate.errors import Domain, HeadgateError

FORMAT = 1
_LOOK_EVERY = timedelta(milliseconds=50)
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Process:
    """A started process.

    Attributes:
        birth: The system's record of its start, unique among processes with this id.
        since: When it was started, in UTC.
        facts: Details that its owner stores, such as its ports.
    """

    pid: int
    birth: str
    since: datetime
    facts: Mapping[str, str | int]

    @property
    def is_alive(self) -> bool:
        """Whether it is running."""
        return read_birth(self.pid) == self.birth


def read_birth(pid: int, proc: Path = Path("/proc")) -> str | None:
    """Return a text that identifies a process among those with its id, or None if it has exited."""
    if not proc.is_dir():
        return _ask_birth(pid)
    try:
        # The name may hold blanks and parentheses; the text after it does not.
        fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    if fields[0] in "ZX" and int(fields[17]) <= 1:
        # It has exited, and its parent has not waited for it yet. While other threads of it are
        # still exiting, its ports and files are not free.
        return None
    boot = _BOOT.read_text().strip() if _BOOT.exists() else ""
    return f"{boot}/{fields[19]}"


def _ask_birth(pid: int) -> str | None:
    command = ["ps", "-o", "state=,lstart=", "-p", str(pid)]
    words = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    return " ".join(words[1:]) if words and not words[0].startswith("Z") else None


def find_process(file: Path) -> Process | None:
    """Return the process in a file, alive or not; None without such a file."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise _unreadable(file, f"it is corrupted ({error})") from error
    format_ = content.pop("format", None)
    if format_ != FORMAT:
        raise _unreadable(file, f"its format is {format_!r}, and this release reads {FORMAT}")
    return Process(**{**content, "since": datetime.fromisoformat(content["since"])})


def start_process(
    command: Sequence[str],
    file: Path,
    *,
    output: Path,
    facts: Mapping[str, str | int],
    clock: Clock,
) -> Process:
    """Start a process detached from the terminal, and record it in a file.

    Args:
        output: The file for its standard streams; replaced if it exists.
    """
    since = clock.now()
    with output.open("wb") as sink:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            cwd=file.parent,
            start_new_session=True,
        )
    process = Process(child.pid, read_birth(child.pid) or "over", since, facts)
    _write(file, process)
    # It is no longer anyone's child: from here on it is known by its id only.
    child.returncode = 0
    return process


def stop_process(
    process: Process,
    *,
    grace: timedelta,
    clock: Clock,
    by: signal.Signals = signal.SIGTERM,
) -> bool:
    """End a process and return when it has exited; False if it had to be killed.

    Args:
        by: The signal at which it exits.
        grace: How long it may take to exit after the request.
    """
    if _ended(process, by, grace, clock):
        return True
    if _ended(process, signal.SIGKILL, grace, clock):
        return False
    raise HeadgateError(
        "BROKER_NOT_STOPPED",
        f"cannot end process {process.pid}: it still exists after SIGKILL",
        hint=f"ps -o pid,stat,wchan,cmd -p {process.pid}",
        domain=Domain.EXTERNAL,
        retryable=True,
    )


def _ended(process: Process, number: signal.Signals, within: timedelta, clock: Clock) -> bool:
    deadline = clock.monotonic() + within.total_seconds()
    if process.is_alive:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)
    while process.is_alive:
        if clock.monotonic() >= deadline:
            return False
        clock.sleep(_LOOK_EVERY)
    collect(process.pid)
    return True


def collect(pid: int) -> None:
    """Reap a process that was a child of this one; until then, programs may take it for alive."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Lock a folder, so that of two commands the second waits for the first."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _write(file: Path, process: Process) -> None:
    content = {"format": FORMAT, **asdict(process), "since": process.since.isoformat()}
    replace_file(file, json.dumps(content, indent=2) + "\n")


def _unreadable(file: Path, problem: str) -> HeadgateError:
    return HeadgateError(
        "BROKER_FILE_BROKEN",
        f"cannot read from {file} which process runs here: {problem}",
        hint=f"stop the broker if it runs, then: rm {file}",
        domain=Domain.EXTERNAL,
    )
