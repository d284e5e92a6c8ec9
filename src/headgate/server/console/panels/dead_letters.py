"""Dead letters: how many for which reason, one of them whole, and replaying them."""

from __future__ import annotations

from nicegui import ui

from headgate.errors import HeadgateError
from headgate.jobs.dead_letters.letter import DeadLetter
from headgate.jobs.dead_letters.listing import DeadLetters
from headgate.jobs.dead_letters.replay import ReplayRequest
from headgate.server.actions import verbs
from headgate.server.console.panels.questions import VIEW_ONLY, ask_and_do
from headgate.server.console.parts import widgets
from headgate.server.console.parts.formats import format_count
from headgate.server.console.parts.live import Live
from headgate.server.console.texts.outputs import show_counts, show_letters, tell_replayed
from headgate.server.console.texts.questions import ask_replay, tell_left_out
from headgate.server.context import get_context
from headgate.server.security.access import Role
from headgate.server.signed_in import current_access

LETTERS = 50
# A page counts no more than these; the command line counts them all.
_COUNTED = 100_000


class LettersPanel:
    """The dead letters of one job on a page."""

    def __init__(self, job: str) -> None:
        """Build the panel; `look` fills it."""
        self._job = job
        self._reason: str | None = None
        self._opened: DeadLetter | None = None
        self._seen: DeadLetters | None = None
        self._may = current_access().may_operate
        with widgets.panel("Dead letters", note="records that could not be read, with the reason"):
            with ui.element("div").classes("hg-toolbar"):
                self._total = Live(tag="span")
                self._all = widgets.button("Replay all…", lambda: self._replay("all"))
                self._all.set_enabled(self._may)
                if not self._may:
                    ui.label(VIEW_ONLY).classes("hg-quiet")
            self._status = Live(tag="p").classes("hg-status").props('role="status"')
            self._counts = Live().on_act(self._act).classes("hg-table-box")
            self._list = Live().on_act(self._act).classes("hg-gap hg-scroll")
            self._list.props('role="region" aria-label="Dead letters" tabindex="0"')

    async def look(self) -> None:
        """Read the letters again and show what changed."""
        context, reason = get_context(), self._reason
        seen = await widgets.ask(
            context.read_user_data,
            context.home.dead_letters,
            self._job,
            reason=reason,
            limit=LETTERS,
            count_up_to=_COUNTED,
        )
        if seen is not None and reason == self._reason:
            self._seen = seen
            self._show()

    async def _act(self, action: str, value: str) -> None:
        match action:
            case "reason":
                self._reason = value or None
                self._opened = None
                await self.look()
            case "letter":
                await self._open(value)
            case "replay":
                await self._replay(value)

    async def _open(self, letter: str) -> None:
        if self._opened is not None and self._opened.id == letter:
            self._opened = None
        else:
            self._opened = await self._read(letter)
        self._show()

    async def _read(self, letter: str) -> DeadLetter | None:
        context = get_context()
        return await widgets.ask(
            context.read_user_data, context.home.dead_letter, self._job, letter
        )

    async def _replay(self, what: str) -> None:
        try:
            access = current_access()
            # Counting, too, needs the role operate.
            access.check(Role.OPERATE, to="replay")
        except HeadgateError as error:
            widgets.show_error(error)
            return
        kind, _, value = what.partition(":")
        ids = (value,) if kind == "id" else ()
        reason = value if kind == "reason" else None
        self._status.show("Counting what would be sent…")
        context = get_context()
        foreseen = await widgets.ask(
            context.read_user_data,
            context.home.replay_dead_letters,
            self._job,
            ReplayRequest(ids=ids, reason=reason, dry_run=True),
            by=access.who,
        )
        self._status.show("")
        if foreseen is None:
            return
        if not foreseen.total:
            left = " ".join(tell_left_out(foreseen)) or "There is none."
            self._status.show(f"Nothing to send. {left}")
            return
        which = f" with reason {reason}" if reason else ""
        done = await ask_and_do(
            ask_replay(foreseen, which),
            verbs.replay,
            self._job,
            ReplayRequest(ids=ids, reason=reason),
        )
        if done is not None and done.result is not None:
            self._status.show(tell_replayed(done.result))
            if ids:
                self._opened = await self._read(ids[0])
        await self.look()

    def _show(self) -> None:
        seen = self._seen
        if seen is None:
            return
        least = "at least " if seen.at_least else ""
        shown = f", newest {len(seen.letters)}" if seen.letters else ""
        of = f" with reason {self._reason}" if self._reason else ""
        self._total.show(f"{least}{format_count(seen.total)} in topic {seen.topic}{shown}{of}")
        self._all.set_visibility(seen.total > 0)
        self._counts.show(show_counts(seen, self._reason, may_replay=self._may))
        self._list.show(show_letters(seen.letters, self._opened, may_replay=self._may))
