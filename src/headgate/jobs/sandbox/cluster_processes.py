"""The processes of a local Spark cluster: their commands, and what the master says of them."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate._artifacts import get_java, spark_jars

HOST = "127.0.0.1"
MASTER = "master"
_MIB = 1024**2
_DAEMON_MEMORY = "256m"
_ANSWERS_WITHIN = 5.0
# They start processes and answer questions: the second compiler would only take time.
_DAEMON_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
# A worker that cannot reach its master gives up after minutes by default. It tries every 5 to 15 s.
_PATIENCE = 1_000_000

Facts = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class MasterView:
    """What the master knows.

    Attributes:
        is_alive: Whether it gives out executors; it recovers first after a restart.
        workers: The ports of the workers that it hears of.
        cores_used: The cores that executors have.
        applications: The ids of the drivers that are connected.
    """

    is_alive: bool
    workers: frozenset[int]
    cores_used: int
    applications: tuple[str, ...]


def worker_name(number: int) -> str:
    """Return the name of a worker; they count from 1."""
    return f"worker-{number}"


def master_command(folder: Path, facts: Facts) -> list[str]:
    """Return the command of the master.

    It keeps its workers and applications in a folder, so that a new master on the same port knows
    them: otherwise it would end their executors.
    """
    options = {
        "spark.deploy.recoveryMode": "FILESYSTEM",
        "spark.deploy.recoveryDirectory": str(recovery_folder(folder)),
        "spark.ui.killEnabled": "false",
    }
    command = _command("master.Master", {}, options)
    return [
        *command,
        *("--host", HOST, "--port", str(facts["port"]), "--webui-port", str(facts["web"])),
    ]


def worker_command(folder: Path, facts: Facts, master: Facts) -> list[str]:
    """Return the command of a worker."""
    options = {
        "spark.worker.initialRegistrationRetries": str(_PATIENCE),
        "spark.worker.maxRegistrationRetries": str(_PATIENCE),
        # The folders of executors that ended stay for a day.
        "spark.worker.cleanup.enabled": "true",
        "spark.worker.cleanup.appDataTtl": "86400",
        "spark.ui.killEnabled": "false",
    }
    command = _command("worker.Worker", {"SPARK_LOCAL_DIRS": str(folder / "local")}, options)
    return [
        *command,
        *("--host", HOST, "--port", str(facts["port"]), "--webui-port", "0"),
        *("-c", str(facts["cores"]), "-m", f"{int(facts['memory']) // _MIB}m"),
        *("-d", str(folder / "work"), master_url(master)),
    ]


def recovery_folder(folder: Path) -> Path:
    """Return the folder in which a master keeps its workers and applications."""
    return folder / "recovery"


def master_url(facts: Facts) -> str:
    """Return the value for `--master`."""
    return f"spark://{HOST}:{facts['port']}"


def ask_master(facts: Facts) -> MasterView | None:
    """Return what the master knows; None while it does not answer."""
    url = f"http://{HOST}:{facts['web']}/json/"
    with suppress(OSError, ValueError):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=_ANSWERS_WITHIN) as answer:
            return _parse_view(json.load(answer))
    return None


def _parse_view(content: Mapping[str, Any]) -> MasterView:
    alive = [worker for worker in content["workers"] if worker["state"] == "ALIVE"]
    return MasterView(
        is_alive=content["status"] == "ALIVE",
        workers=frozenset(int(worker["port"]) for worker in alive),
        cores_used=sum(int(worker["coresused"]) for worker in alive),
        applications=tuple(str(application["id"]) for application in content["activeapps"]),
    )


def _command(
    daemon: str, environment: Mapping[str, str], options: Mapping[str, str]
) -> Sequence[str]:
    get_java("start a cluster")
    home = spark_jars().parent
    java = " ".join([_DAEMON_JAVA, *(f'"-D{name}={value}"' for name, value in options.items())])
    variables = {
        "SPARK_HOME": str(home),
        # The pages of the web interface, too, are for this machine alone.
        "SPARK_LOCAL_IP": HOST,
        "SPARK_DAEMON_MEMORY": _DAEMON_MEMORY,
        "SPARK_DAEMON_JAVA_OPTS": java,
        **environment,
    }
    return [
        # It becomes the process that it starts, as spark-class does.
        shutil.which("env") or "/usr/bin/env",
        *(f"{name}={value}" for name, value in variables.items()),
        str(home / "bin" / "spark-class"),
        f"org.apache.spark.deploy.{daemon}",
    ]
