"""The store's flow, in the format of its topics that the environment names."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType
from typing import Any

from headgate import Flow
from headgate.formats import Avro

FORMAT = "HEADGATE_BENCH_FORMAT"
REGISTRY = "HEADGATE_BENCH_REGISTRY"
EXAMPLE = Path(__file__).parents[1] / "examples" / "orders" / "flow.py"


def prefix_of(name: str) -> str:
    """Return what precedes the names of topics in a format."""
    return "" if name == "json" else f"{name}-"


def build(name: str, registry: str | None) -> Flow:
    """Return the example's flow over topics in one format."""
    shop, prefix = _example(), prefix_of(name)
    form: Any = Avro(registry=registry) if name == "avro" else name  # type: ignore[arg-type]
    flow = Flow(f"bench-{name}", dead_letters=f"{prefix}dead-letters")
    times: Any = {"event_time": "createdAt", "out_of_orderness": "5s"}
    orders = flow.stream(f"{prefix}orders", shop.Order, **times, format=form)
    users = flow.table(f"{prefix}users", shop.User, key="id", format=form)
    items = flow.table(f"{prefix}items", shop.Item, key="id", format=form)
    with_user = orders.enrich("with-user", users, on="userId", into="user")
    with_item = with_user.matched.enrich("with-item", items, on="itemId", into="item")
    columns = ("invoiceId", "lineItemId", "user", "item", "createdAt", "paidAt")
    with_item.matched.select(*columns).to(f"{prefix}enriched-orders", format=form)
    with_user.missing.to(f"{prefix}missing-users", format=form)
    with_item.missing.to(f"{prefix}missing-items", format=form)
    return flow


def _example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("orders_example", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if FORMAT in os.environ:
    flow = build(os.environ[FORMAT], os.environ.get(REGISTRY))
