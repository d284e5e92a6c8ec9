"""Tests on brokers run their jobs on one Spark session for each process."""

from __future__ import annotations

from shared_session import share_session

share_session()
