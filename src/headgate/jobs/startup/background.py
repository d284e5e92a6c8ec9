"""Jobs in the background: a supervisor that outlives the command that started it.

The command spawns this module, which becomes an orphan, supervises the job, and answers how the
start went: that the job is STARTING, or why it was refused.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headgate._artifacts import Progress
from headgate._codec import decode, encode, shaped
from headgate._kernel.jar import get_jars
from headgate.connectors.logs import bind, parse_log
from headgate.engine.plan.flow_plan import kernel_modules
from headgate.engine.session.stores import stores_of
from headgate.errors import Domain, HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.jobs.checkpoints.restore_plan import SealedPlan
from headgate.jobs.flow_file import LoadedFlow, hold_flow, load_flow
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import has_supervisor
from headgate.jobs.processes.child import ChildDiedError, open_output, spawn
from headgate.jobs.processes.parent import Parent, become_orphan
from headgate.jobs.runs.job_stores import stores_at
from headgate.jobs.values import JobSnapshot, RunOptions, Watcher


@dataclass(frozen=True, slots=True)
class Detached:
    """A job that was started in the background.

    Attributes:
        snapshot: What the job was when it was STARTING.
        pid: Its supervisor.
        output: What the supervisor writes to its standard streams.
    """

    snapshot: JobSnapshot
    pid: int
    output: Path

    __get_pydantic_core_schema__ = shaped(flatten="snapshot")

    @property
    def job(self) -> str:
        """The job's name."""
        return self.snapshot.job


def start_detached(
    flow: str | LoadedFlow,
    options: RunOptions,
    *,
    job: str | None = None,
    restore: SealedPlan | None = None,
    progress: Progress | None = None,
) -> Detached:
    """Start a job in the background, and return once it is STARTING: its run is open by then.

    Args:
        flow: As `load_flow` takes it, or what it or `hold_flow` returned.
        job: The name that the flow gives its job, if it is known; otherwise the flow's file is
            executed here to find it.
        restore: What the start restores, if that was resolved before.
        progress: Called with lines about the connectors' jars of a new job, if they are fetched
            first; None leaves that to the supervisor, which nobody sees.

    Raises:
        HeadgateError: What `run_job` refuses, or JOB_NOT_STARTED if its supervisor said nothing.
    """
    loaded = flow if isinstance(flow, LoadedFlow) else None if job else load_flow(flow)
    graph = None if loaded is None else loaded.graph
    home = JobFolder(options.home, graph.name if graph is not None else str(job))
    if has_supervisor(home):
        # Refuses, and leaves no trace in the log of the supervisor that runs.
        with home.locked():
            pass
    if graph is not None and progress is not None:
        bound = bind(graph, parse_log(options.on))
        places = stores_at(home, options.checkpoints)
        get_jars([*kernel_modules(bound), *stores_of(places)], progress=progress)
    output = supervisor_output(home)
    supervisor = spawn(
        "headgate.jobs.startup.background", output=open_output(output), is_orphan=True
    )
    order = {**_name_flow(flow), "options": encode(options), "restore": encode(restore)}
    try:
        answer = supervisor.ask(order)
    except ChildDiedError as error:
        raise HeadgateError(
            "JOB_NOT_STARTED",
            f"cannot start job {home.name!r} in the background: its supervisor {error}",
            hint=f"tail {output}",
            domain=Domain.INTERNAL,
        ) from error
    return Detached(decode(JobSnapshot, answer["snapshot"]), answer["pid"], output)


def _name_flow(flow: str | LoadedFlow) -> dict[str, Any]:
    """Return a flow as part of an order: its reference, or its graph if it has no file."""
    if isinstance(flow, str):
        return {"flow": flow}
    graph = flow.graph.to_json() if flow.reference is None else None
    return {"flow": flow.reference, "graph": graph}


def supervisor_output(home: JobFolder) -> Path:
    """Return where the supervisor of a job in the background writes."""
    return home.path / "logs" / "supervisor.out"


def main() -> None:
    """Supervise the job that the order names, in a process that outlives its parent."""
    parent = Parent()
    order = parent.receive()
    become_orphan()
    sys.exit(_supervise(order, parent))


def _supervise(order: Mapping[str, Any], parent: Parent) -> int:
    from headgate.jobs.startup.foreground import run_job

    def answer_started(snapshot: JobSnapshot) -> None:
        # The job's status is written by now. Only the first snapshot is sent.
        parent.answer({"answer": {"pid": os.getpid(), "snapshot": encode(snapshot)}})

    restore, reference = order["restore"], order["flow"]
    options = decode(RunOptions, order["options"])
    try:
        ended = run_job(
            reference or hold_flow(Graph.from_json(order["graph"]), options.home),
            options,
            Watcher(on_snapshot=answer_started),
            restore=None if restore is None else decode(SealedPlan, restore),
        )
    except HeadgateError as error:
        if not parent.answer({"error": error.to_json()}):
            _log(str(error))
        return error.exit_code
    _log(f"job {ended.job!r} is {ended.state}")
    return 0


def _log(text: str) -> None:
    sys.stderr.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {text}\n")


if __name__ == "__main__":
    main()
