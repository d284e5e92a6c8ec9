"""Prices of orders: rules that marketing changes while the job runs, as a broadcast."""

from __future__ import annotations

from dataclasses import dataclass

from headgate import BroadcastContext, BroadcastProcess, Flow, Value


@dataclass(frozen=True)
class Campaign:
    """A rule for reviews: a condition in SQL, and what it is called."""

    id: int
    when: str
    label: str


@dataclass(frozen=True)
class Discount:
    """A rule for prices: from so many orders of a customer on, so many percent of a category."""

    id: int
    category: str
    orders: int
    percent: int


@dataclass(frozen=True)
class Order:
    """An order; the price in cents."""

    id: int
    customer: str
    category: str
    cents: int


@dataclass(frozen=True)
class Priced:
    """What a customer pays, and by which rule."""

    id: int
    customer: str
    cents: int
    discount: int


class Pricing(BroadcastProcess[Order, Discount, Priced]):
    """Gives each order the best discount that its customer has earned."""

    orders: Value[int]

    def on_event(self, order: Order, ctx: BroadcastContext[Discount, Priced]) -> None:
        """Price an order; of equal discounts the one with the smallest id counts."""
        number = self.orders.get(0) + 1
        self.orders.set(number)
        earned = [
            discount
            for discount in ctx.broadcast.values()
            if discount.category == order.category and number >= discount.orders
        ]
        best = max(earned, key=lambda discount: discount.percent, default=None)
        percent, rule = (best.percent, best.id) if best else (0, 0)
        ctx.emit(Priced(order.id, order.customer, order.cents * (100 - percent) // 100, rule))


flow = Flow("pricing")
orders = flow.stream("orders", Order)
campaigns = flow.broadcast("campaigns", Campaign, key="id")
discounts = flow.broadcast("discounts", Discount, key="id")

labelled = orders.label("label", campaigns, into="campaigns").out
labelled.where("size(campaigns) > 0").select("id", "campaigns").to("campaign-orders")

priced = orders.key_by("customer").with_broadcast("pricing", discounts, Pricing())
priced.out.to("priced-orders", key="customer")
