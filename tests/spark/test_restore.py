"""Going back: a restored job replays exactly what came after the checkpoint, and no more."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, bag, refused
from stored_run import local

from headgate import Flow, HeadgateError
from headgate._clock import SystemClock
from headgate.checkpoints import savepoint as savepoints
from headgate.checkpoints.catalog import list_kept, read_manifest
from headgate.checkpoints.checkpoint import Checkpoint
from headgate.engine.settings import Delivery
from headgate.jobs.audit.job_audit import AuditRequest
from headgate.jobs.checkpoints.keeper import CheckpointKeeper
from headgate.jobs.checkpoints.listing import verify_anything
from headgate.jobs.checkpoints.restore_plan import find_target, plan_restore
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import find_run
from headgate.jobs.values import Consent, JobSnapshot, RunOptions

EVERY_BATCH = timedelta(0)


def store(
    *, extra: bool = False, swapped: bool = False, user: str = "id BIGINT, name STRING"
) -> Flow:
    """Return a flow with two operators; another may come behind, and the two may change places."""
    flow = Flow("store")
    users = flow.table("users", user.replace("id BIGINT", "id BIGINT NOT NULL"), key="id")
    items = flow.table("items", "id BIGINT NOT NULL, name STRING", key="id")
    orders = flow.stream("orders", "n BIGINT, user_id BIGINT, item_id BIGINT")
    steps = [("with-user", users, "user_id", "user"), ("with-item", items, "item_id", "item")]
    stream = orders
    for uid, table, on, into in reversed(steps) if swapped else steps:
        stream = stream.enrich(uid, table, on=on, into=into).matched
    if extra:
        stream = stream.enrich("with-friend", users, on="user_id", into="friend").matched
    stream.select("n", "user", "item").to("out")
    return flow


def order(n: int) -> dict[str, int]:
    """Return an order of user 1 for item 2."""
    return {"n": n, "user_id": 1, "item_id": 2}


def row(n: int, **user: Any) -> dict[str, Any]:
    """Return the order as it comes out."""
    return {"n": n, "user": {"id": 1, "name": "Ann", **user}, "item": {"id": 2, "name": "Tea"}}


def home_of(bench: Bench) -> JobFolder:
    return JobFolder(bench.home, "store")


def run(bench: Bench, flow: Flow | None = None, **options: Any) -> JobSnapshot:
    return bench.run(flow or store(), checkpoint_every=EVERY_BATCH, **options)


def kept_of(bench: Bench, lineage: str) -> list[str]:
    return [each.id for each in list_kept(home_of(bench).checkpoints_folder(lineage))]


@pytest.fixture(scope="module")
def begun_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Bench, Path]:
    """Give a bench as `begun` describes, and a copy of its folder."""
    folder = tmp_path_factory.mktemp("begun")
    bench = Bench(folder / "present")
    bench.root.mkdir()
    bench.put("users", [{"id": 1, "name": "Ann"}])
    bench.put("items", [{"id": 2, "name": "Tea"}])
    for n in (1, 2, 3):
        bench.put("orders", [order(n)])
        run(bench, parallelism=2)
    return bench, shutil.copytree(bench.root, folder / "copy", symlinks=True)


@pytest.fixture
def begun(begun_once: tuple[Bench, Path]) -> Bench:
    """Give a bench whose job has committed batches with orders 1, 2 and 3, one each.

    It is as it was then, and where it was: a run knows where its topics are.
    """
    bench, copy = begun_once
    shutil.rmtree(bench.root)
    shutil.copytree(copy, bench.root, symlinks=True)
    return replace(bench, rows=[])


def test_each_checkpoint_says_what_it_holds(begun: Bench) -> None:
    lineage = home_of(begun).find_present_run()
    assert lineage is not None
    kept = list_kept(home_of(begun).checkpoints_folder(lineage))
    assert [each.sources["orders"].records for each in kept] == [0, 1, 2, 3]
    last = kept[-1]
    assert {uid: state.rows for uid, state in last.state.items()} == {
        "with-user": 1,
        "with-item": 1,
    }
    assert read_manifest(last.folder).facts.operators == ("with-user", "with-item")


def test_a_restore_replays_exactly_the_records_after_the_checkpoint(begun: Bench) -> None:
    old = home_of(begun).find_present_run()
    home, graph = home_of(begun), store().graph()
    run_of = find_run(home, str(old))
    assert run_of is not None
    target = find_target(home, source="chk-1", at=None, now=run_of.created)
    plan = plan_restore(home, run_of.flow, target, RunOptions())
    assert plan.records_again == {"orders": 2, "users": 0, "items": 0}
    assert graph.name == "store"
    # State answers alone: the topics of the tables are empty.
    for table in ("users", "items"):
        shutil.rmtree(begun.topics / table)
    done = run(begun, restore_from="chk-1")
    assert done.lineage != old
    assert done.totals.inputs["orders"] == 2
    assert begun.bag("out") == bag([row(1), row(2), row(2), row(3), row(3)])
    # The old run is as it was, and can be gone back to.
    again = run(begun, restore_from=f"{old}/chk-2")
    assert again.totals.inputs["orders"] == 1


def test_checkpoints_of_before_a_restore_belong_to_the_past_of_the_restored_run(
    begun: Bench,
) -> None:
    run(begun, restore_from="chk-2")
    with refused("CHECKPOINT_NOT_FOUND"):
        run(begun, restore_from="chk-9")
    done = run(begun, restore_from="chk-1")
    assert done.totals.inputs["orders"] == 2


def test_a_moment_finds_the_newest_checkpoint_that_was_complete_then(begun: Bench) -> None:
    home = home_of(begun)
    kept = list_kept(home.checkpoints_folder(str(home.find_present_run())))
    now = kept[-1].completed_at + timedelta(minutes=10)
    moment = kept[1].completed_at.isoformat()
    assert find_target(home, source=None, at=moment, now=now).id == kept[1].id
    assert find_target(home, source=None, at="10m ago", now=now).id == kept[-1].id
    with refused("CHECKPOINT_NOT_FOUND"):
        find_target(home, source=None, at="1h ago", now=now)
    with refused("BAD_MOMENT"):
        find_target(home, source=None, at="yesterday noon", now=now)


def test_operators_that_are_added_or_change_places_keep_what_is_theirs_by_uid(
    begun: Bench,
) -> None:
    for table in ("users", "items"):
        shutil.rmtree(begun.topics / table)
    begun.put("orders", [order(4)])
    swapped = run(begun, store(swapped=True), restore_from="latest", parallelism=3)
    assert swapped.totals.inputs["orders"] == 1
    assert begun.bag("out") == bag([row(1), row(2), row(3), row(4)])
    # What was taken over is in the new run's own checkpoint: it resumes without the old one.
    begun.put("orders", [order(5)])
    resumed = run(begun, store(swapped=True))
    assert resumed.resumed_from is not None
    assert begun.bag("out") == bag([row(n) for n in (1, 2, 3, 4, 5)])
    assert not (home_of(begun).run_folder(resumed.lineage) / "taken").exists()


def test_a_new_operator_starts_empty_and_an_old_one_is_not_lost_in_silence(begun: Bench) -> None:
    begun.put("orders", [order(4)])
    wider = run(begun, store(extra=True), restore_from="latest")
    assert wider.totals.state_rows == {"with-user": 1, "with-item": 1, "with-friend": 0}
    with refused("RESTORE_UNKNOWN_OPERATOR"):
        run(begun, restore_from="latest")
    run(begun, restore_from="latest", drop_state=("with-friend",))
    begun.put("orders", [order(5)])
    run(begun)
    assert begun.bag("out")[next(iter(bag([row(5)])))] == 1


def test_a_changed_schema_is_refused_and_an_added_column_is_migrated(begun: Bench) -> None:
    with refused("SCHEMA_CHANGED") as told:
        run(begun, store(user="id BIGINT, name BIGINT"), restore_from="latest")
    assert "name" in told.value.message
    begun.put("orders", [order(4)])
    run(begun, store(user="id BIGINT, name STRING, mail STRING"), restore_from="latest")
    assert begun.bag("out") == bag([row(1), row(2), row(3), row(4, mail=None)])


def test_a_savepoint_moved_to_another_place_restores_when_nothing_else_is_left(
    begun: Bench, tmp_path: Path
) -> None:
    home = home_of(begun)
    lineage = str(home.find_present_run())
    newest = list_kept(home.checkpoints_folder(lineage))[-1]
    savepoints.create_from(newest, tmp_path / "taken")
    moved = tmp_path / "elsewhere" / "moved"
    moved.parent.mkdir()
    shutil.move(tmp_path / "taken", moved)
    shutil.rmtree(begun.home)
    begun.put("orders", [order(4)])
    done = run(begun, restore_from=str(moved))
    assert done.totals.inputs == {"orders": 1, "users": 0, "items": 0}
    # As a run that nobody disturbed.
    assert begun.bag("out") == bag([row(1), row(2), row(3), row(4)])


DAMAGES = ("truncate", "delete", "flip")


def damage(file: Path, how: str, seed: int) -> None:
    """Damage a file as a disk or a careless hand would; links to it elsewhere stay whole."""
    content = file.read_bytes()
    file.unlink()
    if how == "truncate":
        file.write_bytes(content[: len(content) // 2])
    elif how == "flip":
        place = random.Random(seed).randrange(max(1, len(content)))
        file.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_checkpoint_is_reported_and_never_gives_a_wrong_answer(
    begun: Bench, how: str
) -> None:
    """Every kind of file in turn: the job falls back and says so, or goes on unharmed."""
    flow = store()
    wanted = set(bag([row(1), row(2), row(3), row(4)]))
    seen: Counter[str] = Counter()
    for seed, kind in enumerate(("offsets", "commits", "metadata", "state", "changelog")):
        home = home_of(begun)
        lineage = str(home.find_present_run())
        checkpoint = home.run_folder(lineage) / "checkpoint"
        file = _newest(checkpoint, kind)
        damage(file, how, seed)
        if seed == 0:
            begun.put("orders", [order(4)])
        try:
            done = run(begun, flow)
        except HeadgateError:
            # Any other error fails the test.
            seen["refused"] += 1
            run(begun, flow, restore_from="latest")
        else:
            seen["fell back" if done.notice else "unharmed"] += 1
        # Rows may come again after a fall back; none may be lost, and none may be wrong.
        assert set(begun.bag("out")) == wanted, (kind, how)
    assert seen["fell back"] >= 1, seen
    print(how, dict(seen))


def test_strict_stops_where_it_would_fall_back(begun: Bench) -> None:
    home = home_of(begun)
    checkpoint = home.run_folder(str(home.find_present_run())) / "checkpoint"
    damage(_newest(checkpoint, "changelog"), "truncate", 1)
    with refused("CHECKPOINT_DAMAGED"):
        run(begun, strict=True)
    assert "went back to chk-" in run(begun).notice


def spoil(bench: Bench, *, after: int) -> None:
    """Damage all that the present run has of batches behind one, in Spark's folder and kept."""
    home = home_of(bench)
    lineage = str(home.find_present_run())
    (home.run_folder(lineage) / "checkpoint" / "metadata").unlink()
    for each in list_kept(home.checkpoints_folder(lineage)):
        if each.batch > after:
            damage(local(each.folder) / "offsets" / str(each.batch), "truncate", 1)


