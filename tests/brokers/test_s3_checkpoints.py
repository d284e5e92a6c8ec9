"""A run with its checkpoint on a store goes on after any crash, and only one driver writes it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from eventually import eventually
from located_flow import located
from located_service import check, orders, served
from s3_server import S3Server
from stored_driver import StoredRun, outcome

from headgate._locations import parse_location
from headgate.checkpoints.stores.objects import list_objects, read_object

POINTS = ("checksum-written", "epoch-committed")
NAMES = ("Ann", "Bob", "Cleo")


@pytest.fixture(params=["s3", "shared"])
def stored(
    request: pytest.FixtureRequest, tmp_path: Path, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> StoredRun:
    """Give a run with users and a first batch of orders, and nothing else on the store."""
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    if request.param == "s3":
        return begin(tmp_path, s3.url(f"run-{tmp_path.name}"))
    (tmp_path / "mount").mkdir()
    return begin(tmp_path, f"shared://{tmp_path / 'mount'}")


def begin(folder: Path, store: str, environment: Mapping[str, str] | None = None) -> StoredRun:
    run = StoredRun(folder, store, dict(environment or {}))
    run.put("users", [{"id": n, "name": name} for n, name in enumerate(NAMES)])
    put_orders(run, 0, 40)
    return run


def put_orders(run: StoredRun, first: int, end: int) -> None:
    for start in range(first, end, 20):
        run.put("orders", [{"id": n, "buyer": n % 3} for n in range(start, min(start + 20, end))])


def expected(end: int) -> list[tuple[int, str]]:
    return [(n, NAMES[n % 3]) for n in range(end)]


def objects_of(run: StoredRun, folder: str) -> dict[str, bytes]:
    """Return the objects below a folder of the run, by name."""
    place = parse_location(f"{run.store}/{folder}")
    assert not isinstance(place, Path)
    return {name: read_object(place / name) for name in list_objects(place)}


def last_commit(run: StoredRun) -> tuple[int, Any]:
    """Return the last batch that is committed, and what its commit says."""
    commits = objects_of(run, "checkpoint/commits")
    batch = max(int(name) for name in commits if name.isdigit())
    return batch, json.loads(commits[str(batch)].decode().partition("\n")[2])


@pytest.mark.long
def test_a_run_goes_on_after_a_crash_at_each_point_and_its_state_is_read(
    stored: StoredRun,
) -> None:
    end = 40
    for point in POINTS:
        (stored.crashes / point).touch()
        ended = stored.run()
        assert not (stored.crashes / point).exists(), ended
        assert ended.startswith("died")
        put_orders(stored, end, end + 20)
        end += 20

    assert stored.run() == "caught up"

    assert stored.read() == expected(end)
    for log in ("offsets", "commits"):
        # Each has its checksum, and nothing is left of a file in the making.
        names = objects_of(stored, f"checkpoint/{log}").keys()
        whole = {name for name in names if name.isdigit()}
        assert names == whole | {f"{name}.crc" for name in whole}
    batch, commit = last_commit(stored)
    ids = [partition[0] for partition in commit["stateUniqueIds"]["0"]]
    assert stored.look_up(batch, ids, 1) == [[False, {"id": 1, "name": "Bob"}], 3]


@pytest.mark.long
def test_of_two_drivers_of_one_batch_one_commits_it_and_the_other_ends(
    stored: StoredRun, tmp_path: Path
) -> None:
    assert stored.run() == "caught up"
    put_orders(stored, 40, 60)
    (stored.crashes / "checksum-written.hold").touch()
    first = stored.start("first")
    held = stored.crashes / "checksum-written.held"
    eventually(
        held.exists, within=300, what="the first driver to have planned a batch", alive=first
    )

    # It overtakes the first one, and leaves a checksum that fits.
    free = tmp_path / "free"
    free.mkdir()
    assert stored.run(name="second", crashes=free) == "caught up"
    written = objects_of(stored, "checkpoint/offsets") | objects_of(stored, "checkpoint/commits")
    (stored.crashes / "checksum-written.hold").unlink()

    assert outcome(first).startswith("FENCED")
    assert stored.read() == expected(60)
    after = objects_of(stored, "checkpoint/offsets") | objects_of(stored, "checkpoint/commits")
    assert {name for name in after if name.isdigit()} == {
        name for name in written if name.isdigit()
    }
    put_orders(stored, 60, 80)
    assert stored.run(name="third") == "caught up"
    assert stored.read() == expected(80)


@pytest.mark.long
def test_a_driver_knows_its_own_files_if_the_stores_answers_are_lost(
    tmp_path: Path, s3: S3Server
) -> None:
    run = begin(tmp_path, s3.url(f"lost-answer-{tmp_path.name}"), s3.environment)
    assert run.run() == "caught up"
    put_orders(run, 40, 60)
    assert run.run() == "caught up"
    assert run.read() == expected(60)


@pytest.mark.long
def test_answers_of_async_calls_are_kept_on_the_store_and_repeated(
    tmp_path: Path, s3: S3Server
) -> None:
    run = StoredRun(tmp_path, s3.url(f"async-{tmp_path.name}"), dict(s3.environment))
    run.put("zones", [{"zone": n, "name": f"zone {n}"} for n in range(3)])
    run.put("orders", orders(60))
    flow = tmp_path / "flow.json"
    with served() as service:
        flow.write_text(located(service.url, capacity=10).graph().to_json())
        (run.crashes / "answers-recorded").touch()
        ended = run.run(flow=str(flow), max_batch=1 << 20)
        assert not (run.crashes / "answers-recorded").exists(), ended
        answers = s3.list_keys(f"async-{tmp_path.name}/answers/geo/")
        assert [key for key in answers if key.endswith(".answers")]
        calls = dict(service.calls)
        assert run.run(flow=str(flow), max_batch=1 << 20) == "caught up"
        # Those of another task may have been under way when the driver died.
        assert [n for n in calls if service.calls[n] == calls[n]], "all were asked for again"
        topics = {topic: run.read_topic(topic) for topic in ("located", "nowhere", "failed")}
        check(service, 60, [*topics["located"], *topics["nowhere"]], topics["failed"])


@pytest.mark.long
def test_a_second_driver_waits_for_the_lease_of_the_first_and_a_zombie_writes_nothing(
    stored: StoredRun,
) -> None:
    lease: dict[str, Any] = {"lease": f"{stored.store}/jobs/stored.lease", "expires": 10}
    zombie = stored.start("zombie", endless=True, **lease)
    try:
        eventually(lambda: stored.read() == expected(40), within=300, what="rows", alive=zombie)
        refused = stored.run(name="second", **lease)
        assert refused.startswith("LEASE_HELD cannot run job 'stored'")
        assert "and it expires in" in refused

        os.killpg(zombie.pid, signal.SIGSTOP)
        put_orders(stored, 40, 60)
        # Refused until the lease has expired.
        eventually(
            lambda: stored.run(name="second", **lease) == "caught up",
            within=600,
            what="the second driver to take over",
        )
        before = objects_of(stored, "checkpoint")
        assert stored.read() == expected(60)
        put_orders(stored, 60, 80)
        os.killpg(zombie.pid, signal.SIGCONT)

        assert "LEASE_LOST" in outcome(zombie)
        assert objects_of(stored, "checkpoint") == before
        assert stored.run(name="third", **lease) == "caught up"
        assert stored.read() == expected(80)
    finally:
        if zombie.poll() is None:
            os.killpg(zombie.pid, signal.SIGKILL)
            zombie.wait()
