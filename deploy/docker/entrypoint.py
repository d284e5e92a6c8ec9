"""The first process of a Headgate container: runs headgate, or an executor of Spark on Kubernetes.

It passes SIGTERM and SIGINT on, reaps processes whose parent has gone, and ends with the code of
what it runs: 128 and the signal's number if that was killed.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

_BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_OPTION = "SPARK_JAVA_OPT_"
# What Spark's driver tells an executor's pod, by the backend's option.
_FACTS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


def command_for(arguments: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return the command of a container's arguments."""
    if list(arguments[:1]) == ["executor"]:
        return executor_command(environment)
    return [sys.executable, "-m", "headgate", *arguments]


def executor_command(environment: Mapping[str, str]) -> list[str]:
    """Return the command of an executor, from the variables that Spark's driver has set."""
    options = [name for name in environment if name.startswith(_OPTION)]
    options.sort(key=lambda name: int(name.removeprefix(_OPTION)))
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    folders = [environment.get(name) for name in ("SPARK_CONF_DIR", "SPARK_CLASSPATH")]
    class_path = os.pathsep.join([*filter(None, folders), str(_spark_home() / "jars" / "*")])
    facts = [part for option, name in _FACTS.items() for part in (option, environment[name])]
    return [
        str(Path(environment["JAVA_HOME"]) / "bin" / "java"),
        *(environment[name] for name in options),
        f"-Xms{memory}",
        f"-Xmx{memory}",
        "-cp",
        class_path,
        _BACKEND,
        *facts,
    ]


def run(command: Sequence[str]) -> int:
    """Run a command as a child, and return its exit code."""
    child = os.posix_spawnp(command[0], list(command), os.environ)

    def forward(number: int, _frame: FrameType | None) -> None:
        os.kill(child, number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, forward)
    while True:
        ended, status = os.wait()
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _spark_home() -> Path:
    spec = find_spec("pyspark")
    assert spec is not None, "the image has PySpark"
    assert spec.origin is not None
    return Path(spec.origin).parent


if __name__ == "__main__":
    sys.exit(run(command_for(sys.argv[1:], os.environ)))