def test_a_fall_back_that_writes_rows_again_needs_consent_and_an_audit_finds_them(
    begun: Bench,
) -> None:
    first = str(home_of(begun).find_present_run())
    spoil(begun, after=1)
    for _ in range(2):
        with refused("FALLBACK_REPEATS") as told:
            run(begun)
        assert "output 'out' holds 2 rows of later batches" in told.value.message
        assert "2 records of 'orders' are read again" in told.value.message
        assert "'users'" not in told.value.message
        assert "--allow-repeats" in told.value.hint
        assert "chk-1" in told.value.hint
    assert home_of(begun).find_present_run() == first
    assert begun.bag("out") == bag([row(1), row(2), row(3)])
    by_order = AuditRequest(key=("n",))
    assert FolderHome(begun.home).audit("store", by_order).ok

    begun.put("orders", [order(4)])
    repeating = Consent(allow_repeats=True)
    done = run(begun, consent=repeating)
    assert done.lineage != first
    assert "output 'out' holds 2 rows of later batches" in done.notice
    assert begun.bag("out") == bag([row(n) for n in (1, 2, 2, 3, 3, 4)])
    found = FolderHome(begun.home).audit("store", by_order)
    assert (found.ok, found.lost, found.doubled, found.unknown) == (False, 0, 2, 0)
    assert found.records == 4
    # By itself each run is right.
    assert FolderHome(begun.home).audit("store", replace(by_order, lineage=done.lineage)).ok

    # The new run has nothing that is whole: back to the first one's checkpoint once more.
    spoil(begun, after=-1)
    with refused("FALLBACK_REPEATS") as told:
        run(begun)
    assert "output 'out' holds 3 rows of later batches" in told.value.message
    again = run(begun, consent=repeating)
    assert begun.bag("out") == bag([row(n) for n in (1, 2, 2, 2, 3, 3, 3, 4, 4)])
    found = FolderHome(begun.home).audit("store", by_order)
    assert (found.lineage, found.doubled, found.lost) == (again.lineage, 5, 0)


