"""Jobs as the console's pages get to see them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from headgate.jobs.views.job import JobView

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


def make_job(name: str = "orders", state: str = "RUNNING", **facts: Any) -> JobView:
    alive = state not in ("FAILED", "DEAD", "STOPPED", "CANCELED", "FINISHED", "UNREADABLE")
    known = {"is_alive": alive, "status": {}, **facts}
    return JobView(name=name, state=state, **known)
