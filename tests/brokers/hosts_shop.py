"""The online store on hosts that share nothing but an S3 server and a broker."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from broker_shop import ShopBroker
from cluster_shop import give_function
from eventually import eventually
from network_hosts import Hosts
from s3_server import S3Server
from s3_shop import S3Shop

from headgate._artifacts import cache_folder, spark_jars

ROOT = Path(__file__).parents[2]
MASTER, WORKERS, DRIVERS = "master", ("worker-1", "worker-2"), ("driver-1", "driver-2")
_PORT = 7077


class HostsShop(S3Shop):
    """A store whose job runs on a cluster: each process has a host and a folder of its own.

    Drivers have Headgate installed. Workers have the jars of PySpark, and of Headgate nothing.
    """

    def __init__(self, folder: Path, broker: ShopBroker, s3: S3Server) -> None:
        super().__init__(folder, broker, s3)
        del self.environment["HEADGATE_CRASH_DIR"]
        self.hosts = Hosts(folder / "network")
        self._folders = {name: folder / "hosts" / name for name in (MASTER, *WORKERS, *DRIVERS)}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._driver = DRIVERS[0]

    def set_up(self) -> None:
        """Make the topics, the hosts, and the processes of the cluster."""
        super().set_up()
        for name, folder in self._folders.items():
            folder.mkdir(parents=True)
            if name in DRIVERS:
                self._give_flow(folder / "flow")
        self.hosts.open(tuple(self._folders))
        self.hosts.relay(self.s3.port)
        self.hosts.relay(int(self.broker.url.rpartition(":")[2]))
        address = self.hosts.addresses[MASTER]
        self._start_daemon(MASTER, "master.Master", "--host", address, "--port", str(_PORT))
        eventually(lambda: self.hosts.listens(MASTER, _PORT), what="the master")
        for name in WORKERS:
            self.start_worker(name)

    def _give_flow(self, folder: Path) -> None:
        """Put a flow with a function of a module beside it into the folder of a driver."""
        shutil.copytree(Path(self.flow).parent, folder)
        give_function(folder / "flow.py")

    def start_worker(self, name: str) -> None:
        """Start a worker, which registers with the master."""
        folder = self._folders[name]
        words = ("--host", self.hosts.addresses[name], "-c", "1", "-m", "1g")
        self._start_daemon(name, "worker.Worker", *words, "-d", str(folder / "work"), self.master)

    @property
    def master(self) -> str:
        """What `--master` takes."""
        return f"spark://{self.hosts.addresses[MASTER]}:{_PORT}"

    def _start_daemon(self, name: str, daemon: str, *words: str) -> None:
        home, folder = spark_jars().parent, self._folders[name]
        variables = {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": self.hosts.addresses[name],
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
        }
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{daemon}", *words]
        self._processes[name] = self._start_process(
            name, command, variables, hidden=[ROOT / "src", cache_folder()]
        )

    def _start_process(
        self, name: str, words: list[str], variables: dict[str, str], *, hidden: list[Path]
    ) -> subprocess.Popen[bytes]:
        """Start a process on a host, which sees no other host's folder."""
        others = [folder for other, folder in self._folders.items() if other != name]
        shared = [self.folder / "flow", *others, *hidden]
        with (self._folders[name] / "output.log").open("ab") as output:
            return subprocess.Popen(
                self.hosts.command(name, words, hidden=shared),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd=self._folders[name],
                env={**self.environment, **variables},
            )

    def start_on(self, driver: str) -> None:
        """Start the job on a host that has its flow, and nothing else of it."""
        self._driver, folder = driver, self._folders[driver]
        self.home, self.log = folder / "home", folder / "output.log"
        self.flow = str(folder / "flow" / "flow.py")
        command = [sys.executable, "-m", "headgate", "run", self.flow, "--on", self.on]
        command += ["--home", str(self.home), "--checkpoints", self.store, "--parallelism", "2"]
        command += ["--master", self.master, "--executors", "2", "--executor-memory", "512MiB"]
        command += ["--batch-every", "300ms", "--checkpoint-every", "1s"]
        command += ["--restart", "fixed-delay:100,0s"]
        self.supervisor = self._start_process(driver, command, {}, hidden=[])

    def lose_worker(self, name: str) -> None:
        """End all processes of a worker's host at once."""
        process = self._processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    @contextlib.contextmanager
    def vanished(self, name: str) -> Iterator[None]:
        """Cut a worker's host off from the others in the block, without a word to them.

        It still reaches the broker and the store: what runs there goes on, and may write.
        """
        self.hosts.cut(name)
        try:
            yield
        finally:
            self.hosts.join(name)

    def wait_for_rows(self) -> None:
        """Wait until readers see more rows than now."""
        before = self.output("enriched-orders").total()
        self.wait_until(lambda: self.output("enriched-orders").total() > before)

    def close(self) -> None:
        """End all processes, and remove the hosts."""
        if self.supervisor is not None and self.supervisor.poll() is None:
            self.lose_driver()
        for name in tuple(self._processes):
            self.lose_worker(name)
        self.hosts.close()
