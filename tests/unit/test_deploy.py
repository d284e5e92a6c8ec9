"""What is in deploy/: valid manifests, options that exist, and an entry point that works."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml  # type: ignore[import-untyped]
from eventually import eventually
from typer.main import get_command

from headgate.cli.app import app

DEPLOY = Path(__file__).parents[2] / "deploy"
ENTRYPOINT = DEPLOY / "docker" / "entrypoint.py"
CHART = DEPLOY / "helm" / "headgate"
KUBERNETES = "1.34"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
HELM = shutil.which("helm")
VALUES = {
    "token": {"value": "0123456789abcdef0123"},
    "server": {"topics": "kafka://kafka:9092", "allowHosts": ["jobs.example.org"]},
    "sparkConf": {"spark.kubernetes.executor.node.selector.pool": "streaming"},
    "jobs": {
        "orders": {
            "flow": "/flows/orders/flow.py",
            "topics": "kafka://kafka:9092",
            "driverMemory": "1GiB",
            "executors": 2,
            "executorCores": 2,
            "resources": {"limits": {"memory": "2Gi"}},
            "extraArgs": ["--checkpoint-every", "30s"],
        },
        "visits": {"flow": "/flows/visits/flow.py"},
    },
}


def documents(text: str) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(text) if each]


def containers(objects: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for each in objects:
        yield from each.get("spec", {}).get("template", {}).get("spec", {}).get("containers", [])


def known_options() -> dict[str, set[str]]:
    """Return the options of the commands that containers run."""
    commands = get_command(app).commands  # type: ignore[attr-defined]
    return {
        name: {option for each in commands[name].params for option in each.opts}
        for name in ("run", "serve")
    }


def check(objects: list[dict[str, Any]]) -> None:
    """Check every object against the schema of Kubernetes, and what its pods promise."""
    options = known_options()
    for each in objects:
        if each["apiVersion"].startswith("monitoring.coreos.com"):
            continue
        kubernetes_validate.validate(each, KUBERNETES, strict=True)
        if each["kind"] == "StatefulSet":
            pod = each["spec"]["template"]["spec"]
            assert each["spec"]["replicas"] == 1
            assert pod["securityContext"]["runAsNonRoot"] is True
            assert pod["terminationGracePeriodSeconds"] >= 60
            labels = each["spec"]["template"]["metadata"]["labels"]
            assert each["spec"]["selector"]["matchLabels"].items() <= labels.items()
            volumes = {volume["name"] for volume in pod.get("volumes", ())}
            volumes |= {
                claim["metadata"]["name"] for claim in each["spec"].get("volumeClaimTemplates", ())
            }
            mounts = [mount for one in pod["containers"] for mount in one["volumeMounts"]]
            assert {mount["name"] for mount in mounts} <= volumes
    for one in containers(objects):
        verb, *arguments = one["args"]
        used = {part.partition("=")[0] for part in arguments if part.startswith("--")}
        assert used <= options[verb], used - options[verb]
        assert one["securityContext"]["allowPrivilegeEscalation"] is False
        if verb == "serve":
            assert one["livenessProbe"]["httpGet"]["path"] == "/healthz"
            assert one["readinessProbe"]["httpGet"]["path"] == "/readyz"


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: file.stem)
def test_a_manifest_is_valid_and_its_options_exist(file: Path) -> None:
    check(documents(file.read_text()))


def test_no_key_of_the_charts_values_is_a_boolean_to_yaml() -> None:
    def keys(values: Any) -> Iterator[Any]:
        for key, inner in values.items() if isinstance(values, dict) else ():
            yield key
            yield from keys(inner)

    text = (CHART / "values.yaml").read_text()
    # Examples are comments.
    example = "\n".join(line[1:] for line in text.splitlines() if line.startswith("#  "))
    found = [*keys(yaml.safe_load(text)), *keys(yaml.safe_load(f"jobs:\n{example}"))]
    # To YAML, a key called on is true.
    assert {"topics", "executors"} <= set(found)
    assert all(isinstance(key, str) for key in found)


@pytest.mark.skipif(HELM is None, reason="needs helm")
def test_the_chart_renders_valid_objects(tmp_path: Path) -> None:
    values = tmp_path / "values.json"
    values.write_text(json.dumps(VALUES))
    command = ["helm", "template", "shop", str(CHART), "--namespace", "streams"]
    done = subprocess.run([*command, "--values", str(values)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    objects = documents(done.stdout)
    check(objects)
    kinds = sorted((each["kind"], each["metadata"]["name"]) for each in objects)
    sets = [name for kind, name in kinds if kind == "StatefulSet"]
    assert sets == ["shop", "shop-orders", "shop-visits"]
    (orders,) = (each for each in containers(objects) if "/flows/orders/flow.py" in each["args"])
    assert {"--executors=2", "--on=kafka://kafka:9092"} <= set(orders["args"])
    assert orders["args"][-2:] == ["--checkpoint-every", "30s"]
    bare = subprocess.run(command, capture_output=True, text=True)
    assert "set token.existingSecret or token.value" in bare.stderr


def test_the_image_runs_as_a_user_and_ends_by_signals_to_its_entry_point() -> None:
    lines = (DEPLOY / "docker" / "Dockerfile").read_text().splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER")]
    assert users[-1] == "10001:10001"
    (entry,) = (
        json.loads(line.split(maxsplit=1)[1]) for line in lines if line.startswith("ENTRYPOINT")
    )
    # Not through a shell, which would not pass signals on.
    assert entry == ["python", "/opt/headgate/bin/entrypoint"]
    copied = [line.split()[1:] for line in lines if line.startswith("COPY deploy")]
    assert copied == [["deploy/docker/entrypoint.py", entry[1]]]


def test_the_files_of_compose_are_there_and_its_metrics_keep_their_job() -> None:
    compose = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())
    for service in compose["services"].values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert not source.startswith(".") or (DEPLOY / "compose" / source).exists()
    scraped = yaml.safe_load((DEPLOY / "compose" / "prometheus.yml").read_text())
    assert [each["honor_labels"] for each in scraped["scrape_configs"]] == [True]
    ports = [port for each in compose["services"].values() for port in each.get("ports", ())]
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_versions_of_chart_image_and_manifests_agree() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    texts = [file.read_text() for file in DEPLOY.rglob("*") if file.is_file()]
    named = {tag for text in texts for tag in re.findall(r"image:?\s+headgate:(\S+)", text)}
    assert named == {chart["appVersion"]} == {chart["version"]}


# The entry point.

EXECUTOR = {
    "JAVA_HOME": "/java",
    "SPARK_JAVA_OPT_10": "-Dlast=1",
    "SPARK_JAVA_OPT_2": "-Dfirst=a b",
    "SPARK_EXECUTOR_MEMORY": "1024m",
    "SPARK_DRIVER_URL": "spark://driver",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_APPLICATION_ID": "app",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.3",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "orders-exec-3",
    "SPARK_CLASSPATH": "/extra/*",
}


def test_an_executor_is_started_as_sparks_driver_says() -> None:
    command = runpy.run_path(str(ENTRYPOINT))["command_for"](["executor"], EXECUTOR)
    assert command[:5] == ["/java/bin/java", "-Dfirst=a b", "-Dlast=1", "-Xms1024m", "-Xmx1024m"]
    assert command[6].startswith("/extra/*:")
    assert command[6].endswith("/pyspark/jars/*")
    backend = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
    rest = command[command.index(backend) + 1 :]
    assert dict(zip(rest[::2], rest[1::2], strict=True)) == {
        "--driver-url": "spark://driver",
        "--executor-id": "3",
        "--cores": "2",
        "--app-id": "app",
        "--hostname": "10.0.0.3",
        "--resourceProfileId": "0",
        "--podName": "orders-exec-3",
    }


def test_anything_else_is_a_command_of_headgate() -> None:
    command = runpy.run_path(str(ENTRYPOINT))["command_for"](["run", "flow.py"], {})
    assert command == [sys.executable, "-m", "headgate", "run", "flow.py"]


def entry(tmp_path: Path, child: str) -> subprocess.Popen[str]:
    """Start the entry point with a child that runs some Python."""
    start = f"import runpy, sys; sys.exit(runpy.run_path({str(ENTRYPOINT)!r})['run']"
    code = f"{start}([sys.executable, '-c', {child!r}]))"
    return subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, text=True)


@pytest.mark.parametrize(
    ("end", "code"), [("raise SystemExit(0)", 0), ("raise SystemExit(70)", 70), ("os.abort()", 134)]
)
def test_the_exit_code_is_that_of_the_command(tmp_path: Path, end: str, code: int) -> None:
    assert entry(tmp_path, f"import os; {end}").wait(180) == code


def test_sigterm_reaches_the_command(tmp_path: Path) -> None:
    child = """
import os, pathlib, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
pathlib.Path("ready").touch()
time.sleep(60)
"""
    process = entry(tmp_path, child)
    eventually(lambda: (tmp_path / "ready").exists())
    process.send_signal(signal.SIGTERM)
    assert process.wait(180) == 3


@pytest.mark.skipif(not hasattr(os, "posix_spawnp"), reason="the image is Linux")
@pytest.mark.skipif(shutil.which("hadolint") is None, reason="needs hadolint")
def test_hadolint_finds_nothing_wrong() -> None:
    done = subprocess.run(
        ["hadolint", str(DEPLOY / "docker" / "Dockerfile")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
