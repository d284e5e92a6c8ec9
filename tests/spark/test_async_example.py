"""The example with a service: each shipment has one outcome."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench import Bench

FOLDER = Path(__file__).parents[2] / "examples" / "geo"


@pytest.fixture
def url() -> Iterator[str]:
    """Give the address of the example's service."""
    command = [sys.executable, str(FOLDER / "service.py"), "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def test_shipments_get_the_position_of_their_city(
    bench: Bench, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = [json.loads(line) for line in (FOLDER / "shipments.jsonl").read_text().splitlines()]
    given += [{"id": n, "city": ("Oslo", "Berlin", "Nowhere")[n % 3]} for n in range(100, 130)]
    bench.put("shipments", given)
    monkeypatch.setenv("GEO_URL", url)
    # The processes of functions have the environment of a process of the job's own.
    process = bench.spawn(FOLDER / "flow.py", parallelism=1)
    told, _ = process.communicate(timeout=120)
    assert process.returncode == 0, told
    places: dict[str, Any] = {
        "Amsterdam": (52.37, 4.9),
        "Berlin": (52.52, 13.4),
        "Lisbon": (38.72, -9.14),
        "Oslo": (59.91, 10.75),
    }
    located = bench.read("located")
    assert sorted((row["id"], row["city"], row["lat"], row["lon"]) for row in located) == sorted(
        (row["id"], row["city"], *places[row["city"]]) for row in given if row["city"] in places
    )
    assert len({row["answer"] for row in located}) == len(located)
    unknown = bench.read("not-located")
    assert sorted(row["id"] for row in unknown) == sorted(
        row["id"] for row in given if row["city"] not in places
    )
    assert {row["attempts"] for row in unknown} == {3}
    assert all("404 Not Found" in row["error"] for row in unknown)
