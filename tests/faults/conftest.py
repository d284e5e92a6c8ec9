"""What every fault test needs: the reference, and how many kills are wanted."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

# The reference of plain Python is shared with the end-to-end tests.
sys.path.insert(0, str(Path(__file__).parents[1] / "spark"))


@pytest.fixture
def kills() -> int:
    """How often a process is killed: 8 in the short suite, 40 in `make test-faults`."""
    return int(os.environ.get("HEADGATE_KILLS", "8"))


@pytest.fixture
def seed() -> int:
    """Decides the moments of the kills; printed, so that a failure can be repeated."""
    chosen = int(os.environ.get("HEADGATE_SEED", str(int.from_bytes(os.urandom(4)))))
    print(f"HEADGATE_SEED={chosen}")
    return chosen
