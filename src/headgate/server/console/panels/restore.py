"""Going back: the timeline, the plan of a restore to its moment, and the button that restores."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from markupsafe import Markup
from nicegui import ui

from headgate.checkpoints.checkpoint import Checkpoint
from headgate.errors import HeadgateError
from headgate.jobs.checkpoints.restore_plan import SealedPlan
from headgate.jobs.views.job import JobView
from headgate.jobs.views.past import Past
from headgate.server.actions import verbs
from headgate.server.console.charts.moments_track import MomentsTrack
from headgate.server.console.panels.questions import ask_and_do
from headgate.server.console.parts import widgets
from headgate.server.console.parts.formats import format_moment
from headgate.server.console.parts.live import Live
from headgate.server.console.parts.templates import note, render
from headgate.server.console.texts.checkpoints import show_plan
from headgate.server.console.texts.questions import ask_restore
from headgate.server.context import get_context
from headgate.server.signed_in import current_access

# How often a plan is resolved again: while a job runs, a restore reads more and more records again.
# Resolving loads the flow in a process of its own, which takes a second.
_COUNT_EVERY_S = 60.0
# How often the marks are drawn again when only time has passed.
_DRAW_EVERY_S = 10.0

_WORKING = note("Working out what a restore would do…")


class RestorePanel:
    """The timeline of a job, with what a restore to the chosen moment does."""

    def __init__(self, view: JobView, done: Callable[[], Awaitable[None]]) -> None:
        """Build the panel.

        Args:
            done: Called after a restore.
        """
        self._job = view.name
        self._done = done
        self._view = view
        self._past = Past((), ())
        self._drawn = 0.0
        self._moment: datetime | None = None
        self._chosen: Checkpoint | None = None
        self._plan: SealedPlan | None = None
        self._plan_of: str | None = None
        self._planned = 0.0
        self._asked = 0
        how = "Drag the handle, or use the arrow keys: a restore takes the newest before it."
        with widgets.panel("Go back", note=how), ui.element("div").classes("hg-past"):
            with ui.element("div"):
                self._track = MomentsTrack(self._go)
                self._words = Live(tag="p").classes("hg-quiet hg-gap")
                Live(render("legend"))
            with ui.element("div").classes("hg-plan-box").props('aria-live="polite"'):
                self._shown = Live(_WORKING)
                self._button = widgets.button("Restore here", self._restore_chosen, kind="main")
                self._button.set_visibility(False)
                self._why_not = Live(tag="p").classes("hg-quiet")

    def show(self, past: Past, view: JobView) -> None:
        """Show a past; the handle stays where it was put, at first on the newest checkpoint."""
        self._view = view
        changed = past != self._past
        if past.restores != self._past.restores:
            # The present run is another one, so that the plan is out of date.
            self._moment = self._plan_of = None
        self._past = past
        if past.checkpoints and (self._moment is None or past.find_at(self._moment) is None):
            self._moment = past.checkpoints[-1].completed_at
            changed = True
        if changed or time.monotonic() - self._drawn > _DRAW_EVERY_S:
            self._drawn = time.monotonic()
            self._track.show(past, self._moment, datetime.now(UTC))
        self._choose()

    async def foresee(self) -> None:
        """Resolve a plan for the chosen checkpoint, if there is none or it has grown old."""
        chosen = self._chosen
        aged = time.monotonic() - self._planned > _COUNT_EVERY_S
        if chosen is not None and (aged or chosen.source != self._plan_of):
            await self._foresee(chosen)

    async def restore(self, source: str) -> None:
        """Ask whether to restore from a checkpoint of the history, and do it."""
        plan = await widgets.ask(
            verbs.plan_restore, get_context(), current_access(), self._job, source=source
        )
        if plan is not None:
            await self._restore(plan, source)

    async def _go(self, moment: datetime) -> None:
        self._moment = moment
        self._choose()
        chosen = self._chosen
        if chosen is not None and chosen.source != self._plan_of:
            self._shown.show(_WORKING)
            self._plan = None
            self._allow()
            await self._foresee(chosen)

    def _choose(self) -> None:
        self._chosen = None if self._moment is None else self._past.find_at(self._moment)
        self._words.show(self._tell())
        if self._chosen is None:
            self._plan = self._plan_of = None
            self._shown.show(
                note("No checkpoint was complete at this moment. Move to the right.")
                if self._past.checkpoints
                else note("There is nothing to go back to yet: no checkpoint is complete.")
            )
            self._allow()

    async def _foresee(self, chosen: Checkpoint) -> None:
        self._asked += 1
        asked = self._asked
        self._planned = time.monotonic()
        plan, refusal = None, None
        try:
            plan = await widgets.read(
                verbs.plan_restore,
                get_context(),
                current_access(),
                self._job,
                source=chosen.source,
            )
        except HeadgateError as error:
            refusal = error
        # Meanwhile the handle may have moved on.
        if asked != self._asked:
            return
        self._plan, self._plan_of = plan, chosen.source
        if plan is not None:
            self._shown.show(show_plan(plan.plan, now=datetime.now(UTC)))
        elif refusal is not None:
            refused = Markup("<p>{} cannot be restored:</p>").format(chosen.id)
            self._shown.show(refused + widgets.error_box(refusal))
        self._allow()

    def _allow(self) -> None:
        may = current_access().may_operate
        self._button.set_visibility(self._plan is not None)
        self._button.set_enabled(may)
        why = "" if may or self._plan is None else "To restore, sign in with the role operate."
        self._why_not.show(why)

    async def _restore_chosen(self) -> None:
        if self._plan is not None and self._plan_of is not None:
            await self._restore(self._plan, self._plan_of)

    async def _restore(self, plan: SealedPlan, source: str) -> None:
        operation = await ask_and_do(
            ask_restore(self._view, plan.plan, now=datetime.now(UTC)),
            verbs.restore,
            self._job,
            source=source,
            stop=True,
            resolved=plan,
        )
        if operation is not None:
            self._moment = self._plan_of = None
            await self._done()

    def _tell(self) -> str:
        if self._moment is None:
            return ""
        when = f"At {format_moment(self._moment)} UTC"
        if self._chosen is None:
            return f"{when} no checkpoint was complete yet."
        return f"{when} a restore takes {self._chosen.id}."
