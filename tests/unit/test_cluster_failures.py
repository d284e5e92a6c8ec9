"""Masters that do not answer, executors that are lost, and drivers without memory."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import IllegalArgumentException, PySparkException

from headgate import Flow
from headgate._clock import SystemClock
from headgate._kernel import gateway
from headgate._kernel.translate import creating_session, query_failure
from headgate.connectors.logs import bind, parse_log
from headgate.engine.session.clusters import check_cluster_settings
from headgate.engine.session.masters import check_master, find_own_address
from headgate.errors import Domain, HeadgateError
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import Run
from headgate.jobs.startup.foreground import run_job
from headgate.jobs.startup.opening import open_run
from headgate.jobs.startup.start import Start
from headgate.jobs.values import RunOptions, Watcher

OUTER = "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 "
LOST = f"{OUTER}failed 4 times, most recent failure: Lost task 0.3 (TID 3) (127.0.0.1 executor 7): "


@pytest.fixture
def listening() -> Iterator[int]:
    """Give the port of a server that answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed() -> int:
    """Give a port at which nothing answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_a_master_that_does_not_answer_is_refused_at_once(closed: int) -> None:
    began = time.monotonic()
    with pytest.raises(HeadgateError) as caught:
        check_master(f"spark://127.0.0.1:{closed},localhost:{closed}")
    assert time.monotonic() - began < 10
    refusal = caught.value
    assert (refusal.code, refusal.domain) == ("CLUSTER_UNREACHABLE", Domain.EXTERNAL)
    assert refusal.retryable
    assert f"127.0.0.1:{closed} (Connection refused), localhost:{closed} (" in refusal.message


def test_the_first_start_of_a_job_is_refused_without_a_master(closed: int, tmp_path: Path) -> None:
    flow = Flow("orders")
    flow.stream("in", "n BIGINT").to("out")
    file = tmp_path / "flow.json"
    file.write_text(flow.graph().to_json())
    options = RunOptions(
        on=f"files:{tmp_path}", home=tmp_path / "home", master=f"spark://127.0.0.1:{closed}"
    )
    with pytest.raises(HeadgateError) as caught:
        run_job(str(file), options, Watcher())
    assert caught.value.code == "CLUSTER_UNREACHABLE"
    assert not list(tmp_path.glob("home/jobs/orders/runs/*"))


def test_one_master_that_answers_is_enough(closed: int, listening: int) -> None:
    check_master(f"spark://127.0.0.1:{closed},127.0.0.1:{listening}")


@pytest.mark.parametrize("master", ["local", "local[*]", "local[4,2]", "local-cluster[2,1,1024]"])
def test_a_master_in_the_driver_is_always_there(master: str) -> None:
    check_master(master)
    assert find_own_address(master) == "127.0.0.1"


def test_kubernetes_must_answer_too(closed: int, listening: int) -> None:
    check_master(f"k8s://127.0.0.1:{listening}")
    check_master(f"k8s://http://127.0.0.1:{listening}")
    with pytest.raises(HeadgateError) as caught:
        check_master(f"k8s://https://127.0.0.1:{closed}")
    assert caught.value.code == "CLUSTER_UNREACHABLE"


def test_yarn_needs_the_files_with_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    with pytest.raises(HeadgateError) as caught:
        check_master("yarn")
    assert caught.value.code == "BAD_SETTING"
    monkeypatch.setenv("YARN_CONF_DIR", "/etc/hadoop/conf")
    check_master("yarn")
    # Spark knows more of YARN's network than this machine does.
    assert find_own_address("yarn") is None


def test_the_driver_is_found_where_its_way_to_the_master_begins(listening: int) -> None:
    assert find_own_address(f"spark://127.0.0.1:{listening}") == "127.0.0.1"
    assert find_own_address(f"k8s://https://127.0.0.1:{listening}") == "127.0.0.1"
    assert find_own_address("spark://no-such-host.invalid:1") is None


@pytest.mark.parametrize(
    ("master", "settings", "problem"),
    [
        ("local[2]", {"executors": 2}, "cannot use executors with master 'local[2]'"),
        ("spark://h:1", {"python": "python3", "py-env": "env.zip"}, "both python and py-env"),
        ("spark://h:1", {"py-env": "/no/env.tar.gz"}, "there is no such file"),
    ],
)
def test_settings_that_a_master_cannot_have_are_refused(
    master: str, settings: dict[str, Any], problem: str
) -> None:
    with pytest.raises(HeadgateError) as caught:
        check_cluster_settings(master, settings)
    assert caught.value.code == "BAD_SETTING"
    assert problem in caught.value.message
    assert caught.value.hint


def open_first_run(flow: Flow, options: RunOptions) -> Run:
    home = JobFolder(options.home, "orders")
    graph = bind(flow.graph(), parse_log(options.on))
    with home.locked():
        return open_run(Start(home, graph, options, SystemClock()))[0]


def test_a_cluster_has_as_many_tasks_as_its_executors(listening: int, tmp_path: Path) -> None:
    flow = Flow("orders")
    flow.stream("in", "n BIGINT").to("out")
    options = RunOptions(
        on=f"files:{tmp_path}",
        home=tmp_path,
        master=f"spark://127.0.0.1:{listening}",
        executors=3,
        executor_cores=2,
    )
    assert open_first_run(flow, options).parallelism == 6
    assert open_first_run(flow, replace(options, parallelism=2, fresh=True)).parallelism == 2


def test_settings_of_a_cluster_are_checked_at_every_start(tmp_path: Path) -> None:
    flow = Flow("orders")
    flow.stream("in", "n BIGINT").to("out")
    options = RunOptions(on=f"files:{tmp_path}", home=tmp_path, executors=3)
    with pytest.raises(HeadgateError, match="it has no executors"):
        open_first_run(flow, options)


@pytest.mark.parametrize(
    "master",
    ["", "spark://", "spark://host", "spark://host:port", "spark://h:1,", "mesos://h:5050"],
)
def test_a_master_of_no_known_form_is_refused(master: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        check_master(master)
    assert caught.value.code == "BAD_SETTING"
    assert repr(master) in caught.value.message


@pytest.mark.parametrize(
    ("reason", "message", "is_memory"),
    [
        ("Command exited with code 52", "with code 52 (it ran out of memory)", True),
        ("Command exited with code 137", "(it was killed by signal 9, usually for its", True),
        ("Command exited with code 99", "Command exited with code 99", False),
        ("Executor heartbeat timed out after 125000 ms", "timed out after 125000 ms", False),
    ],
)
def test_an_executor_that_is_lost_shows_its_reason(
    reason: str, message: str, is_memory: bool
) -> None:
    lost = "ExecutorLostFailure (executor 7 exited caused by one of the running tasks) Reason: "
    failure = query_failure("orders", [f"{LOST}{lost}{reason}\nDriver stacktrace:"])
    assert (failure.code, failure.domain) == ("EXECUTOR_DIED", Domain.EXTERNAL)
    assert failure.retryable
    assert "Spark's executor 7 was lost: " in failure.message
    assert message in failure.message
    assert ("executor-memory" in failure.hint) is is_memory


@pytest.mark.parametrize(
    ("task", "part", "setting"),
    [
        (LOST, "executor", "executor-memory"),
        (LOST.replace("executor 7", "executor driver"), "driver", "--driver-memory"),
        ("java.lang.RuntimeException: ", "driver", "--driver-memory"),
    ],
)
def test_a_task_without_memory_says_whose_memory_it_was(task: str, part: str, setting: str) -> None:
    root = "java.lang.OutOfMemoryError: Java heap space"
    failure = query_failure("orders", [f"{task}{root}\n\tat java", root])
    assert (failure.code, failure.retryable) == ("OUT_OF_MEMORY", True)
    assert failure.message.endswith(f"Spark's {part} ran out of memory: Java heap space")
    assert setting in failure.hint


@pytest.mark.parametrize(
    ("error", "setting"),
    [
        ("java.lang.OutOfMemoryError: Metaspace", "metaspace"),
        ("java.lang.OutOfMemoryError: Compressed class space", "metaspace"),
        (
            "java.lang.OutOfMemoryError: Cannot reserve 9 bytes of direct buffer memory",
            "direct-memory",
        ),
        (
            "io.netty.util.internal.OutOfDirectMemoryError: failed to allocate 9 byte(s) of direct "
            "memory",
            "direct-memory",
        ),
        (
            "org.apache.spark.memory.SparkOutOfMemoryError: [UNABLE_TO_ACQUIRE_MEMORY] Unable to",
            "--driver-memory",
        ),
    ],
)
def test_each_pool_that_runs_out_is_named_with_its_setting(error: str, setting: str) -> None:
    failure = query_failure("orders", [f"java.lang.RuntimeException: {error}", error])
    assert (failure.code, failure.retryable) == ("OUT_OF_MEMORY", True)
    assert failure.message.endswith(f"ran out of memory: {error.partition(': ')[2]}")
    assert setting in failure.hint


def test_a_cluster_that_ends_spark_is_told_as_such() -> None:
    cause = "org.apache.spark.SparkException: Job 3 cancelled because SparkContext was shut down"
    failure = query_failure("orders", [cause])
    assert failure.code == "CLUSTER_UNREACHABLE"
    assert failure.message.endswith("Spark stopped: SparkContext was shut down")


@pytest.mark.parametrize(
    ("master", "code", "message"),
    [
        (
            "local[2]",
            "DRIVER_NOT_STARTED",
            "cannot start Spark: System memory 1 must be at least 2",
        ),
        ("spark://h:1", "CLUSTER_UNREACHABLE", "cannot start Spark on spark://h:1: System memory"),
    ],
)
def test_a_session_that_cannot_be_created_has_one_line(
    master: str, code: str, message: str
) -> None:
    with pytest.raises(HeadgateError) as caught, creating_session(master):
        raise IllegalArgumentException("System memory 1 must be at least 2\n\tat java")
    assert caught.value.code == code
    assert caught.value.message.startswith(message)
    assert "\n" not in caught.value.message
    assert caught.value.retryable is (code == "CLUSTER_UNREACHABLE")


def test_a_full_disk_keeps_its_code_while_spark_starts() -> None:
    with pytest.raises(HeadgateError) as caught, creating_session("local[2]"):
        raise PySparkException("java.io.IOException: No space left on device")
    assert (caught.value.code, caught.value.retryable) == ("DISK_FULL", True)


def test_a_driver_that_runs_out_of_memory_at_its_start_has_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "spark.out"
    output.write_text("Terminating due to java.lang.OutOfMemoryError: of an earlier start\n")
    said = ["warning", "Terminating due to java.lang.OutOfMemoryError: Java heap space"]

    def launch(_conf: object, popen_kwargs: dict[str, Any]) -> NoReturn:
        popen_kwargs["stdout"].write("\n".join(said).encode())
        popen_kwargs["stdout"].flush()
        raise Py4JNetworkError("Answer from Java side is empty")

    monkeypatch.setattr(gateway, "launch_gateway", launch)
    monkeypatch.setattr(gateway, "SparkConf", _NoConf)
    with pytest.raises(HeadgateError) as caught:
        gateway.start_jvm({}, streams=output)
    assert caught.value.code == "DRIVER_DIED"
    assert caught.value.message.endswith("ran out of memory at its start: Java heap space")
    assert "--driver-memory" in caught.value.hint
    said[1] = "Terminating due to java.lang.OutOfMemoryError: Metaspace"
    with pytest.raises(HeadgateError) as caught:
        gateway.start_jvm({}, streams=output)
    assert 'metaspace = "' in caught.value.hint
    said[1] = "it is broken"
    with pytest.raises(HeadgateError) as caught:
        gateway.start_jvm({}, streams=output)
    assert caught.value.code == "DRIVER_NOT_STARTED"
    assert caught.value.message.endswith("exited at once: warning | it is broken")


class _NoConf:
    def __init__(self, *, loadDefaults: bool) -> None:  # noqa: N803
        assert not loadDefaults

    def setAll(self, pairs: object) -> _NoConf:  # noqa: N802, ARG002
        return self
