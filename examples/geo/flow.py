"""Shipments with the position of their city, which a service on HTTP knows."""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import quote

import httpx

from headgate import Flow


@dataclass(frozen=True)
class Shipment:
    """A parcel on its way to a city."""

    id: int
    city: str


@dataclass(frozen=True)
class Located:
    """A shipment with the position of its city, and the number of the service's answer."""

    id: int
    city: str
    lat: float
    lon: float
    answer: int


class Locate:
    """Asks the service for the position of a city."""

    def __init__(self) -> None:
        self.client: httpx.AsyncClient | None = None

    async def __call__(self, shipment: Shipment) -> Located:
        """Return the shipment with the position; an unknown city raises."""
        if self.client is None:
            # One client for all calls of a process keeps its connections.
            url = os.environ.get("GEO_URL", "http://127.0.0.1:8765")
            self.client = httpx.AsyncClient(base_url=url)
        found = await self.client.get(f"/cities/{quote(shipment.city)}")
        place = found.raise_for_status().json()
        return Located(shipment.id, shipment.city, place["lat"], place["lon"], place["answer"])


flow = Flow("geo")
shipments = flow.stream("shipments", Shipment)
geo = shipments.call("geo", Locate(), capacity=50, timeout="2s", retries=2)
geo.ok.to("located")
geo.failed.select("id", "city", "failure.error", "failure.attempts").to("not-located")
