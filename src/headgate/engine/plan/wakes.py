"""The source that wakes process operators when a processing-time timer is due. Pure.

It is an entry in Spark's offset log beside the flow's sources and the clocks. Its name begins
unlike that of any source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headgate.flow.operators.nodes import Process

WAKES = "__wake"


def wake_options(
    operators: Sequence[Mapping[str, Any]], *, takes_over: bool
) -> dict[str, str] | None:
    """Return the options of a flow's wakes; None for a flow without process operators.

    Args:
        operators: The stateful operators in the kernel's plan.
        takes_over: Whether an operator begins with state of an earlier query, whose timers are
            unknown.
    """
    processes = [operator for operator in operators if operator["kind"] == Process.operator]
    if not processes:
        return None
    addresses = [str(operator["address"]) for operator in processes if operator["timers"]]
    return {
        "wake.addresses": ",".join(addresses),
        "wake.known": "false" if takes_over else "true",
    }
