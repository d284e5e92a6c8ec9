"""Sessions of visitors, summed up in Python: state, and a timer that ends a session."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from headgate import Context, Flow, KeyedProcess, Timer, Value

GAP_MS = 30 * 60_000


@dataclass(frozen=True)
class View:
    """A page that a visitor looked at; the time in epoch milliseconds."""

    visitor: str
    page: str
    at: int


@dataclass(frozen=True)
class Session:
    """Views of a visitor without a break of half an hour."""

    visitor: str
    first: int
    last: int
    views: int
    pages: list[str] = field(default_factory=list)


class Sessions(KeyedProcess[View, Session]):
    """Emits a session once the watermark is half an hour behind its last view."""

    session: Value[Session]

    def on_event(self, view: View, ctx: Context[Session]) -> None:
        """Add a view to the open session, or begin another."""
        session = self.session.get()
        if session is not None and view.at - session.last > GAP_MS:
            # Its timer has not fired yet: both views came in one batch.
            ctx.emit(session)
            session = None
        if session is None:
            session = Session(view.visitor, view.at, view.at, 0)
        pages = session.pages if view.page in session.pages else [*session.pages, view.page]
        first, last = min(session.first, view.at), max(session.last, view.at)
        self.session.set(
            replace(session, first=first, last=last, views=session.views + 1, pages=pages)
        )
        ctx.timers.at(last + GAP_MS)

    def on_timer(self, timer: Timer, ctx: Context[Session]) -> None:
        """Emit the session, unless there were views since the timer was set."""
        session = self.session.get()
        if session is not None and session.last + GAP_MS <= timer.ms:
            ctx.emit(session)
            self.session.clear()


flow = Flow("sessions")
views = flow.stream("views", View, event_time="at", out_of_orderness="1m")
views.key_by("visitor").process("sessions", Sessions()).out.to("sessions", key="visitor")
