"""The processes of a job: its supervisor, its driver and its executors, as they last reported."""

from __future__ import annotations

from dataclasses import dataclass

from headgate._codec import shaped
from headgate.engine.attempt.executors import DRIVER, Executor
from headgate.engine.attempt.vitals import Vitals
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import has_supervisor
from headgate.jobs.metrics.executor_file import find_executors
from headgate.jobs.metrics.vitals_file import find_vitals
from headgate.jobs.views.executor_logs import find_executor_log, name_log_place


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorView:
    """An executor, and its log.

    Attributes:
        has_log: Whether its log can be read where the job's folder is.
        log_place: Where the log is, for people; empty for the driver, whose logs are the job's.
    """

    executor: Executor
    has_log: bool = False
    log_place: str = ""

    __get_pydantic_core_schema__ = shaped(flatten="executor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """The processes of a job at one moment.

    Attributes:
        attempt: The number of the present attempt.
        driver: The id of the driver's process; None while there is none.
        vitals: What the driver uses; None until it has reported.
        executors: In the order in which they registered, with the last 50 lost ones of the attempt.
            A driver that runs the tasks itself is the only one, with the id `driver`.
        lost: The number of all executors that the attempt has lost.
    """

    job: str
    attempt: int = 0
    driver: int | None = None
    vitals: Vitals | None = None
    executors: tuple[ExecutorView, ...] = ()
    lost: int = 0

    @property
    def is_local(self) -> bool:
        """Whether the driver runs the tasks itself."""
        return any(view.executor.id == DRIVER for view in self.executors)


def view_processes(home: JobFolder) -> Processes:
    """Return the processes of a job; none unless it is running."""
    if not has_supervisor(home):
        return Processes(job=home.name)
    status = home.find_json("status.json") or {}
    found = find_executors(home)
    return Processes(
        job=home.name,
        attempt=int(status.get("attempt") or 0),
        driver=status.get("child"),
        vitals=find_vitals(home),
        executors=tuple(map(_view, found.listed)) if found else (),
        lost=found.lost if found else 0,
    )


def _view(executor: Executor) -> ExecutorView:
    if executor.id == DRIVER:
        return ExecutorView(executor=executor)
    return ExecutorView(
        executor=executor,
        has_log=find_executor_log(executor) is not None,
        log_place=name_log_place(executor),
    )
