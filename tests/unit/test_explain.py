"""A flow as text: the exchange on every edge, the same text every time."""

from __future__ import annotations

import runpy
from pathlib import Path

from headgate import Console, Files, Flow
from headgate.flow.graph.edges import Edge, Exchange, edges_of
from headgate.flow.operators.nodes import Port

ORDERS = Path(__file__).parents[2] / "examples" / "orders"


def orders_flow() -> Flow:
    flow = runpy.run_path(str(ORDERS / "flow.py"))["flow"]
    assert isinstance(flow, Flow)
    return flow


def test_the_orders_example_explains_itself() -> None:
    columns = "invoiceId, lineItemId, user, item, createdAt, paidAt"
    assert (
        orders_flow().explain()
        == f"""\
flow order-enrichment
dead letters: topic dead-letters

orders: stream of topic orders, event time createdAt, up to 5s out of order
└─[key_by userId]→ with-user: enrich from users into user
   ├─ matched ─[key_by itemId]→ with-item: enrich from items into item
   │  ├─ matched ─[forward]→ with-item.matched.select-1: select {columns}
   │  │  └─[forward]→ enriched-orders: output to topic enriched-orders
   │  └─ missing ─[forward]→ missing-items: output to topic missing-items
   └─ missing ─[forward]→ missing-users: output to topic missing-users

users: table of topic users, key id, loaded first
└─[key_by id]→ with-user

items: table of topic items, key id, loaded first
└─[key_by id]→ with-item
"""
    )


def test_the_readme_of_the_orders_example_shows_what_is_printed() -> None:
    assert orders_flow().explain() in (ORDERS / "README.md").read_text(encoding="utf-8")


def test_every_operator_and_kind_of_topic_is_shown() -> None:
    flow = Flow("shop", dead_letters=Files("rejected", dir="data/rejected"))
    orders = flow.stream(
        Files("orders", dir="data/orders"), "id BIGINT, b BIGINT, price DOUBLE", uid="in"
    )
    users = flow.table(
        "users", "a BIGINT, b BIGINT, seq BIGINT", key=["a", "b"], version="seq", load="together"
    )
    clean = orders.transform("shop.clean:run").where("price\n  > 1")
    both = clean.enrich("with-user", users, on=["id", "b"], into="user")
    both.matched.with_columns(total="price * 2").select("id", "user.seq", "total AS t").to(
        Console()
    )
    clean.to("clean-orders")
    assert (
        flow.explain()
        == """\
flow shop
dead letters: files rejected in data/rejected

in: stream of files orders in data/orders
└─[forward]→ in.transform-1: transform by shop.clean:run
   └─[forward]→ in.where-1: where price > 1
      ├─[key_by id, b]→ with-user: enrich from users into user
      │  ├─ matched ─[forward]→ with-user.matched.with-columns-1: with columns price * 2 AS total
      │  │  └─[forward]→ with-user.matched.select-1: select id, user.seq AS seq, total AS t
      │  │     └─[forward]→ console: output to console (20 rows)
      │  └─ missing: counted, not written
      └─[forward]→ clean-orders: output to topic clean-orders

users: table of topic users, key a, b, newest by seq, loaded together with streams
└─[key_by a, b]→ with-user
"""
    )


def test_every_edge_has_its_exchange() -> None:
    flow = Flow("shop")
    users = flow.table("users", "key BIGINT", key="key")
    orders = flow.stream("orders", "id BIGINT")
    orders.enrich("e", users, on="id", into="user").matched.to("out")
    assert edges_of(flow.graph()) == (
        Edge(Port("orders", "out"), "e", Exchange.KEY_BY, ("id",)),
        Edge(Port("users", "out"), "e", Exchange.KEY_BY, ("key",)),
        Edge(Port("e", "matched"), "out", Exchange.FORWARD, ()),
    )


def test_all_four_exchanges_have_words() -> None:
    edges = [Edge(Port("a", "out"), "b", exchange, ()) for exchange in Exchange]
    assert [edge.describe() for edge in edges] == ["forward", "key_by ()", "rebalance", "broadcast"]
    assert Edge(Port("a", "out"), "b", Exchange.KEY_BY, ("x", "y")).describe() == "key_by x, y"


def test_no_line_ends_in_a_blank() -> None:
    assert all(line == line.rstrip() for line in orders_flow().explain().splitlines())
