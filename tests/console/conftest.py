"""The browser of the console's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from console_shop import Visitor, chromium
from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def visitor(page: Visitor) -> Iterator[Visitor]:
    """Give somebody whose pages load nothing from elsewhere, and have no errors of their own."""
    page.requests.clear()
    page.errors.clear()
    yield page
    assert page.strangers() == []
    assert page.errors == []
