"""A home with stored jobs and a server on it, for tests that need no JVM and no socket."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from eventually import eventually
from fake_clock import SlowClock
from stored_run import LAST, NOON, facts, local, unpack

from headgate import Flow
from headgate._codec import encode
from headgate.checkpoints import savepoint as savepoints
from headgate.checkpoints.catalog import keep
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import new_run, write_run
from headgate.jobs.values import RunOptions
from headgate.server.app import create_app
from headgate.server.security.access import Role
from headgate.server.security.limits import Limits, Rate
from headgate.server.security.tokens import Token
from headgate.server.settings import ServerSettings

with warnings.catch_warnings():
    # It works with both clients of HTTP, and says that it would like the newer one.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient as TestClient

OPERATE = Token("operate-operate-operate", Role.OPERATE)
VIEW = Token("view-view-view-view-view", Role.VIEW)
AS_OPERATOR = {"Authorization": f"Bearer {OPERATE.secret}"}
AS_VIEWER = {"Authorization": f"Bearer {VIEW.secret}"}
HERE = "http://127.0.0.1:8270"
UNHURRIED = Limits(requests=Rate(100_000, 10_000), actions=Rate(100_000, 10_000))
FLOW = """\
from headgate import Flow

flow = Flow("shop")
flow.stream("orders", "id BIGINT").to("out")
"""


def settings(root: Path, **other: Any) -> ServerSettings:
    """Return settings of a server without a console, on a home in a test's folder."""
    told: dict[str, Any] = {
        "home": root / ".headgate",
        "flows": root / "flows",
        "on": f"files:{root / 'topics'}",
        "console": False,
        "keeps_up": False,
        "limits": UNHURRIED,
        **other,
    }
    told["flows"].mkdir(exist_ok=True)
    return ServerSettings(**told)


@contextmanager
def client(served: ServerSettings, **headers: str) -> Iterator[TestClient]:
    """Give a client of a server in this process; no redirect is followed."""
    app = create_app(served)
    with TestClient(
        app, base_url=HERE, headers=headers, follow_redirects=False, raise_server_exceptions=False
    ) as made:
        yield made


def store_job(root: Path, name: str = "shop", **options: Any) -> JobFolder:
    """Make a job that has stopped: three kept checkpoints, a savepoint, a log and its flow."""
    home = JobFolder(root / ".headgate", name)
    flow = Flow(name)
    flow.stream("orders", "id BIGINT").to("out")
    run = new_run(
        home, flow.graph(), parallelism=2, checkpoints=None, now=datetime(2026, 11, 15, tzinfo=UTC)
    )
    write_run(home, run)
    (root / "flows").mkdir(exist_ok=True)
    file = root / "flows" / f"{name}.py"
    file.write_text(FLOW.replace("shop", name))
    chosen = encode(RunOptions(home=home.root, **options))
    home.write_job(run.lineage, flow=str(file), options=chosen)
    home.write_status({"state": "STOPPED", "lineage": run.lineage, "checkpoint": f"chk-{LAST}"})
    run.checkpoint.parent.mkdir(parents=True, exist_ok=True)
    unpack(local(run.checkpoint).parent)
    flow_json = {"operators": (), "flow": _json(flow)}
    for number in range(LAST - 2, LAST + 1):
        keep(
            run.checkpoint,
            number,
            home.checkpoints_folder(run.lineage),
            facts(
                job=name,
                lineage=run.lineage,
                completed_at=NOON + timedelta(minutes=number),
                **flow_json,
            ),
            clock=SlowClock(),
        )
    later = facts(
        job=name, lineage=run.lineage, completed_at=NOON + timedelta(hours=1), **flow_json
    )
    savepoints.create(run.checkpoint, LAST, home.savepoints_folder / "before", later)
    home.log_file.parent.mkdir(parents=True, exist_ok=True)
    home.log_file.write_text("".join(f"line {number}\n" for number in range(100)))
    home.add_event(NOON, "SUBMITTED")
    return home


def _json(flow: Flow) -> Any:
    return json.loads(flow.graph().to_json())


def follow(made: TestClient, answer: Any) -> dict[str, Any]:
    """Poll an operation until it is over, and return it."""
    assert answer.status_code == 202, answer.text
    place = answer.headers["Location"]
    assert place == f"/v1/operations/{answer.json()['id']}"

    def ended() -> dict[str, Any] | None:
        told: dict[str, Any] = made.get(place).json()
        return None if told["state"] == "RUNNING" else told

    return eventually(ended, every=0.02, what=lambda: made.get(place).text)


def code_of(answer: Any) -> tuple[int, str]:
    """Return how a request was answered."""
    return answer.status_code, answer.json()["code"]
