"""A flow that asks a service for each order, and has its rows shuffled by the answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx

from headgate import Flow


@dataclass
class Order:
    id: int
    note: str


@dataclass
class Located:
    id: int
    zone: int
    answer: int


class Locate:
    """Asks the service; the client belongs to the event loop of the process."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client: httpx.AsyncClient | None = None

    async def __call__(self, order: Order) -> Located:
        if self.client is None:
            self.client = httpx.AsyncClient(base_url=self.url)
        answer = (await self.client.get(f"/zone/{order.id}")).raise_for_status().json()
        return Located(order.id, answer["zone"], answer["answer"])


def located(url: str, name: str = "located", **options: Any) -> Flow:
    """Return the flow.

    Args:
        options: How the service is asked.
    """
    flow = Flow(name)
    zones = flow.table("zones", "zone BIGINT NOT NULL, name STRING", key="zone")
    geo = flow.stream("orders", Order).call(
        "geo", Locate(url), timeout="10s", **{"retries": 1, **options}
    )
    zoned = geo.ok.enrich("with-zone", zones, on="zone", into="row")
    zoned.matched.to("located")
    zoned.missing.to("nowhere")
    geo.failed.to("failed")
    return flow
