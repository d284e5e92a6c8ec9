"""`headgate cluster`: its processes are started once, found again, and ended together."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from eventually import eventually

from headgate.brokers.process import find_process
from headgate.errors import HeadgateError
from headgate.jobs.sandbox import cluster
from headgate.jobs.sandbox.cluster import (
    ClusterOptions,
    ClusterState,
    get_cluster_url,
    look_at_cluster,
    start_cluster,
    stop_cluster,
)
from headgate.jobs.sandbox.cluster_processes import (
    Facts,
    MasterView,
    master_command,
    worker_command,
)

SLEEPS = [sys.executable, "-S", "-c", "import time; time.sleep(100)"]


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ClusterOptions]:
    """Options of a cluster whose processes only sleep, and whose master knows all that run."""
    folder = tmp_path / "cluster"
    options = ClusterOptions(folder=folder, port=0)
    monkeypatch.setattr(cluster, "master_command", lambda *_: SLEEPS)
    monkeypatch.setattr(cluster, "worker_command", lambda *_: SLEEPS)

    def ask(_facts: Facts) -> MasterView:
        found = [find_process(file) for file in folder.glob("worker-*.json")]
        ports = {int(each.facts["port"]) for each in found if each and each.is_alive}
        return MasterView(True, frozenset(ports), 1, ("app-1",))

    monkeypatch.setattr(cluster, "ask_master", ask)
    yield options
    stop_cluster(folder)


def kill(options: ClusterOptions, name: str) -> None:
    process = find_process(options.folder / f"{name}.json")
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    eventually(lambda: not process.is_alive)


def pids(options: ClusterOptions) -> dict[str, int | None]:
    return {each.name: each.pid for each in look_at_cluster(options.folder).processes}


def test_a_second_start_changes_nothing(options: ClusterOptions) -> None:
    assert look_at_cluster(options.folder).state is ClusterState.STOPPED
    found, started = start_cluster(options)
    assert started
    assert found.state is ClusterState.RUNNING
    assert list(pids(options)) == ["master", "worker-1", "worker-2"]
    assert (found.cores, found.cores_used, found.memory) == (2, 1, 4 * 1024**3)
    before = pids(options)
    again, started = start_cluster(options)
    assert not started
    assert again == found
    assert pids(options) == before
    assert get_cluster_url(options.folder) == found.master


@pytest.mark.parametrize("change", [{"workers": 3}, {"workers": 1}, {"cores": 2}, {"port": 1}])
def test_other_options_are_refused_while_it_runs(
    options: ClusterOptions, change: dict[str, int]
) -> None:
    start_cluster(options)
    other = replace(options, **change)  # type: ignore[arg-type]
    with pytest.raises(HeadgateError) as caught:
        start_cluster(other)
    assert caught.value.code == "CLUSTER_RUNNING"
    stop_cluster(options.folder)
    if "port" not in change:
        assert len(start_cluster(other)[0].processes) == other.workers + 1


@pytest.mark.parametrize("name", ["master", "worker-2"])
def test_a_start_replaces_a_process_that_was_killed(options: ClusterOptions, name: str) -> None:
    first, _ = start_cluster(options)
    (options.folder / "recovery" / "app").touch()
    before = pids(options)
    kill(options, name)
    assert look_at_cluster(options.folder).state is ClusterState.INCOMPLETE
    again, started = start_cluster(options)
    assert started
    after = pids(options)
    assert {each for each in after if after[each] != before[each]} == {name}
    # Workers and drivers find the new master where the old one was, and it remembers them.
    assert again.master == first.master
    assert (options.folder / "recovery" / "app").exists()


def test_a_stop_ends_all_and_is_repeatable(options: ClusterOptions) -> None:
    start_cluster(options)
    (options.folder / "recovery" / "app").touch()
    found, stopped = stop_cluster(options.folder)
    assert stopped
    assert found.state is ClusterState.STOPPED
    assert all(pid is None for pid in pids(options).values())
    # A later master knows nothing of applications that are gone.
    assert not (options.folder / "recovery").exists()
    assert not stop_cluster(options.folder)[1]


def test_a_worker_that_ends_at_once_is_reported(
    options: ClusterOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = [sys.executable, "-S", "-c", "print('ERROR no memory'); raise SystemExit(1)"]
    monkeypatch.setattr(cluster, "worker_command", lambda *_: fails)
    monkeypatch.setattr(cluster, "ask_master", lambda _: None)
    with pytest.raises(HeadgateError) as caught:
        start_cluster(options)
    assert caught.value.code == "CLUSTER_NOT_STARTED"
    assert caught.value.message.startswith("cannot start the worker of a cluster")
    # The processes of a failed start are ended.
    assert look_at_cluster(options.folder).state is ClusterState.STOPPED


def test_a_port_that_is_taken_is_refused(options: ClusterOptions) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = replace(options, port=server.getsockname()[1])
        with pytest.raises(HeadgateError) as caught:
            start_cluster(taken)
    assert caught.value.code == "CLUSTER_PORT_TAKEN"


def test_a_cluster_that_was_never_started_has_no_address(tmp_path: Path) -> None:
    with pytest.raises(HeadgateError) as caught:
        get_cluster_url(tmp_path / "none")
    assert caught.value.code == "CLUSTER_NOT_FOUND"
    assert look_at_cluster(tmp_path / "none").processes == ()


def test_commands_are_for_this_machine_alone(tmp_path: Path) -> None:
    master = {"port": 7077, "web": 8080}
    worker = {"port": 7078, "cores": 2, "memory": 2 * 1024**3}
    commands: list[Sequence[str]] = [
        master_command(tmp_path, master),
        worker_command(tmp_path, worker, master),
    ]
    for command in commands:
        assert "SPARK_LOCAL_IP=127.0.0.1" in command
        assert command[command.index("--host") + 1] == "127.0.0.1"
    assert commands[1][-1] == "spark://127.0.0.1:7077"
    assert commands[1][commands[1].index("-m") + 1] == "2048m"
