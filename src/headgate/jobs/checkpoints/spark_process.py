"""A process of its own that reads state with Spark: an order in, an answer out.

State is never read in a job's own JVM: a read there takes slots from the query.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headgate.jobs.processes.child import open_output, spawn
from headgate.jobs.processes.parent import Parent


def ask_reader(module: str, order: Mapping[str, Any], log: Path) -> dict[str, Any]:
    """Return what a reader answers; `{"failed": why}` if it could not.

    Args:
        module: The module whose `main` calls `answer_order`.
        order: JSON values.
        log: Where Spark's log goes; what the process says beside it lies beside it.
    """
    with spawn(module, output=open_output(log.with_suffix(".err"), anew=True)) as reader:
        reader.send(order)
        answer = reader.receive()
        if answer is None:
            return {"failed": f"its process {reader.get_death().explain()}"}
    return answer


def answer_order(read: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
    """Run as a reader: take the order, and answer what `read` makes of it."""
    parent = Parent()
    order = parent.receive()
    # The JVM ends with this process, and this process ends with its parent.
    parent.listen(lambda _message: None, lambda: os._exit(1))
    try:
        answer = dict(read(order))
    except Exception as error:  # noqa: BLE001 - whatever it is, the one who waits has to know
        answer = {"failed": f"{type(error).__name__}: {error}".partition("\n")[0]}
    parent.answer(answer)
