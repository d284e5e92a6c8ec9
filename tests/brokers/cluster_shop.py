"""The online store on a cluster of this machine, with its checkpoints on S3: processes to kill."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path

import pytest
from broker_shop import ShopBroker
from eventually import eventually
from s3_server import S3Server
from s3_shop import S3Shop
from shop import JOB, kill

from headgate._clock import SystemClock
from headgate.brokers.process import find_process
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.sandbox.cluster import ClusterOptions, LocalCluster, start_cluster, stop_cluster
from headgate.jobs.views.logs import Log
from headgate.jobs.views.processes import Processes

# The module is beside the flow, and imported by no more than a call.
_CHECKED = """

def checked(order: Order) -> Order:
    import store_rules

    return store_rules.check(order)


with_user = orders.map("checked", checked).enrich("""
_RULES = """
def check(order):
    assert __file__.endswith("/headgate-modules/flow/store_rules.py"), __file__
    return order
"""


def give_function(flow: Path) -> None:
    """Give the store's flow a function that imports a module beside it."""
    text = flow.read_text()
    assert "with_user = orders.enrich(" in text
    flow.write_text(text.replace("with_user = orders.enrich(", _CHECKED))
    flow.with_name("store_rules.py").write_text(_RULES)


class ClusterShop(S3Shop):
    """A store with a function of its own, whose job runs on a cluster of two workers."""

    def __init__(self, folder: Path, broker: ShopBroker, s3: S3Server) -> None:
        super().__init__(folder, broker, s3)
        self.environment["SPARK_CONF_DIR"] = str(self._spark_defaults())
        self.cluster = ClusterOptions(folder=folder / "cluster", memory=1024**3, port=0)

    def set_up(self) -> None:
        """Make the topics, the flow and the cluster."""
        give_function(Path(self.flow))
        super().set_up()
        self.restore_cluster()

    def start(self, *flags: str) -> None:
        # Workers do not have the variable: its value comes from the driver.
        self.environment["SHOP_LOOKUP"] = "use_all_dns_ips"
        on = f"{self.on}?client.dns.lookup=${{env:SHOP_LOOKUP}}"
        super().start(*self.on_cluster(), "--on", on, *flags)

    def on_cluster(self) -> tuple[str, ...]:
        """Return the flags of a job on the cluster."""
        master = self.restore_cluster().master
        assert master is not None
        return ("--master", master, "--executors", "2", "--executor-memory", "512MiB")

    def _spark_defaults(self) -> Path:
        """Return a folder with a setting of Spark: a request that nobody answers is given up."""
        folder = self.folder / "conf"
        folder.mkdir(exist_ok=True)
        (folder / "spark-defaults.conf").write_text("spark.network.timeout 20s\n")
        return folder

    def restore_cluster(self) -> LocalCluster:
        """Start the processes of the cluster that do not run."""
        with pytest.MonkeyPatch.context() as environment:
            # Executors have the variables of their worker.
            for name in ("HEADGATE_CRASH_DIR", *self.s3.environment):
                environment.setenv(name, self.environment[name])
            return start_cluster(self.cluster)[0]

    def processes(self) -> Processes:
        """Return what the job tells of its driver and its executors."""
        return FolderHome(self.home).processes(JOB)

    def tail(self) -> str:
        """Return what the job and the master said last."""
        log = self.cluster.folder / "log" / "master.log"
        master = log.read_text(errors="replace")[-3000:] if log.exists() else ""
        changes = [*self.events("EXECUTOR_ADDED"), *self.events("EXECUTOR_LOST")]
        return "\n".join((super().tail(), json.dumps(changes), master))

    def executor_log(self, executor: str) -> bytes:
        """Return the log of an executor."""
        jobs = FolderHome(self.home)
        return b"\n".join(jobs.tail_log(JOB, Log.EXECUTOR, last=100_000, executor=executor))

    def kill(self, name: str) -> None:
        """Kill a process of the cluster; the executors of a worker end with it."""
        process = find_process(self.cluster.folder / f"{name}.json")
        assert process is not None
        kill(process.pid)
        eventually(lambda: not process.is_alive)

    def freeze_executor(self, number: int) -> None:
        """Stop an executor until its driver has given it up, and let it go on then."""
        pids = sorted(_executors(self.cluster.folder / "work"))
        pid = pids[number % len(pids)]
        lost = len(self.events("EXECUTOR_LOST"))
        os.kill(pid, signal.SIGSTOP)
        try:
            self.wait_until(lambda: len(self.events("EXECUTOR_LOST")) > lost)
            self.wait_for_a_batch()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def kill_executor(self, number: int) -> None:
        """Kill an executor, by its place among those that run."""
        pids = sorted(_executors(self.cluster.folder / "work"))
        if pids:
            kill(pids[number % len(pids)])

    def close(self) -> None:
        """End the job and the cluster."""
        if self.supervisor is not None and self.supervisor.poll() is None:
            self.kill_supervisor()
        stop_cluster(self.cluster.folder, clock=SystemClock())


def _executors(work: Path) -> list[int]:
    """Return the processes whose working folder is one of an executor."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            folder = (process / "cwd").readlink()
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if folder.is_relative_to(work) and any(b"ExecutorBackend" in word for word in words):
            found.append(int(process.name))
    return found
