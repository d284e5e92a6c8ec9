"""The kernel's name of the state of each kind of operator."""

from __future__ import annotations

from headgate.flow.operators import Dedupe, Enrich, Node, Window

_VARIABLES = {Enrich.operator: "table", Window.operator: "windows", Dedupe.operator: "seen"}


def state_variable(node: Node) -> str:
    """Return the kernel's name of an operator's state."""
    return _VARIABLES[node.operator]
