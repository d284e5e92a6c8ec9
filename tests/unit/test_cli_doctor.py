"""The verb `doctor`: what it prints and how it ends."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from headgate.cli.app import app
from headgate.cli.host import machine
from headgate.jobs.host.doctor import Finding, Status

FINE = Finding("cores", Status.OK, "2")
SO_SO = Finding("disk", Status.WARN, "1GiB free; topics grow", "free some space")
BROKEN = Finding("java", Status.FAIL, "there is no java on the path", "install a JDK 17 or newer")


def run(monkeypatch: pytest.MonkeyPatch, findings: list[Finding], *args: str) -> Result:
    monkeypatch.setattr(machine, "diagnose", lambda _on, _home: findings)
    return CliRunner().invoke(app, ["doctor", *args])


def test_a_machine_without_failures_ends_with_0(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, [FINE])
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "All checks passed"


def test_a_warning_is_shown_and_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, [FINE, SO_SO])
    assert result.exit_code == 0
    assert "warn" in result.stdout
    assert "→ free some space" in result.stdout
    assert result.stdout.splitlines()[-1] == "Jobs can run here, with warnings: disk"


def test_a_failure_ends_with_3_and_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, [FINE, SO_SO, BROKEN])
    assert result.exit_code == 3
    assert "→ install a JDK 17 or newer" in result.stdout
    assert result.stdout.splitlines()[-1].endswith("until this is fixed: java")


def test_json_has_every_finding_and_the_same_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, [FINE, BROKEN], "--json")
    assert result.exit_code == 3
    assert json.loads(result.stdout) == [
        {"name": "cores", "status": "ok", "found": "2", "advice": ""},
        {
            "name": "java",
            "status": "fail",
            "found": "there is no java on the path",
            "advice": "install a JDK 17 or newer",
        },
    ]


def test_a_log_that_is_not_known_is_a_users_error() -> None:
    result = CliRunner().invoke(app, ["doctor", "--on", "nowhere"])
    assert result.exit_code == 2
    assert result.stderr.startswith("error LOG_UNSUPPORTED: ")


def test_this_machine_is_examined_and_left_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    # Without Java, so that no JVM is started.
    monkeypatch.setenv("PATH", str(tmp_path))
    result = CliRunner().invoke(app, ["doctor", "--json"])
    assert result.exit_code == 3
    found = {each["name"]: each["status"] for each in json.loads(result.stdout)}
    assert found["java"] == "fail"
    assert found["topics"] == found["jobs"] == "ok"
    assert {"python", "spark", "kernel", "cores", "memory", "loopback", "disk"} <= set(found)
    assert list(tmp_path.iterdir()) == []
