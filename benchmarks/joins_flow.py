"""What the benchmark of joins runs: orders with their payments, and orders without one."""

from __future__ import annotations

from dataclasses import dataclass

from headgate import Flow

PAID_TOPIC = "paid-orders"
UNPAID_TOPIC = "unpaid-orders"


@dataclass
class Order:
    """An order; the time in epoch milliseconds."""

    id: int
    customer: str
    amount: float
    at: int


@dataclass
class Payment:
    """A payment of an order."""

    id: int
    orderId: int  # noqa: N815
    amount: float
    at: int


flow = Flow("paid-orders")
orders = flow.stream("orders", Order, event_time="at", out_of_orderness="1m")
payments = flow.stream("payments", Payment, event_time="at", out_of_orderness="1m")
paid = orders.join("paid", payments, on="id", right_on="orderId", within="15m", into="payment")
paid.matched.select(
    "id", "customer", "amount", "payment.id AS paymentId", "payment.at - at AS afterMs"
).to(PAID_TOPIC, key="id")
# As Spark's left outer join: payments without an order are counted, and not written.
paid.left_only.select("id", "customer", "amount").to(UNPAID_TOPIC, key="id")
