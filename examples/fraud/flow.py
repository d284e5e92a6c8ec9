"""Alerts about payments: a keyed function with state, a timer and a side output."""

from __future__ import annotations

from dataclasses import dataclass

from headgate import Context, Flow, KeyedProcess, ListOf, MapOf, Timer, Value

MINUTE = 60_000


@dataclass(frozen=True)
class Payment:
    """A payment with a card; the time in epoch milliseconds."""

    id: int
    card: int
    shop: str
    amount: float
    at: int


@dataclass(frozen=True)
class Alert:
    """What somebody should look at."""

    card: int
    payment: int
    reason: str
    amount: float


@dataclass(frozen=True)
class FirstVisit:
    """The first payment of a card in a shop."""

    card: int
    shop: str
    payment: int


class Fraud(KeyedProcess[Payment, Alert]):
    """Finds a large payment that follows a small one within a minute, and many in ten minutes."""

    small: Value[Payment]
    recent: ListOf[Payment]
    shops: MapOf[str, int]

    def __init__(self, limit: float, many: int = 4) -> None:
        self.limit = limit
        self.many = many

    def on_event(self, payment: Payment, ctx: Context[Alert]) -> None:
        """Compare a payment with those before it."""
        small = self.small.get()
        # The timer below fires between two batches, so the times decide, not what is still there.
        if small is not None and payment.at - small.at <= MINUTE and payment.amount >= self.limit:
            ctx.emit(Alert(payment.card, payment.id, "large after small", payment.amount))
        if payment.amount < 1.0:
            self.small.set(payment)

        recent = [old for old in self.recent if payment.at - old.at <= 10 * MINUTE]
        recent.append(payment)
        self.recent.set(recent)
        if len(recent) == self.many:
            total = round(sum(old.amount for old in recent), 2)
            ctx.emit(Alert(payment.card, payment.id, "many in ten minutes", total))

        if payment.shop not in self.shops:
            ctx.side("first-visits").emit(FirstVisit(payment.card, payment.shop, payment.id))
        self.shops[payment.shop] = self.shops.get(payment.shop, 0) + 1
        ctx.timers.at(payment.at + 10 * MINUTE)

    def on_timer(self, timer: Timer, ctx: Context[Alert]) -> None:
        """Forget payments that no later one is compared with."""
        small = self.small.get()
        if small is not None and small.at + MINUTE < timer.ms:
            self.small.clear()
        self.recent.set(old for old in self.recent if old.at + 10 * MINUTE > timer.ms)


flow = Flow("fraud")
payments = flow.stream("payments", Payment, event_time="at", out_of_orderness="5s")
fraud = payments.key_by("card").process("fraud", Fraud(limit=500.0))
fraud.out.to("alerts", key="card")
fraud.side("first-visits", schema=FirstVisit).to("first-visits", key="card")