def test_a_fall_back_that_repeats_nothing_needs_no_consent(begun: Bench) -> None:
    home = home_of(begun)
    last = list_kept(home.checkpoints_folder(str(home.find_present_run())))[-1]
    spoil(begun, after=last.batch)
    begun.put("orders", [order(4)])
    done = run(begun)
    assert f"went back to {last.id}; no row is repeated" in done.notice
    assert begun.bag("out") == bag([row(n) for n in (1, 2, 3, 4)])
    assert FolderHome(begun.home).audit("store", AuditRequest(key=("n",))).ok


def test_at_least_once_falls_back_without_consent_and_says_what_it_repeats(begun: Bench) -> None:
    spoil(begun, after=2)
    done = run(begun, delivery=Delivery.AT_LEAST_ONCE)
    assert "output 'out' holds 1 row of later batches" in done.notice
    assert begun.bag("out") == bag([row(n) for n in (1, 2, 3, 3)])


def _newest(checkpoint: Path, kind: str) -> Path:
    match kind:
        case "offsets" | "commits":
            logs = [each for each in (checkpoint / kind).iterdir() if each.name.isdigit()]
            return max(logs, key=lambda each: int(each.name))
        case "metadata":
            return checkpoint / "metadata"
        case "state":
            return max((checkpoint / "state").glob("*/_metadata/v2/[0-9]*"))
        case _:
            found = (checkpoint / "state" / "0").glob("*/*.changelog")
            return max(found, key=lambda each: int(each.name.split("_")[0]))


def test_verify_opens_the_state_and_counts_its_rows(begun: Bench) -> None:
    begun.put("users", [{"id": n, "name": "x"} for n in range(10, 30)])
    run(begun)
    found = verify_anything(begun.home, "store")
    assert all(not each.problems for each in found)
    opened = [each for each in found if each.rows is not None]
    assert [each.rows for each in opened] == [{"with-user": 21, "with-item": 1}]
    assert opened[0].id == [each.id for each in found if isinstance(each, Checkpoint)][-1]


def test_a_cancel_that_deletes_leaves_a_job_that_starts_again_from_nothing(begun: Bench) -> None:
    home = home_of(begun)
    lineage = str(home.find_present_run())
    present = find_run(home, lineage)
    assert present is not None
    options = RunOptions(delete_on_cancel=True)
    CheckpointKeeper(home, present, options, SystemClock()).job_ended(canceled=True)
    assert kept_of(begun, lineage) == []
    # Its output files are still there: under their names nothing could be written again.
    done = run(begun)
    assert done.lineage != lineage
    assert done.totals.inputs == {"orders": 3, "users": 1, "items": 1}
    assert begun.bag("out") == bag([row(n) for n in (1, 2, 3)] * 2)
