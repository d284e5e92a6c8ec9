"""The online store under fire: a job on the command line, producers, processes to kill."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eventually import eventually
from store_reference import StoreReference, canonical, lines_of

from headgate.jobs.folder_home import FolderHome
from headgate.jobs.sandbox.store import StoreOptions, produce_store

FLOW = Path(__file__).parents[2] / "examples" / "orders" / "flow.py"
JOB = "order-enrichment"
OUTPUTS = ("enriched-orders", "missing-users", "missing-items")
SHAPE = {"users": 2_000, "items": 100, "bad": 0.002, "seed": 5}


class Shop:
    """A store and its job in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.topics = folder / "topics"
        self.home = folder / "home"
        self.flow = str(FLOW)
        self.environment = dict(os.environ)
        self.supervisor: subprocess.Popen[bytes] | None = None
        self.log = folder / "supervisor.log"

    @property
    def on(self) -> str:
        return f"files:{self.topics}"

    def produce(self, number: int, orders: int, **more: Any) -> None:
        shape: dict[str, Any] = {**SHAPE, **more}
        produce_store(self.on, StoreOptions(round=number, orders=orders, **shape))

    def try_tasks(self, times: int) -> None:
        """Have a task run so many times before its batch fails; a local master runs it once."""
        folder = self.folder / "flow"
        folder.mkdir()
        self.flow = str(shutil.copy(self.flow, folder))
        (folder / "headgate.toml").write_text(
            f'[job]\nprofile = "trying"\n[profiles.trying]\nmaster = "local[2,{times}]"\n'
        )

    def start(self, *flags: str) -> None:
        """Start the job's supervisor; it goes on where the job was."""
        command = [sys.executable, "-m", "headgate", "run", self.flow, "--on", self.on]
        command += ["--home", str(self.home), "--batch-every", "300ms", "--checkpoint-every", "1s"]
        command += ["--restart", "fixed-delay:100,0s", *flags]
        with self.log.open("ab") as log:
            self.supervisor = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, env=self.environment
            )

    def headgate(self, *words: str, timeout: float = 240) -> dict[str, Any]:
        """Run a verb and return what it printed as JSON; it has to succeed."""
        command = [sys.executable, "-m", "headgate", *words, "--json", "--home", str(self.home)]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            env=self.environment,
        )
        assert done.returncode == 0, f"{words}: {done.stderr}\n{self.tail()}"
        last: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return last

    def status(self) -> dict[str, Any]:
        try:
            content: dict[str, Any] = json.loads(
                (self.home / "jobs" / JOB / "status.json").read_text()
            )
        except FileNotFoundError:
            return {}
        return content

    def is_running(self) -> bool:
        """Tell whether the supervisor of now says so, and not the status of one that is gone."""
        status = self.status()
        mine = self.supervisor is not None and status.get("pid") == self.supervisor.pid
        return mine and status.get("state") == "RUNNING"

    def events(self, kind: str) -> list[dict[str, Any]]:
        file = self.home / "jobs" / JOB / "events.jsonl"
        # A home that was removed has none.
        lines = file.read_text().splitlines() if file.exists() else ()
        found = [json.loads(line) for line in lines]
        return [each for each in found if each["event"] == kind]

    def count_executors(self) -> int:
        """Return how many executors the job has now."""
        views = FolderHome(self.home).processes(JOB).executors
        return sum(view.executor.is_alive for view in views)

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait for a condition; a failure shows the end of the supervisor's log."""
        eventually(condition, what=self.tail)

    def wait_for_attempt_after(self, attempt: int) -> None:
        self.wait_until(lambda: self.status().get("attempt", 0) > attempt)

    def wait_for_end_of(self, pid: int) -> None:
        """Wait until a process that nobody waits for is gone."""
        self.wait_until(lambda: not Path(f"/proc/{pid}/cmdline").exists())

    def kill_child(self) -> None:
        """Kill the process that holds the driver, as the system would that runs out of memory."""
        pid = self.status().get("child")
        if pid:
            kill(int(pid))

    def kill_jvm(self) -> None:
        """Kill the driver's JVM alone; the process that started it sees it end."""
        kill(self.jvm())

    def jvm(self) -> int:
        """Return the driver's JVM."""
        (jvm,) = _children(int(self.status()["child"]))
        return jvm

    def kill_supervisor(self) -> None:
        assert self.supervisor is not None
        kill(self.supervisor.pid)
        self.supervisor.wait()

    def drain(self) -> None:
        """Have the job read what is there and stop."""
        self.wait_until(self.is_running)
        ended = self.headgate("stop", JOB, "--drain")
        assert ended["state"] == "STOPPED", ended
        assert self.supervisor is not None
        assert self.supervisor.wait(timeout=60) == 0

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:] if self.log.exists() else ""

    def output(self, name: str) -> Counter[str]:
        return Counter(canonical(json.loads(line)) for line in lines_of(self.topics / name))

    def assert_exactly_once(self) -> None:
        """Every order is in exactly one output, and is what plain Python says it is."""
        reference = self.reference()
        for name in OUTPUTS:
            found, wanted = self.output(name), reference.outputs[name]
            lost, doubled = wanted - found, found - wanted
            assert not lost, f"{name}: {lost.total()} lost, such as {next(iter(lost))}"
            assert not doubled, f"{name}: {doubled.total()} doubled, such as {next(iter(doubled))}"
        assert self.count_letters() == reference.dead.total()

    def reference(self) -> StoreReference:
        """Return what plain Python makes of all that was produced."""
        reference = StoreReference()
        reference.take(self.topics)
        return reference

    def count_letters(self) -> int:
        return sum(1 for _ in lines_of(self.topics / "dead-letters"))


class Production:
    """Producers that write round after round until they are told to stop.

    They pause between rounds: on a slow machine the test would check the more orders the longer
    it takes.
    """

    def __init__(self, shop: Shop, *, orders: int = 300) -> None:
        self._shop = shop
        self._orders = orders
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._produce, daemon=True)
        self.rounds = 0

    def __enter__(self) -> Production:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _produce(self) -> None:
        while not self._done.wait(1):
            self.rounds += 1
            self._shop.produce(self.rounds, self._orders)


def freeze(shop: Shop, pid: int) -> None:
    """Stop a process, and wait until it stands: until then its other threads still run."""
    os.kill(pid, signal.SIGSTOP)
    shop.wait_until(lambda: all(map(_stands, Path(f"/proc/{pid}/task").iterdir())))


def family(pid: int) -> list[int]:
    """Return a process, and those that it and they have started."""
    return [pid, *(each for child in _children(pid) for each in family(child))]


def lose(supervisor: subprocess.Popen[bytes]) -> None:
    """Kill a supervisor and all below it at once, as the loss of their host would."""
    pids = family(supervisor.pid)
    for pid in pids:
        kill(pid)
    supervisor.wait()
    eventually(lambda: all(_is_in(Path(f"/proc/{pid}"), "ZX") for pid in pids))


def _children(pid: int) -> list[int]:
    try:
        threads = list(Path(f"/proc/{pid}/task").glob("*/children"))
        return [int(child) for thread in threads for child in thread.read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _stands(thread: Path) -> bool:
    """Tell whether a thread is stopped; one that has ended is."""
    return _is_in(thread, "TtZX")


def _is_in(task: Path, states: str) -> bool:
    """Tell whether a process or a thread is in one of some states, or gone."""
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0] in states
    except (FileNotFoundError, ProcessLookupError):
        return True


def kill(pid: int) -> None:
    """Kill one process that the test started, if it is still there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
