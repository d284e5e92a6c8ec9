"""How fast the machine is at the moment: a shared one changes by a half within minutes."""

from __future__ import annotations

import multiprocessing
import os
import random
import time

_SECONDS = 2.0
_AT_ONCE = 2_000
_KEYS_BITS = 20  # a dictionary that no cache of a core holds


def machine_speed() -> float:
    """Return millions of random writes to dictionaries a second, of one process on every core."""
    cores = os.cpu_count() or 1
    with multiprocessing.get_context("spawn").Pool(cores) as pool:
        return sum(pool.map(_writes_per_s, range(cores))) / 1e6


def _writes_per_s(seed: int) -> float:
    draw = random.Random(seed)
    written: dict[int, int] = {}
    count, began = 0, time.perf_counter()
    while (took := time.perf_counter() - began) < _SECONDS:
        for number in range(_AT_ONCE):
            written[draw.getrandbits(_KEYS_BITS)] = number
        count += _AT_ONCE
    return count / took
