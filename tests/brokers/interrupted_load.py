"""A job that was stopped while it loaded a table, which its streams wait for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta

from bench import Bench
from inline_attempts import InlineLauncher

from headgate import Flow
from headgate.connectors import Kafka, Pulsar
from headgate.jobs.startup.foreground import run_job
from headgate.jobs.values import JobSnapshot, RunOptions, Watcher

_ROW = "id BIGINT NOT NULL, v STRING"
_PATIENCE_S = 90


def joining(users: Kafka | Pulsar, orders: Kafka | Pulsar) -> Flow:
    """Return a flow that looks users up for orders, of embedded outputs."""
    flow = Flow("joining")
    table = flow.table(users, _ROW, key="id", uid="users")
    found = flow.stream(orders, _ROW, uid="orders").enrich("with-user", table, on="id", into="u")
    found.matched.select("id").to("matched")
    found.missing.select("id").to("missing")
    return flow


def stop_while_loading(bench: Bench, flow: Flow) -> None:
    """Run a job with the smallest batches until some users are read, and not all."""
    stop = threading.Event()

    def watch(now: JobSnapshot) -> None:
        if now.totals.inputs.get("users"):
            stop.set()

    done = run_job(
        str(bench.flow_file(flow)),
        RunOptions(
            on=f"files:{bench.topics}",
            home=bench.home,
            max_batch=1,
            batch_every=timedelta(milliseconds=100),
            restart="none",
        ),
        Watcher(on_snapshot=watch),
        launcher=InlineLauncher(),
        stop=stop,
    )
    assert done.loading or not done.totals.inputs.get("orders"), "the load was not interrupted"


def in_time() -> Callable[[JobSnapshot], None]:
    """Return a watcher that gives a job up which does not end."""
    deadline = time.monotonic() + _PATIENCE_S

    def watch(now: JobSnapshot) -> None:
        assert time.monotonic() < deadline, f"still waiting, loading={now.loading}"

    return watch


def joined(bench: Bench) -> list[int]:
    """Return which orders came out, whether their user was there or not."""
    return sorted(row["id"] for topic in ("matched", "missing") for row in bench.read(topic))
