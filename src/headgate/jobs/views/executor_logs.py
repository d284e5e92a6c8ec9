"""Where the output of an executor is, and whether it can be read on this machine."""

from __future__ import annotations

from pathlib import Path

from headgate.engine.attempt.executors import Executor, Executors
from headgate.errors import HeadgateError

_FILE = "stderr"


def find_executor_log(executor: Executor) -> Path | None:
    """Return the file of an executor's log; None if it is not on this machine.

    Executors report their folder themselves, so nothing is read but this one file of a folder that
    a standalone worker made for the executor.
    """
    folder = Path(executor.log_folder)
    file = folder / _FILE
    if not executor.log_folder or not folder.is_absolute() or folder.name != executor.id:
        return None
    try:
        return file if file.is_file() and not file.is_symlink() else None
    except OSError:
        return None


def name_log_place(executor: Executor) -> str:
    """Return where the log of an executor is, for people."""
    if executor.log_folder:
        return f"{Path(executor.log_folder) / _FILE} on {executor.host}"
    return executor.log_links.get(_FILE) or f"the output of its process on {executor.host}"


def get_executor_log(job: str, executors: Executors | None, executor: str | None) -> Path:
    """Return the file of an executor's log.

    Args:
        executors: Those of the job; None while no driver runs.
        executor: The id.

    Raises:
        HeadgateError: LOG_NOT_FOUND.
    """
    # Of several with one id, the last one.
    listed = {each.id: each for each in executors.listed} if executors else {}
    found = listed.get(executor or "")
    if found is None:
        names = ", ".join(name for name, each in listed.items() if find_executor_log(each))
        problem = f"there is no executor {executor!r}" if executor else "no executor is named"
        raise HeadgateError(
            "LOG_NOT_FOUND",
            f"cannot read the log of an executor of job {job!r}: {problem}; logs can be read of: "
            f"{names or 'none'}",
            hint=f"headgate processes {job}",
        )
    file = find_executor_log(found)
    if file is None:
        raise HeadgateError(
            "LOG_NOT_FOUND",
            f"cannot read the log of executor {found.id} of job {job!r}: it is not on this "
            f"machine but here: {name_log_place(found)}",
            hint=f"headgate processes {job}",
        )
    return file
