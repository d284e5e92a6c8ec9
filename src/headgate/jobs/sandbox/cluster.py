"""A standalone Spark cluster on this machine: start, stop and status.

DIR/
  lock                         held while a command starts or stops the cluster
  master.json, worker-1.json   the current or last processes, with their ports
  log/                         the output of each process
  recovery/                    what a new master has to know of its workers and applications
  work/                        a folder for each executor, with its output
"""

from __future__ import annotations

import enum
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from headgate._artifacts import Progress
from headgate._clock import Clock, SystemClock
from headgate._codec import Moment
from headgate.brokers.broker import find_ports, is_free
from headgate.brokers.process import (
    Process,
    alone_in,
    find_process,
    start_process,
    stop_process,
)
from headgate.errors import Domain, HeadgateError
from headgate.jobs.sandbox.cluster_processes import (
    HOST,
    MASTER,
    Facts,
    MasterView,
    ask_master,
    master_command,
    master_url,
    recovery_folder,
    worker_command,
    worker_name,
)
from headgate.jobs.values import DEFAULT_HOME

FOLDER = DEFAULT_HOME / "cluster"
DEFAULT_PORT = 7077
_GIB = 1024**3
_STARTS_WITHIN = timedelta(seconds=120)
# Workers end their executors first.
_STOPS_WITHIN = timedelta(seconds=30)
_LOOK_EVERY = timedelta(milliseconds=200)
_WORKER_FILE = re.compile(r"worker-(\d+)\.json")


class ClusterState(enum.StrEnum):
    """The status of a local cluster; an incomplete one lacks processes that were started."""

    RUNNING = "running"
    STARTING = "starting"
    INCOMPLETE = "incomplete"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """The options of a start.

    Attributes:
        folder: The cluster's folder.
        workers: How many workers there are.
        cores: The cores that each worker gives to executors.
        memory: The memory that each worker gives to executors, in bytes.
        port: The master's port; None for the last one or 7077, 0 for any free one.
    """

    folder: Path = FOLDER
    workers: int = 2
    cores: int = 1
    memory: int = 2 * _GIB
    port: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterProcess:
    """A process of a cluster.

    Attributes:
        pid: None if it does not run.
        log: The file of its output.
    """

    name: str
    pid: int | None
    since: Moment | None
    log: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalCluster:
    """The current status of a local cluster.

    Attributes:
        master: The value for `--master`; None if it was never started.
        cores: The cores of the workers that run.
        cores_used: Those that executors have.
        memory: The memory of the workers that run, in bytes.
        applications: The ids of the drivers that are connected.
    """

    state: ClusterState
    master: str | None
    cores: int
    cores_used: int
    memory: int
    applications: tuple[str, ...]
    processes: tuple[ClusterProcess, ...]
    folder: Path


def start_cluster(
    options: ClusterOptions, *, progress: Progress | None = None, clock: Clock | None = None
) -> tuple[LocalCluster, bool]:
    """Return a running cluster, and whether this call started a process of it.

    Processes that run are unchanged; those that have ended are started again, a master on its old
    port. The processes outlive the one that started them.

    Raises:
        HeadgateError: CLUSTER_RUNNING if it runs with other options, CLUSTER_PORT_TAKEN,
            CLUSTER_NOT_STARTED.
    """
    clock = clock or SystemClock()
    folder = options.folder.absolute()
    with alone_in(folder):
        known = _processes(folder)
        _check_same(options, known)
        if not any(process.is_alive for process in known.values()):
            # No process has to know another one.
            shutil.rmtree(recovery_folder(folder), ignore_errors=True)
        started = _start_missing(options, folder, known, clock)
        if started and progress is not None:
            progress(f"waiting for {', '.join(started)}")
        try:
            _await_workers(folder, clock)
        except HeadgateError:
            for name in reversed(started):
                stop_process(_processes(folder)[name], grace=_STOPS_WITHIN, clock=clock)
            raise
        return look_at_cluster(folder), bool(started)


