"""Where the memory of a job's processes goes, out of Linux's /proc and the JVM's own tracking."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from processes import proportional_sizes

# What a JVM must be started with.
TRACKING = "-XX:NativeMemoryTracking=summary"
_REGION = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ \S+ *(.*)$")
_BOUNDS = re.compile(r"\[0x([0-9a-f]+), ?0x[0-9a-f]+, ?0x([0-9a-f]+)[\])]")
_TRACKED = re.compile(r"^- +(.+) \(reserved=\d+KB, committed=(\d+)KB\)", re.MULTILINE)
# The pools of which the addresses are known; the others are what the JVM says it has committed.
_METASPACE = ("Metaspace", "Class")
_COLLECTOR = ("GC", "GCCardSet")
_COMPILER = ("Compiler", "Arena Chunk")
_HAS_ADDRESSES = ("Java Heap", "Code", "Shared class space")


class Map:
    """The map of a job's memory when it was largest."""

    def __init__(self) -> None:
        self.peak_kib = 0
        self.parts: Mapping[str, int] = {}
        self._mapped_kib = 0

    def look(self, pid: int) -> int:
        """Return the memory of a process and its children, and map it if it has grown by 3 %."""
        sizes = proportional_sizes(pid)
        total = sum(sizes.values())
        self.peak_kib = max(self.peak_kib, total)
        if total > 1.03 * self._mapped_kib and (parts := _map(sizes)):
            self._mapped_kib, self.parts = total, parts
        return total


def _map(sizes: Mapping[int, int]) -> dict[str, int]:
    """Return KiB by part; empty if there is no JVM that answers yet."""
    parts: dict[str, int] = {}
    for pid, size in sizes.items():
        command = _command(pid)
        if "java" in command.partition("\0")[0]:
            of_jvm = _map_jvm(pid, size)
            if not of_jvm:
                return {}
            parts |= of_jvm
        else:
            name = "driver" if "attempts.worker" in command else "supervisor"
            parts[f"Python, {name}"] = parts.get(f"Python, {name}", 0) + size
    return parts if len(parts) > 2 else {}


def _map_jvm(pid: int, size: int) -> dict[str, int]:
    heap, code = _bounds(pid, "GC.heap_info"), _bounds(pid, "Compiler.codecache")
    tracked = {name: int(kib) for name, kib in _TRACKED.findall(_ask(pid, "VM.native_memory"))}
    if heap is None or code is None or not tracked:
        return {}
    parts = dict.fromkeys(("heap", "compiled code", "archive of classes", "libraries, jars"), 0)
    for begin, path, kib in _regions(pid):
        if heap[0] <= begin < heap[1]:
            parts["heap"] += kib
        elif code[0] <= begin < code[1]:
            parts["compiled code"] += kib
        elif path.endswith(".jsa"):
            parts["archive of classes"] += kib
        elif path.startswith("/"):
            parts["libraries, jars"] += kib
    for name, kinds in (
        ("metaspace", _METASPACE),
        ("collector", _COLLECTOR),
        ("compiler at work", _COMPILER),
        ("threads", ("Thread",)),
        ("direct buffers", ("Other",)),
    ):
        parts[name] = sum(tracked.pop(kind, 0) for kind in kinds)
    parts["JVM, other"] = sum(kib for name, kib in tracked.items() if name not in _HAS_ADDRESSES)
    parts["not the JVM's: RocksDB, malloc"] = size - sum(parts.values())
    return parts


def _regions(pid: int) -> Iterator[tuple[int, str, int]]:
    """Yield where each region of a process begins, its file, and its KiB."""
    begin, path = 0, ""
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if region := _REGION.match(line):
            begin, path = int(region[1], 16), region[3]
        elif line.startswith("Pss:"):
            yield begin, path, int(line.split()[1])


def _bounds(pid: int, command: str) -> tuple[int, int] | None:
    found = [(int(low, 16), int(high, 16)) for low, high in _BOUNDS.findall(_ask(pid, command))]
    return (min(found)[0], max(high for _, high in found)) if found else None


def _ask(pid: int, command: str) -> str:
    jcmd = shutil.which("jcmd")
    if jcmd is None:
        raise RuntimeError("there is no jcmd: install a JDK")
    done = subprocess.run(
        [jcmd, str(pid), command], capture_output=True, text=True, check=False, timeout=60
    )
    return done.stdout


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
