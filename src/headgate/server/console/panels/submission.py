"""The dialog that submits a flow of the flows folder as a job."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup
from nicegui import ui

from headgate.jobs.setting_table import parse_typed
from headgate.server.actions import verbs
from headgate.server.actions.flow_folder import FlowFile, list_flows
from headgate.server.console.panels.questions import show_dialog
from headgate.server.console.parts import widgets
from headgate.server.console.parts.formats import job_path
from headgate.server.console.parts.live import Live
from headgate.server.console.parts.templates import note
from headgate.server.context import get_context
from headgate.server.security.names import SETTINGS
from headgate.server.signed_in import current_access


async def ask_for_flow() -> None:
    """Ask which flow to run and how; run it, and go to its job."""
    folder = get_context().settings.flows
    flows = await widgets.ask(list_flows, folder)
    if flows is None:
        return
    if not flows:
        why = note(f"There is no flow in {folder}. Put a flow.py there.")
        await show_dialog("Submit a flow", lambda: Live(why), action="")
        return
    form = _Form(flows)
    if not await show_dialog("Submit a flow", form.build, action="Submit"):
        return
    values = form.values
    operation = await widgets.ask(verbs.submit, get_context(), current_access(), **values)
    if operation is None:
        return
    ended = await widgets.follow(operation, says=f"Starting {values['flow']}")
    if ended.error is None and ended.job:
        ui.navigate.to(job_path(ended.job))


class _Form:
    """The flow, whether to start empty, and settings."""

    def __init__(self, flows: list[FlowFile]) -> None:
        self._flows = flows
        self._rows: list[tuple[ui.select, ui.input, ui.element]] = []

    def build(self) -> None:
        """Build the fields."""
        known = {flow.flow: _title(flow) for flow in self._flows}
        self._flow = ui.select(known, value=self._flows[0].flow, label="Flow")
        self._flow.props("dense outlined options-dense").classes("hg-wide")
        self._fresh = ui.checkbox("Start empty: leave the state of an earlier run behind")
        self._fresh.props("dense")
        Live(Markup("<h3>Settings</h3>"))
        rule = "Those of the flow's headgate.toml hold where nothing is set here."
        Live(Markup("<p>{}</p>").format(rule)).classes("hg-quiet")
        self._list = ui.element("div").classes("hg-settings")
        widgets.button("Add a setting", self._add)

    @property
    def values(self) -> dict[str, Any]:
        """What was chosen, as `verbs.submit` takes it."""
        pairs = ((str(key.value or ""), str(value.value or "")) for key, value, _ in self._rows)
        settings = {key: value.strip() for key, value in pairs if key and value.strip()}
        return {
            "flow": str(self._flow.value),
            "settings": parse_typed(settings),
            "fresh": bool(self._fresh.value),
        }

    def _add(self) -> None:
        with self._list, ui.element("div").classes("hg-setting") as row:
            key = ui.select(list(SETTINGS), label="Setting").props("dense outlined options-dense")
            value = ui.input("Value").props("dense outlined")
            remove = widgets.button("Remove", lambda: self._remove(row))
            remove.props('aria-label="Remove this setting"')
        self._rows.append((key, value, row))

    def _remove(self, row: ui.element) -> None:
        self._rows = [entry for entry in self._rows if entry[2] is not row]
        row.delete()


def _title(flow: FlowFile) -> str:
    return f"{flow.flow} (job {flow.job})" if flow.job else flow.flow
