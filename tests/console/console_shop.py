"""A store, a server for its jobs, and a browser that looks at it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

from headgate._codec import encode
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.sandbox.store import StoreOptions, produce_store

EXAMPLE = Path(__file__).parents[2] / "examples" / "orders"
JOB = "order-enrichment"
SHAPE: dict[str, Any] = {"users": 500, "items": 50, "bad": 0.01, "unknown": 0.02, "seed": 5}
# Where pictures for the docs go; nowhere unless this is set.
PICTURES = os.environ.get("HEADGATE_SCREENSHOTS")
_SETTINGS = """[job]
batch-every = "1s"
checkpoint-every = "2s"
retain = 60
parallelism = 2
restart = "fixed-delay:5,1s"
"""


class Store:
    """A store in a folder of its own: topics, a home for jobs, a folder of flows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.topics = folder / "topics"
        self.home = folder / ".headgate"
        self.flows = folder / "flows"
        shutil.copytree(EXAMPLE, self.flows / "orders")
        (self.flows / "orders" / "headgate.toml").write_text(_SETTINGS)
        self._rounds = 0

    @property
    def on(self) -> str:
        return f"files:{self.topics}"

    def produce(self, orders: int) -> None:
        """Send users and items the first time, and orders each time."""
        produce_store(self.on, StoreOptions(round=self._rounds, orders=orders, **SHAPE))
        self._rounds += 1

    def find_user(self, key: int) -> dict[str, Any]:
        """Return the newest row of a user, by plain Python over the topic."""
        found: dict[str, Any] = {}
        for file in sorted(self.topics.glob("users/**/*.jsonl")):
            for line in file.read_text().splitlines():
                row = json.loads(line)
                if row["id"] == key:
                    found = row
        assert found, f"there is no user {key}"
        return found

    def change_user(self, key: int, **fields: Any) -> dict[str, Any]:
        """Write a change of a user, and return the row as it is now."""
        row = {**self.find_user(key), **fields}
        making = self.topics / "users" / ".making"
        making.write_text(json.dumps(row) + "\n")
        making.rename(self.topics / "users" / f"zz-{time.time_ns()}.jsonl")
        return row

    def write_order(self, line: str) -> None:
        """Write a line to the orders, whatever it is."""
        making = self.topics / "orders" / ".making"
        making.write_text(line + "\n")
        making.rename(self.topics / "orders" / f"zz-{time.time_ns()}.jsonl")

    def write_order_of_nobody(self, **fields: Any) -> None:
        """Write an order whose user is not known, so that it goes to a side output."""
        file = min(self.topics.glob("orders/**/*.jsonl"))
        for line in file.read_bytes().splitlines():
            # Some of them are broken on purpose.
            with contextlib.suppress(ValueError):
                order = json.loads(line)
                if "itemName" in order:
                    self.write_order(json.dumps({**order, "userId": 10**9, **fields}))
                    return
        raise AssertionError(f"there is no order in {file}")

    def status(self) -> dict[str, Any]:
        """Return what the job last said of itself."""
        if JOB not in FolderHome(self.home).names():
            return {}
        status: dict[str, Any] = encode(FolderHome(self.home).details(JOB))
        return status


@contextmanager
def serving(store: Store, *flags: str, **variables: str) -> Iterator[str]:
    """Run `headgate serve` as a user would, and give its address."""
    command = [sys.executable, "-m", "headgate", "serve", "--port", "0", "--json"]
    command += ["--flows", "flows", "--on", "files:topics", *flags]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        cwd=store.folder,
        env={**os.environ, **variables},
    )
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["address"]
    finally:
        process.terminate()
        process.wait(timeout=60)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Give a real browser: the system's Chromium, else the one that Playwright brought."""
    path = os.environ.get("HEADGATE_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        # A sandbox needs rights that a container's root does not have.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Visitor:
    """Somebody with a browser: what they see, and every request that their pages made."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.requests: list[str] = []
        self.errors: list[str] = []
        page.set_default_timeout(30_000)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def open(self, path: str) -> None:
        """Open a page of the console."""
        self.page.goto(self.address + path)
        # Until then the page is a picture of itself.
        self.page.locator("html[data-live]").wait_for()

    def press(self, name: str, *, inside: str | None = None) -> None:
        """Press a button by its name."""
        scope = self.page if inside is None else self.page.locator(inside)
        scope.get_by_role("button", name=name, exact=True).first.click()

    def agree(self, name: str) -> str:
        """Read the question that is asked, agree to it, and return what it said."""
        dialog = self.page.get_by_role("dialog")
        says = dialog.inner_text()
        dialog.get_by_role("button", name=name, exact=True).click()
        return says

    def text(self) -> str:
        """Return all that the page says."""
        return self.page.get_by_role("main").first.inner_text()

    def drag_by_finger(self, *places: tuple[float, float]) -> None:
        """Put a finger on the screen, move it from place to place, and lift it."""
        screen = self.page.context.new_cdp_session(self.page)

        def touch(kind: str, *at: tuple[float, float]) -> None:
            points = [{"x": x, "y": y} for x, y in at]
            screen.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        touch("touchStart", places[0])
        for place in places[1:]:
            touch("touchMove", place)
        touch("touchEnd")
        screen.detach()

    def picture(self, name: str, *, after: float = 0) -> None:
        """Take a picture for the docs, if pictures are wanted.

        Args:
            after: Seconds to wait before, so that what is drawn has come to rest.
        """
        if PICTURES:
            folder = Path(PICTURES)
            folder.mkdir(parents=True, exist_ok=True)
            self.page.wait_for_timeout(after * 1_000)
            self.page.screenshot(path=folder / f"{name}.png")

    def strangers(self) -> list[str]:
        """Return the requests that left the server."""
        own = urlsplit(self.address).netloc
        return [
            url
            for url in self.requests
            if urlsplit(url).scheme not in ("data", "blob") and urlsplit(url).netloc != own
        ]


@contextmanager
def visiting(
    browser: Browser,
    address: str,
    *,
    width: int = 1280,
    height: int = 900,
    dark: bool = False,
    touch: bool = False,
) -> Iterator[Visitor]:
    """Give somebody who visits a server, in a browser that knows nothing of earlier visits.

    Args:
        touch: Whether the screen is touched by fingers, as that of a phone.
    """
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        has_touch=touch,
        is_mobile=touch,
    )
    try:
        yield Visitor(context.new_page(), address)
    finally:
        context.close()


def best_of(times: int, measure: Callable[[], float], *, goal: float) -> float:
    """Return the shortest of some tries; the machine may be busy with something else."""
    tries: Sequence[float] = []
    for _ in range(times):
        tries = [*tries, measure()]
        if tries[-1] < goal:
            break
    return min(tries)
