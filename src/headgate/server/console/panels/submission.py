"""The dialog that submits a flow of the flows folder as a job."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup
from nicegui import ui

from headgate.jobs.setting_table import parse_typed
from headgate.server.actions.flow_folder import FlowFile, list_flows
from headgate.server.console.parts import widgets
from headgate.server.console.parts.formats import job_path
from headgate.server.console.parts.live import Live
from headgate.server.console.parts.templates import note
from headgate.server.context import get_context
from headgate.server.security.names import SETTINGS
from headgate.server.signed_in import current_access


async def ask_for_flow() -> None:
    """Ask which flow to run and how; run it, and go to its job."""
    context = get_context()
    flows = await widgets.ask(list_flows, context.settings.flows)
    if flows is None:
        return
    with ui.dialog() as dialog, ui.card().classes("hg-dialog"):
        Live(Markup("<h2>Submit a flow</h2>"))
        if flows:
            form = _Form(flows)
        else:
            folder = context.settings.flows
            Live(note(f"There is no flow in {folder}. Put a flow.py there."))
        with ui.element("div").classes("hg-actions"):
            widgets.button("Back", lambda: dialog.submit(False))
            if flows:
                widgets.button("Submit", lambda: dialog.submit(True), kind="main")
    dialog.props('aria-label="Submit a flow"')
    try:
        if await dialog and flows:
            await _submit(form)
    finally:
        if not dialog.is_deleted:
            dialog.delete()


class _Form:
    """What is asked: the flow, whether to begin anew, and settings."""

    def __init__(self, flows: list[FlowFile]) -> None:
        known = {flow.flow: _title(flow) for flow in flows}
        self._flow = ui.select(known, value=flows[0].flow, label="Flow")
        self._flow.props("dense outlined options-dense").classes("hg-wide")
        self._fresh = ui.checkbox("Start empty: leave the state of an earlier run behind")
        self._fresh.props("dense")
        self._rows: list[tuple[ui.select, ui.input, ui.element]] = []
        Live(Markup("<h3>Settings</h3>"))
        rule = "Those of the flow's headgate.toml hold where nothing is set here."
        Live(Markup("<p>{}</p>").format(rule)).classes("hg-quiet")
        self._list = ui.element("div").classes("hg-settings")
        widgets.button("Add a setting", self._add)

    @property
    def flow(self) -> str:
        """The flow that was chosen."""
        return str(self._flow.value)

    @property
    def fresh(self) -> bool:
        """Whether to leave the state of an earlier run behind."""
        return bool(self._fresh.value)

    @property
    def settings(self) -> Mapping[str, str | int]:
        """The settings that have a value."""
        pairs = ((str(key.value or ""), str(value.value or "")) for key, value, _ in self._rows)
        return parse_typed({key: value.strip() for key, value in pairs if key and value.strip()})

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


async def _submit(form: _Form) -> None:
    from headgate.server.actions import verbs

    flow = form.flow
    operation = await widgets.ask(
        verbs.submit,
        get_context(),
        current_access(),
        flow=flow,
        settings=dict(form.settings),
        fresh=form.fresh,
    )
    if operation is None:
        return
    ended = await widgets.follow(operation, says=f"Starting {flow}")
    if ended.error is None and ended.job:
        ui.navigate.to(job_path(ended.job))


def _title(flow: FlowFile) -> str:
    return f"{flow.flow} (job {flow.job})" if flow.job else flow.flow
