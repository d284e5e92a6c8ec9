"""A process of its own that reads state with Spark: an order in, one line of JSON out.

State is never read in a job's own JVM: a read there takes slots from the query.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def ask_reader(module: str, order: Mapping[str, Any], log: Path) -> dict[str, Any]:
    """Return what a reader answers; `{"failed": why}` if it could not.

    Args:
        module: The module whose `main` calls `answer_order`.
        order: JSON values.
        log: Where Spark's log goes; what the process says beside it lies beside it.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.with_suffix(".err").open("wb") as errors,
        subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            # What a buffer kept from a reader that is gone would be written again, in vain, at
            # the end of this block.
            bufsize=0,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        # Standard input stays open: its end tells the reader that nobody waits for it any more.
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(order).encode() + b"\n")
        told = process.stdout.read()
    try:
        answer: dict[str, Any] = json.loads(told.splitlines()[-1])
    except (ValueError, IndexError):
        return {"failed": f"its process ended with exit code {process.returncode}"}
    return answer


def answer_order(read: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
    """Run as a reader: take the order, and print what `read` makes of it."""
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        answer = dict(read(order))
    except Exception as error:  # noqa: BLE001 - whatever it is, the one who waits has to know
        answer = {"failed": f"{type(error).__name__}: {error}".partition("\n")[0]}
    print(json.dumps(answer), flush=True)


def _end_with_parent() -> None:
    sys.stdin.read()
    # The JVM ends with this process.
    os._exit(1)
