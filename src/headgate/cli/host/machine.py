"""The commands on this machine: whether it can run jobs, and preparation of their first start."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from headgate._units import format_size
from headgate.cli.parts.options import HomeFolder, Json, On
from headgate.cli.parts.output import Right, note, print_table, say, show
from headgate.connectors.logs import DEFAULT_LOG
from headgate.jobs.host import preparation
from headgate.jobs.host.doctor import Finding, Status, diagnose
from headgate.jobs.host.job_doctor import diagnose_job
from headgate.jobs.host.preparation import Prepared
from headgate.jobs.values import DEFAULT_HOME

_STYLES = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "bold red"}
_SOMETHING_FAILED = 3


def doctor(
    on: On = DEFAULT_LOG,
    home: HomeFolder = DEFAULT_HOME,
    job: Annotated[
        str | None,
        typer.Option("--job", metavar="JOB", help="Check the memory of a running job instead."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check this machine: what is fine, what is not, and what to do.

    Checks Java, Spark, the kernel's jar, cores, memory, disk, the loopback network and the folders
    of topics and jobs. Exits with 0 if jobs can run here, with 3 if not. With --job it shows the
    memory of a running job's driver and executors, and warns of pools that are near their limit.

    [bold]Examples[/bold]

      headgate doctor
      headgate doctor --on files:/data/topics --json
      headgate doctor --job orders
    """
    if job is not None:
        show(diagnose_job(home, job), _print_memory, as_json=as_json)
        return
    findings = diagnose(on, home)
    show(findings, _print_findings, as_json=as_json)
    if any(finding.status is Status.FAIL for finding in findings):
        raise typer.Exit(_SOMETHING_FAILED)


def _print_findings(findings: list[Finding]) -> None:
    _print_table(findings)
    say("")
    say(_verdict(findings))


def _print_memory(findings: list[Finding]) -> None:
    _print_table(findings)
    near = [finding.name for finding in findings if finding.status is Status.WARN]
    say("")
    say(f"Near a limit: {', '.join(near)}" if near else "No pool is near its limit")


def _print_table(findings: list[Finding]) -> None:
    print_table(
        ["", "check", "found"],
        [
            [Text(finding.status.value, _STYLES[finding.status]), finding.name, _cell(finding)]
            for finding in findings
        ],
    )


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


def prepare(
    logs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="LOG",
            help="embedded, kafka, pulsar; kafka+pulsar for flows with both, kafka+s3a for "
            "checkpoints on S3. By default embedded, and those whose jars are present.",
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Repeat it even if it was done before.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Halve the start time of jobs: archive the classes that Spark loads.

    Takes a minute or two, once per Java, Spark and release of headgate, and some 200 MB of disk per
    log; the jars of connectors are downloaded. Jobs find the archive by themselves. For a machine
    image, run it when the image is built.

    [bold]Examples[/bold]

      headgate prepare
      headgate prepare embedded kafka
      headgate prepare kafka+s3a
    """
    progress = None if as_json else note
    logs = logs or preparation.list_fetched()
    show(preparation.prepare(logs, again=again, progress=progress), _print_made, as_json=as_json)


def _print_made(archives: list[Prepared]) -> None:
    columns = ["jobs on", Right("size"), Right("took"), "archive"]
    print_table(columns, [_row(archive) for archive in archives])


def _row(archive: Prepared) -> list[str]:
    took = "was there" if archive.took is None else f"{archive.took.total_seconds():.0f} s"
    return [archive.log, format_size(archive.size), took, archive.archive.name]
