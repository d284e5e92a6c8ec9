"""A stored job, and servers of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from server_bench import OPERATE, VIEW, TestClient, client, settings, store_job


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("guarded")
    store_job(root)
    return root


@pytest.fixture(scope="module")
def guarded(place: Path) -> Iterator[TestClient]:
    """Give a client without a token of a server that needs one."""
    with client(settings(place, tokens=(OPERATE, VIEW))) as made:
        yield made


@pytest.fixture(scope="module")
def open_(place: Path) -> Iterator[TestClient]:
    """Give a client of a server on this machine that needs no token."""
    with client(settings(place)) as made:
        yield made
