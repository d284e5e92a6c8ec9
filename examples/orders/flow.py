"""Orders of a store, each joined with the user who placed it and the item it is for.

Run it with: headgate run examples/orders/flow.py
"""

from dataclasses import dataclass

from headgate import Flow


@dataclass
class Order:
    """A line of an invoice."""

    invoiceId: int
    lineItemId: int
    userId: int
    itemId: int
    itemName: str
    itemCategory: str
    price: float
    createdAt: int  # epoch milliseconds
    paidAt: int


@dataclass
class User:
    """A customer; times are epoch milliseconds, and -1 stands for what is absent."""

    id: int
    firstName: str
    lastName: str
    emailAddress: str
    createdAt: int
    deletedAt: int
    mergedAt: int
    parentUserId: int


@dataclass
class Item:
    """Something the store sells."""

    id: int
    createdAt: int
    adjective: str
    category: str
    modifier: str
    name: str
    price: float


flow = Flow("order-enrichment")
orders = flow.stream("orders", Order, event_time="createdAt", out_of_orderness="5s")
users = flow.table("users", User, key="id")  # a changelog: latest row per key
items = flow.table("items", Item, key="id")

with_user = orders.enrich("with-user", users, on="userId", into="user")
with_item = with_user.matched.enrich("with-item", items, on="itemId", into="item")

with_item.matched.select("invoiceId", "lineItemId", "user", "item", "createdAt", "paidAt").to(
    "enriched-orders"
)
with_user.missing.to("missing-users")
with_item.missing.to("missing-items")
