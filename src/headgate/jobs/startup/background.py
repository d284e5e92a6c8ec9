"""Jobs in the background: a supervisor that outlives the command that started it.

The command spawns this module, which becomes a daemon, supervises the job, and says through a
pipe how the start went: that the job is STARTING, or why it was refused.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headgate._codec import decode, encode, shaped
from headgate.errors import Domain, HeadgateError
from headgate.jobs.checkpoints.restore_plan import SealedPlan
from headgate.jobs.flow_file import load_flow
from headgate.jobs.home import JobHome
from headgate.jobs.lifecycle.intent import has_supervisor
from headgate.jobs.values import JobSnapshot, RunOptions, Watcher

# The environment variable that names the descriptor a daemon answers on.
_ANSWER = "HEADGATE_ANSWER"


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
    flow: str,
    options: RunOptions,
    *,
    job: str | None = None,
    restore: SealedPlan | None = None,
) -> Detached:
    """Start a job in the background, and return once it is STARTING: its run is open by then.

    Args:
        job: The name that the flow gives its job, if it is known; otherwise the flow's file is
            executed here to find it.
        restore: What the start restores, if that was resolved before.

    Raises:
        HeadgateError: What `run_job` refuses, or JOB_NOT_STARTED if its supervisor said nothing.
    """
    home = JobHome(options.home, job or load_flow(flow).graph.name)
    if has_supervisor(home):
        # Refuses in its own words, and leaves no trace in the log of the one that runs.
        with home.locked():
            pass
    output = supervisor_output(home)
    output.parent.mkdir(parents=True, exist_ok=True)
    order = {"flow": flow, "options": encode(options), "restore": encode(restore)}
    answer = _spawn(order, output)
    if answer is None:
        raise HeadgateError(
            "JOB_NOT_STARTED",
            f"cannot start job {home.name!r} in the background: its supervisor exited at once",
            hint=f"tail {output}",
            domain=Domain.INTERNAL,
        )
    if "error" in answer:
        raise HeadgateError.from_json(answer["error"])
    return Detached(decode(JobSnapshot, answer["snapshot"]), answer["pid"], output)


def supervisor_output(home: JobHome) -> Path:
    """Return where the supervisor of a job in the background writes."""
    return home.path / "logs" / "supervisor.out"


def _spawn(order: Mapping[str, Any], output: Path) -> dict[str, Any] | None:
    """Start a daemon with an order, and return its answer; None if it gave none."""
    reading, writing = os.pipe()
    try:
        with output.open("ab") as sink:
            process = subprocess.Popen(
                [sys.executable, "-m", "headgate.jobs.startup.background"],
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=sink,
                pass_fds=(writing,),
                env={**os.environ, _ANSWER: str(writing)},
                # Neither the terminal's signals nor its end reach it.
                start_new_session=True,
            )
    finally:
        os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        # What was spawned forks and ends; an order to one that could not is lost, and no answer
        # comes.
        process.communicate(json.dumps(order).encode())
        line = pipe.readline()
    return json.loads(line) if line.endswith("\n") else None


class _Answer:
    """The pipe to whoever started the daemon; the first word is the only one."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def started(self, snapshot: JobSnapshot) -> None:
        """Tell that the job is on its way; its status is written by now."""
        self._say({"pid": os.getpid(), "snapshot": encode(snapshot)})

    def refused(self, error: HeadgateError) -> bool:
        """Tell why the job does not start; return whether anybody still listened."""
        listened = self._descriptor is not None
        self._say({"error": error.to_json()})
        return listened

    def _say(self, value: Mapping[str, Any]) -> None:
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        try:
            os.write(descriptor, json.dumps(value).encode() + b"\n")
        except BrokenPipeError:
            # Whoever started the job did not wait; it runs all the same.
            pass
        finally:
            os.close(descriptor)


def main() -> None:
    """Become a daemon and supervise the job that the order names."""
    order = json.load(sys.stdin)
    if os.fork():
        # An orphan belongs to the system, which collects it when it ends.
        os._exit(0)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    answer = _Answer(int(os.environ.pop(_ANSWER)))
    sys.exit(_supervise(order, answer))


def _supervise(order: Mapping[str, Any], answer: _Answer) -> int:
    from headgate.jobs.startup.foreground import run_job

    restore = order["restore"]
    try:
        ended = run_job(
            str(order["flow"]),
            decode(RunOptions, order["options"]),
            Watcher(on_snapshot=answer.started),
            restore=None if restore is None else decode(SealedPlan, restore),
        )
    except HeadgateError as error:
        if not answer.refused(error):
            _log(str(error))
        return error.exit_code
    _log(f"job {ended.job!r} is {ended.state}")
    return 0


def _log(text: str) -> None:
    sys.stderr.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {text}\n")


if __name__ == "__main__":
    main()