def stop_cluster(folder: Path = FOLDER, *, clock: Clock | None = None) -> tuple[LocalCluster, bool]:
    """Return a stopped cluster, and whether this call stopped a process of it."""
    clock = clock or SystemClock()
    folder = folder.absolute()
    if not folder.is_dir():
        return look_at_cluster(folder), False
    with alone_in(folder):
        alive = {name: process for name, process in _processes(folder).items() if process.is_alive}
        # Workers first: they end their executors, and a master has nothing to recover then.
        for name in sorted(alive, key=lambda name: name == MASTER):
            stop_process(alive[name], grace=_STOPS_WITHIN, clock=clock)
        shutil.rmtree(recovery_folder(folder), ignore_errors=True)
        return look_at_cluster(folder), bool(alive)


def look_at_cluster(folder: Path = FOLDER) -> LocalCluster:
    """Return the current status of a folder's cluster."""
    folder = folder.absolute()
    known = _processes(folder)
    master = known.get(MASTER)
    view = ask_master(master.facts) if master is not None and master.is_alive else None
    workers = [process for name, process in known.items() if name != MASTER and process.is_alive]
    return LocalCluster(
        state=_state(known, view),
        master=None if master is None else master_url(master.facts),
        cores=sum(int(worker.facts["cores"]) for worker in workers),
        cores_used=0 if view is None else view.cores_used,
        memory=sum(int(worker.facts["memory"]) for worker in workers),
        applications=() if view is None else view.applications,
        processes=tuple(_shown(name, process, folder) for name, process in known.items()),
        folder=folder,
    )


def get_cluster_url(folder: Path = FOLDER) -> str:
    """Return the value for `--master`, or raise CLUSTER_NOT_FOUND if it was never started."""
    master = look_at_cluster(folder).master
    if master is None:
        raise HeadgateError(
            "CLUSTER_NOT_FOUND",
            f"cannot find the address of a cluster: none was started in {folder}",
            hint=f"headgate cluster start --folder {folder}",
        )
    return master


def _processes(folder: Path) -> dict[str, Process]:
    """Return the processes of a folder by name, alive or not: the master, then its workers."""
    files = [file for file in folder.glob("worker-*.json") if _WORKER_FILE.fullmatch(file.name)]
    names = sorted((file.stem for file in files), key=lambda name: int(name.rpartition("-")[2]))
    found = {name: find_process(folder / f"{name}.json") for name in (MASTER, *names)}
    return {name: process for name, process in found.items() if process is not None}


def _state(known: dict[str, Process], view: MasterView | None) -> ClusterState:
    alive = {name for name, process in known.items() if process.is_alive}
    if not alive:
        return ClusterState.STOPPED
    if len(alive) < len(known):
        return ClusterState.INCOMPLETE
    return ClusterState.RUNNING if _is_complete(known, view) else ClusterState.STARTING


def _is_complete(known: dict[str, Process], view: MasterView | None) -> bool:
    ports = {int(process.facts["port"]) for name, process in known.items() if name != MASTER}
    return view is not None and view.is_alive and ports <= view.workers


def _shown(name: str, process: Process, folder: Path) -> ClusterProcess:
    alive = process.is_alive
    return ClusterProcess(
        name=name,
        pid=process.pid if alive else None,
        since=process.since if alive else None,
        log=_log(folder, name),
    )


def _log(folder: Path, name: str) -> Path:
    return folder / "log" / f"{name}.log"


