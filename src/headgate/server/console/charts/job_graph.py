"""The graph of a job as an element of a page: dagre lays it out in the browser."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import ui
from nicegui.events import GenericEventArguments

from headgate.jobs.views.graph import GraphView
from headgate.server.console.charts.graph import describe_drawing


class JobGraph(
    ui.element,
    component="../static/job_graph.js",
    esm={"headgate-dagre": "../static/dagre"},
):
    """Shows a graph, and calls back with the id of a node that is clicked or entered."""

    def __init__(self, on_node: Callable[[str], None]) -> None:
        super().__init__()
        self.on("node", lambda event: on_node(_node_of(event)))

    def show(self, view: GraphView, chosen: str | None) -> None:
        """Show a graph with a node chosen; what did not change is not sent."""
        for name, value in describe_drawing(view, chosen).items():
            if self._props.get(name) != value:
                self._props[name] = value


def _node_of(event: GenericEventArguments) -> str:
    return str(event.args)
