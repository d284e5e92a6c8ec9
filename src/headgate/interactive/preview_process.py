"""The process of previews: runs flows in memory, one after the other, until its parent ends."""

from __future__ import annotations

import base64
import queue
from collections.abc import Mapping
from typing import Any

# Registers the kinds of topics that a flow's JSON may name.
import headgate.connectors  # noqa: F401
from headgate.errors import Domain, HeadgateError
from headgate.flow.flow import Flow
from headgate.jobs.processes.parent import Parent, kill_group
from headgate.testing import run_flow

_IDLE_S = 600.0


def main() -> None:
    """Answer orders; end with the parent, or after ten idle minutes."""
    parent = Parent()
    orders: queue.Queue[Mapping[str, Any]] = queue.Queue()
    # A function that hangs must not keep this process, or its JVM, behind a parent that is gone.
    parent.listen(orders.put, kill_group)
    while True:
        try:
            order = orders.get(timeout=_IDLE_S)
        except queue.Empty:
            kill_group()
        parent.send(_answer(order))


def _answer(order: Mapping[str, Any]) -> dict[str, Any]:
    try:
        flow = Flow.from_json(order["flow"])
        inputs = {
            name: [record.encode("utf-8", "surrogateescape") for record in records]
            for name, records in order["inputs"].items()
        }
        outputs = run_flow(flow, inputs, batches=order["batches"])
    except HeadgateError as error:
        return {"error": error.to_json()}
    except Exception as error:  # noqa: BLE001 - whatever it is, the one who waits has to know
        failed = HeadgateError(
            "PREVIEW_FAILED",
            f"cannot run the flow in memory: {type(error).__name__}: {error}",
            hint="run it as a job with until_caught_up=True",
            domain=Domain.INTERNAL,
        )
        return {"error": failed.to_json()}
    return {
        "answer": {
            "outputs": {
                name: [_as_json(row) for row in rows[: order["rows"]]]
                for name, rows in outputs.items()
            },
            "counts": {name: len(rows) for name, rows in outputs.items()},
        }
    }


def _as_json(row: Any) -> Any:
    """Return a row as JSON has it; bytes are in a list, which no row is."""
    return [base64.b64encode(row).decode()] if isinstance(row, bytes) else row


if __name__ == "__main__":
    main()