def _start_missing(
    options: ClusterOptions, folder: Path, known: dict[str, Process], clock: Clock
) -> list[str]:
    """Start the processes that do not run, and return their names."""
    (folder / "log").mkdir(exist_ok=True)
    recovery_folder(folder).mkdir(exist_ok=True)
    names = [worker_name(number + 1) for number in range(options.workers)]
    for name in known:
        # Of a larger cluster that was here before.
        if name not in (MASTER, *names):
            (folder / f"{name}.json").unlink()
    missing = [name for name in (MASTER, *names) if name not in known or not known[name].is_alive]
    free = iter(find_ports(HOST, len(missing) + 1))
    master = known.get(MASTER)
    facts: Facts = (
        {"port": _master_port(options, known), "web": next(free)}
        if MASTER in missing or master is None
        else master.facts
    )
    for name in missing:
        if name == MASTER:
            command, own = master_command(folder, facts), facts
        else:
            own = {"port": next(free), "cores": options.cores, "memory": options.memory}
            command = worker_command(folder, own, facts)
        start_process(
            command, folder / f"{name}.json", output=_log(folder, name), facts=own, clock=clock
        )
    return missing


def _master_port(options: ClusterOptions, known: dict[str, Process]) -> int:
    last = known.get(MASTER)
    port = options.port
    if last is not None and any(process.is_alive for process in known.values()):
        # Workers and drivers look for a master where it was.
        port = int(last.facts["port"])
    elif port is None:
        port = DEFAULT_PORT if last is None else int(last.facts["port"])
    if port == 0:
        return find_ports(HOST, 1)[0]
    if not is_free(HOST, port):
        raise HeadgateError(
            "CLUSTER_PORT_TAKEN",
            f"cannot start a cluster on port {port}: another program listens there",
            hint=f"headgate cluster start --port 0 --folder {options.folder}",
            domain=Domain.EXTERNAL,
        )
    return port


def _check_same(options: ClusterOptions, known: dict[str, Process]) -> None:
    """Refuse other options than those of the processes that run."""
    alive = {name: process for name, process in known.items() if process.is_alive}
    workers = [process for name, process in alive.items() if name != MASTER]
    wanted = {"cores": options.cores, "memory": options.memory}
    differs = any(
        process.facts[name] != value for process in workers for name, value in wanted.items()
    ) or any(name != MASTER and int(name.rpartition("-")[2]) > options.workers for name in alive)
    master = known.get(MASTER)
    moved = (
        bool(alive) and master is not None and options.port not in (None, 0, master.facts["port"])
    )
    more = alive and options.workers > sum(name != MASTER for name in known)
    if differs or moved or more:
        raise HeadgateError(
            "CLUSTER_RUNNING",
            f"cannot start a cluster in {options.folder} with {options.workers} workers of "
            f"{options.cores} cores: one runs there with other options",
            hint=f"headgate cluster stop --folder {options.folder}",
        )


def _await_workers(folder: Path, clock: Clock) -> None:
    """Return when the master knows all workers; raise if a process ends, or it takes too long."""
    deadline = clock.monotonic() + _STARTS_WITHIN.total_seconds()
    while True:
        known = _processes(folder)
        dead = [name for name, process in known.items() if not process.is_alive]
        if dead:
            raise _not_started(folder, dead[0], "its process ended")
        if _is_complete(known, ask_master(known[MASTER].facts)):
            return
        if clock.monotonic() >= deadline:
            raise _not_started(folder, MASTER, "not all workers registered")
        clock.sleep(_LOOK_EVERY)


def _not_started(folder: Path, name: str, problem: str) -> HeadgateError:
    log = _log(folder, name)
    return HeadgateError(
        "CLUSTER_NOT_STARTED",
        f"cannot start the {name.partition('-')[0]} of a cluster in {folder}: {problem}: "
        f"{_last_words(log.read_text(errors='replace').splitlines())}",
        hint=f"tail {log}",
        domain=Domain.EXTERNAL,
    )


def _last_words(lines: Sequence[str]) -> str:
    texts = [line.strip() for line in lines if line.strip()]
    bad = [line for line in texts if " ERROR " in line or "Exception" in line]
    return (bad or texts or ["it printed nothing"])[-1]
