"""`headgate doctor`: whether this machine can run jobs."""

from __future__ import annotations

import typer
from rich.text import Text

from headgate.cli.options import Home, Json, On
from headgate.cli.output import print_json, print_table, say
from headgate.connectors.logs import DEFAULT_LOG
from headgate.jobs.host.doctor import Finding, Status, diagnose
from headgate.jobs.values import DEFAULT_HOME

_STYLES = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "bold red"}
_SOMETHING_FAILED = 3


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("doctor")(_doctor)


def _doctor(on: On = DEFAULT_LOG, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """Check this machine: what is fine, what is not, and what to do.

    Checks Java, Spark, the kernel's jar, cores, memory, disk, the loopback network and the folders
    of topics and jobs. Exits with 0 if jobs can run here, with 3 if not.

    [bold]Examples[/bold]

      headgate doctor
      headgate doctor --on files:/data/topics --json
    """
    findings = diagnose(on, home)
    if as_json:
        print_json(findings)
    else:
        _show(findings)
    if any(finding.status is Status.FAIL for finding in findings):
        raise typer.Exit(_SOMETHING_FAILED)


def _show(findings: list[Finding]) -> None:
    print_table(
        ["", "check", "found"],
        [
            [
                Text(finding.status.value, _STYLES[finding.status]),
                finding.name,
                _cell(finding),
            ]
            for finding in findings
        ],
    )
    say("")
    say(_verdict(findings))


def _cell(finding: Finding) -> Text:
    if not finding.advice:
        return Text(finding.found)
    return Text.assemble(finding.found, "\n", ("→ ", "cyan"), (finding.advice, "cyan"))


def _verdict(findings: list[Finding]) -> str:
    failed = [finding.name for finding in findings if finding.status is Status.FAIL]
    warned = [finding.name for finding in findings if finding.status is Status.WARN]
    if failed:
        return f"Jobs cannot run here until this is fixed: {', '.join(failed)}"
    if warned:
        return f"Jobs can run here, with warnings: {', '.join(warned)}"
    return "All checks passed"
