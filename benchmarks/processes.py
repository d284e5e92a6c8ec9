"""What processes take of the machine, out of Linux's /proc."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_LOOK_EVERY = 0.25


@dataclass(frozen=True, slots=True)
class Used:
    """What a command took, its children included."""

    seconds: float
    peak_kib: int
    cpu_seconds: float


def run_measured(command: Sequence[str], log: Path) -> Used:
    """Run a command to its end, with its output in a file, and return what it took.

    Raises:
        RuntimeError: It failed; with the end of its output.
    """
    began, peak, cpu = time.monotonic(), 0, 0.0
    with log.open("wb") as said, subprocess.Popen(command, stdout=said, stderr=said) as process:
        while process.poll() is None:
            peak = max(peak, peak_memory_kib(process.pid))
            cpu = max(cpu, cpu_seconds(process.pid))
            time.sleep(_LOOK_EVERY)
    seconds = time.monotonic() - began
    if process.returncode:
        told = log.read_text(errors="replace")[-3000:]
        raise RuntimeError(f"{' '.join(command[:2])} ended with {process.returncode}:\n{told}")
    return Used(seconds, peak, cpu)


def peak_memory_kib(pid: int) -> int:
    """Return the peak resident memory of a process and of its children, added up.

    A child that has yet to become its own program shows its parent's memory, and is not counted.
    """
    peaks: dict[tuple[bytes, int], int] = {}
    for each in process_tree(pid):
        program, peak = _memory(each)
        peaks[program] = max(peak, peaks.get(program, 0))
    return sum(peaks.values())


def shared_memory_kib(pid: int) -> int:
    """Return the memory that a process and its children have now; common pages count once."""
    return sum(proportional_sizes(pid).values())


def proportional_sizes(pid: int) -> dict[int, int]:
    """Return the memory of a process and of its children with their shares of common pages, in KiB.

    A child that has yet to become its own program shows its parent's memory, and is left out.
    """
    programs = {_memory(each)[0]: each for each in reversed(list(process_tree(pid)))}
    return {each: proportional_kib(each) for each in programs.values()}


def proportional_kib(pid: int) -> int:
    """Return the memory of a process with its share of common pages (PSS); 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process and of its children, those that ended among them."""
    return sum(_cpu_seconds(each) for each in process_tree(pid))


def process_tree(pid: int) -> Iterator[int]:
    """Yield a process and all that descend from it."""
    yield pid
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from process_tree(int(child))
    except (FileNotFoundError, ProcessLookupError):
        # A process that has just ended has no children left to tell of.
        return


def _memory(pid: int) -> tuple[tuple[bytes, int], int]:
    """Return a process's command and size, which tell its memory from others', and its peak."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return (b"", 0), 0
    sizes = {line.split()[0]: int(line.split()[1]) for line in lines if line.startswith("Vm")}
    return (command, sizes.get("VmSize:", 0)), sizes.get("VmHWM:", 0)


def _cpu_seconds(pid: int) -> float:
    try:
        # The name may hold blanks and parentheses; what follows it does not.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(int(field) for field in fields[11:15]) / _TICKS
