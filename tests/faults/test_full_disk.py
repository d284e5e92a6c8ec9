"""A disk that is really full: a job names it, waits for space, and loses nothing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from shop import Production, Shop

SIZE = "64m"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Give a folder on a small disk of its own."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small disk needs the right to mount one")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(file: Path) -> None:
    """Write a file until there is no space left."""
    out = os.open(file, os.O_CREAT | os.O_WRONLY)
    with suppress(OSError):
        while True:
            os.write(out, b"x" * 4096)
    os.close(out)


@pytest.mark.long
def test_a_job_on_a_full_disk_says_so_and_goes_on_once_there_is_space(
    tmp_path: Path, small_disk: Path
) -> None:
    shop = Shop(tmp_path)
    shop.home = small_disk / "home"
    shop.produce(0, 2_000)
    shop.start()
    try:
        shop.wait_until(shop.is_running)
        with Production(shop):
            shop.wait_until(lambda: shop.output("enriched-orders").total() > 0)
            fill(small_disk / "rest")
            shop.wait_until(lambda: "DISK_FULL" in shop.tail())
            (small_disk / "rest").unlink()
            shop.wait_until(shop.is_running)
        shop.drain()
    finally:
        shop.kill_supervisor()
    failures = shop.events("FAILURE")
    assert failures
    assert {failure["code"] for failure in failures} == {"DISK_FULL"}
    shop.assert_exactly_once()
