"""What a job can go back to: read from its folders, the same that a restore finds."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate._codec import encode
from headgate.checkpoints import manifest as manifests
from headgate.checkpoints.manifest import FILE_NAMES, CheckpointFacts, Kind, Manifest, SourceFacts
from headgate.errors import HeadgateError
from headgate.flow.flow import Flow
from headgate.jobs.checkpoints.listing import list_past
from headgate.jobs.checkpoints.restore_plan import find_target
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import Origin, new_run, write_run

JOB = "shop"
BEGAN = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
NOW = BEGAN + timedelta(hours=1)


class Shop:
    """A job's folder with checkpoints that hold no state."""

    def __init__(self, root: Path) -> None:
        self.home = JobFolder(root, JOB)
        flow = Flow(JOB)
        flow.stream("orders", "id BIGINT NOT NULL").to("copies")
        self._graph = flow.graph()

    def begin_run(self, at: datetime, origin: Origin | None = None) -> str:
        run = new_run(self.home, self._graph, parallelism=1, checkpoints=None, now=at)
        write_run(self.home, replace(run, origin=origin))
        self.home.write_job(run.lineage, flow="flow.py", options={})
        return run.lineage

    def keep(self, lineage: str, batch: int, at: datetime, *, name: str = "") -> None:
        kind = Kind.SAVEPOINT if name else Kind.CHECKPOINT
        facts = CheckpointFacts(
            job=JOB,
            lineage=lineage,
            completed_at=at,
            parallelism=1,
            sources={"orders": SourceFacts(None, 10 * batch)},
        )
        made = Manifest(kind=kind, batch=batch, facts=facts, full_bytes=7, new_bytes=7, files={})
        folder = (
            self.home.savepoints_folder / name
            if name
            else self.home.checkpoints_folder(lineage) / f"chk-{batch}"
        )
        folder.mkdir(parents=True)
        (folder / FILE_NAMES[kind]).write_text(manifests.render(made), encoding="utf-8")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def _at(minutes: int) -> datetime:
    return BEGAN + timedelta(minutes=minutes)


def _restored(shop: Shop) -> tuple[str, str]:
    """Return a run with checkpoints at 1, 2 and 3 minutes, and one that left it at the second."""
    first = shop.begin_run(BEGAN)
    for batch in (1, 2, 3):
        shop.keep(first, batch, _at(batch))
    second = shop.begin_run(_at(10), Origin("chk-2", first, 2))
    shop.keep(second, 3, _at(11))
    shop.keep(second, 4, _at(12))
    return first, second


def test_a_past_is_what_a_restore_can_take(shop: Shop) -> None:
    first, second = _restored(shop)
    shop.keep(first, 2, _at(2), name="before-sale")
    past = FolderHome(shop.home.root).past(JOB)
    kept = list_past(shop.home)
    assert [each.id for each in past.checkpoints] == [each.id for each in kept]
    assert [each.completed_at for each in past.checkpoints] == [each.completed_at for each in kept]
    assert {each.source for each in past.checkpoints} >= {f"{first}/chk-1", "before-sale"}
    assert f"{first}/chk-3" not in [each.source for each in past.checkpoints]
    assert f"{second}/chk-3" in [each.source for each in past.checkpoints]


def test_the_source_of_each_moment_means_that_one(shop: Shop) -> None:
    first, _ = _restored(shop)
    shop.keep(first, 2, _at(2), name="before-sale")
    for each in FolderHome(shop.home.root).past(JOB).checkpoints:
        target = find_target(shop.home, source=each.source, at=None, now=NOW)
        assert (target.id, target.completed_at) == (each.id, each.completed_at)
        assert target.run == each.run


@pytest.mark.parametrize("minutes", [1, 2, 5, 11, 30])
def test_a_moment_means_the_same_as_restore_at(shop: Shop, minutes: int) -> None:
    _restored(shop)
    past = FolderHome(shop.home.root).past(JOB)
    target = find_target(shop.home, source=None, at=_at(minutes).isoformat(), now=NOW)
    found = past.find_at(_at(minutes))
    assert found is not None
    assert (found.id, found.run) == (target.id, target.run)


