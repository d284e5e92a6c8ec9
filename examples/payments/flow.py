"""Orders and their payments, joined within half an hour."""

from __future__ import annotations

from dataclasses import dataclass

from headgate import Flow


@dataclass(frozen=True)
class Order:
    """An order; the time in epoch milliseconds."""

    id: int
    customer: str
    amount: float
    at: int


@dataclass(frozen=True)
class Payment:
    """A payment of an order."""

    id: int
    orderId: int
    amount: float
    at: int


flow = Flow("payments")
orders = flow.stream("orders", Order, event_time="at", out_of_orderness="1m")
payments = flow.stream("payments", Payment, event_time="at", out_of_orderness="1m")

joined = orders.join(
    "paid", payments, on="id", right_on="orderId", before="1m", after="30m", into="payment"
)
joined.matched.select(
    "id", "customer", "amount", "payment.id AS paymentId", "payment.at - at AS afterMs"
).to("paid-orders", key="id")
joined.left_only.to("unpaid-orders", key="id")
joined.right_only.to("unknown-payments")
joined.late.to("late-rows")
