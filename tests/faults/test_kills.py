"""Processes killed at random moments while producers write: nothing is lost, nothing doubled."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

from shop import JOB, Production, Shop


def test_children_and_a_supervisor_killed_at_random_moments_lose_and_double_nothing(
    tmp_path: Path, kills: int, seed: int
) -> None:
    moments = random.Random(seed)
    shop = Shop(tmp_path)
    shop.produce(0, 5_000)
    shop.start()
    with Production(shop):
        for number in range(kills):
            shop.wait_until(lambda: bool(shop.status().get("child")))
            before = shop.status()["attempt"]
            # Half of the moments lie in the start of an attempt, half in the middle of batches.
            if number % 2:
                shop.wait_until(shop.is_running)
            time.sleep(moments.uniform(0.2, 4.0))
            if number % 2:
                shop.kill_jvm()
            else:
                shop.kill_child()
            shop.wait_for_attempt_after(before)
        for _ in range(max(1, kills // 4)):
            shop.wait_until(shop.is_running)
            time.sleep(moments.uniform(0.2, 4.0))
            child = int(shop.status()["child"])
            shop.kill_supervisor()
            shop.wait_for_end_of(child)
            shop.start()
        shop.wait_until(shop.is_running)
        scratch = shop.home / "jobs" / JOB / "scratch"
        shop.wait_until(lambda: _has(scratch, "StateStore") and _has(scratch, "shuffle_"))
    # The job has nothing more to do: what its batches shuffled is gone, long before it ends.
    shop.wait_until(lambda: not _has(scratch, "shuffle_"))
    assert shop.is_running()
    shop.drain()
    shop.assert_exactly_once()
    failures = shop.events("FAILURE")
    assert len(failures) == kills
    assert {each["code"] for each in failures} == {"DRIVER_DIED"}
    assert all("killed by signal 9" in each["message"] for each in failures)
    assert all(each["retryable"] for each in failures)
    # Each attempt had its local copy of state, and could not put it away.
    shop.wait_until(lambda: not scratch.exists() or not any(scratch.iterdir()))


def _has(scratch: Path, prefix: str) -> bool:
    """Tell whether a file or folder with such a name is there, while they come and go."""
    return any(
        name.startswith(prefix)
        for _, folders, files in os.walk(scratch)
        for name in (*folders, *files)
    )