def test_restores_are_told_with_what_they_went_back_to(shop: Shop) -> None:
    first, second = _restored(shop)
    (restore,) = FolderHome(shop.home.root).past(JOB).restores
    assert (restore.run, restore.checkpoint, restore.of) == (second, "chk-2", first)
    assert restore.at == _at(10)


def test_a_savepoint_that_a_restore_left_stays_beside_the_past(shop: Shop) -> None:
    first, _ = _restored(shop)
    shop.keep(first, 2, _at(2), name="before-sale")
    shop.keep(first, 3, _at(3), name="after-sale")
    past = FolderHome(shop.home.root).past(JOB)
    (left,) = past.left_behind
    assert (left.id, left.run) == ("after-sale", first)
    # A moment means what restore --at means, and never a savepoint of another past.
    found = past.find_at(_at(5))
    assert found is not None
    assert found.id == "before-sale"
    assert find_target(shop.home, source=left.source, at=None, now=NOW).folder == left.folder


def test_every_checkpoint_that_is_listed_has_a_name_of_its_own(shop: Shop) -> None:
    first, second = _restored(shop)
    home = FolderHome(shop.home.root)
    listed = home.checkpoints(JOB, every_run=True)
    assert [each.id for each in listed].count("chk-3") == 2
    assert len({each.source for each in listed}) == len(listed)
    for each in listed:
        assert find_target(shop.home, source=each.source, at=None, now=NOW).folder == each.folder
        assert home.checkpoint(JOB, each.source).folder == each.folder
    assert home.pin(JOB, f"{first}/chk-3", pinned=True).pinned
    assert not home.checkpoint(JOB, f"{second}/chk-3").pinned
    assert home.checkpoint(JOB, "chk-3").run == second
    assert encode(home.checkpoint(JOB, "chk-3"))["restore_from"] == f"{second}/chk-3"
    for unknown in (f"{first}/chk-9", f"../{first}/chk-3", "nobody/chk-3"):
        with pytest.raises(HeadgateError) as refusal:
            home.checkpoint(JOB, unknown)
        assert refusal.value.code == "CHECKPOINT_NOT_FOUND"


def test_a_refused_restore_names_checkpoints_that_can_be_restored(shop: Shop) -> None:
    first, _ = _restored(shop)
    with pytest.raises(HeadgateError) as refusal:
        find_target(shop.home, source="chk-99", at=None, now=NOW)
    assert f"it has {first}/chk-1, {first}/chk-2, chk-3, chk-4" in refusal.value.message


def test_of_very_many_checkpoints_the_newest_are_read(shop: Shop) -> None:
    lineage = shop.begin_run(BEGAN)
    for batch in range(12):
        shop.keep(lineage, batch, _at(batch))
    shop.keep(lineage, 1, _at(1), name="first-day")
    past = FolderHome(shop.home.root).past(JOB, most=3)
    assert [each.id for each in past.checkpoints] == ["first-day", "chk-9", "chk-10", "chk-11"]
    assert past.left_off == 9


def test_a_damaged_checkpoint_is_no_moment(shop: Shop) -> None:
    lineage = shop.begin_run(BEGAN)
    shop.keep(lineage, 1, _at(1))
    shop.keep(lineage, 2, _at(2))
    (shop.home.checkpoints_folder(lineage) / "chk-2" / FILE_NAMES[Kind.CHECKPOINT]).write_text("{")
    assert [each.id for each in FolderHome(shop.home.root).past(JOB).checkpoints] == ["chk-1"]


def test_pins_and_records_are_told(shop: Shop) -> None:
    lineage = shop.begin_run(BEGAN)
    shop.keep(lineage, 3, _at(1))
    (shop.home.checkpoints_folder(lineage) / "chk-3" / "pinned").touch()
    (checkpoint,) = FolderHome(shop.home.root).past(JOB).checkpoints
    assert checkpoint.pinned
    assert checkpoint.records == 30
    assert checkpoint.source == f"{lineage}/chk-3"


def test_a_job_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HeadgateError) as refusal:
        FolderHome(tmp_path).past("nobody")
    assert refusal.value.code == "JOB_NOT_FOUND"
