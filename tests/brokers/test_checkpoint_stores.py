"""Kept checkpoints, savepoints and forks: the same promises on disks, shared or not, and on S3."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from eventually import eventually
from fake_clock import FakeClock
from stored_run import NOON, facts, unpack
from upath import UPath

from headgate._locations import Location, is_local, parse_location, url_of
from headgate.checkpoints import catalog, savepoint, sparklog
from headgate.checkpoints.catalog import keep, list_kept, remove
from headgate.checkpoints.restore import fork
from headgate.checkpoints.stores import files_at, objects, place_at, spark_folder
from headgate.checkpoints.verify import verify, verify_batch
from headgate.errors import HeadgateError, StoreError

RUN = "first"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give Spark's folder of a stored run, which no test changes."""
    return unpack(tmp_path_factory.mktemp("stored"))


@pytest.fixture(params=["disk", "s3", "shared"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """Give an empty folder on a disk, one on S3, and one that hosts share."""
    if request.param == "disk":
        return tmp_path / "store"
    place: Location = request.getfixturevalue(f"{request.param}_place")
    return place


@pytest.fixture(scope="module")
def uploads() -> dict[str, str]:
    """Give where the stored run is on S3, once a test has brought it there."""
    return {}


@pytest.fixture
def checkpoint(home: Location, stored: Path, uploads: dict[str, str]) -> Location:
    """Give Spark's folder of a run on the same disk or store, which no test changes."""
    return stored if is_local(home) else checkpoint_at(home, stored, uploads)


def checkpoint_at(home: Location, stored: Path, uploads: dict[str, str]) -> Location:
    kind = url_of(home).partition(":")[0]
    if kind not in uploads:
        folder = home.parent / f"{home.name}-stored" / "checkpoint"
        with place_at(folder).publishing() as draft:
            draft.bring(files_at(stored), files_at(stored).walk("."))
        uploads[kind] = url_of(folder)
    return parse_location(uploads[kind])


@pytest.fixture
def into(home: Location) -> Location:
    return home / RUN / "checkpoints"


def files_under(folder: Location) -> set[str]:
    if isinstance(folder, Path):
        return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}
    return set(objects.list_objects(folder))


def write(file: Location, content: bytes) -> None:
    if is_local(file):
        # A kept file may be a hard link.
        file.unlink()
    file.write_bytes(content)


def test_a_kept_checkpoint_has_what_a_resume_needs(checkpoint: Location, into: Location) -> None:
    kept = keep(checkpoint, 12, into, facts())
    assert kept.folder == into / "chk-12"
    assert verify(kept.folder) == []
    assert sparklog.files_of(kept.folder, 12) == sparklog.files_of(checkpoint, 12)
    assert [one.id for one in list_kept(into)] == ["chk-12"]
    assert catalog.read_kept(kept.folder) == kept


def test_spark_finds_a_kept_batch_in_one_folder(checkpoint: Location, into: Location) -> None:
    kept = keep(checkpoint, 12, into, facts())
    folder = spark_folder(kept.folder)
    names = files_under(folder)
    assert set(sparklog.files_of(checkpoint, 12)) <= names
    assert sparklog.read_commit(folder, 12) == sparklog.read_commit(checkpoint, 12)


def test_positions_are_read_from_a_kept_checkpoint(checkpoint: Location, into: Location) -> None:
    kept = keep(checkpoint, 12, into, facts())
    assert sparklog.read_offsets(kept.folder, 12) == sparklog.read_offsets(checkpoint, 12)
    assert sparklog.find_last_commit(checkpoint) == 20


def test_what_two_checkpoints_share_is_stored_once(checkpoint: Location, into: Location) -> None:
    first = keep(checkpoint, 13, into, facts())
    before = files_under(into)
    second = keep(checkpoint, 14, into, facts())
    assert second.new_bytes < second.full_bytes / 2
    if not is_local(into):
        new = files_under(into) - before
        assert len(new) < 30
        shared = set(catalog.read_manifest(first.folder).files) & set(
            catalog.read_manifest(second.folder).files
        )
        assert not {f"pool/{file}" for file in shared} & new


def test_removing_the_older_of_two_leaves_what_the_newer_needs(
    checkpoint: Location, into: Location
) -> None:
    first, second = (keep(checkpoint, batch, into, facts()) for batch in (13, 14))
    own = set(catalog.read_manifest(first.folder).files)
    left = set(catalog.read_manifest(second.folder).files)
    assert remove(first.folder)
    assert [one.id for one in list_kept(into)] == ["chk-14"]
    assert verify(second.folder) == []
    if not is_local(into):
        assert files_under(into) == {"chk-14/checkpoint.json", *(f"pool/{file}" for file in left)}
        assert own - left
    assert remove(second.folder)
    assert files_under(into) == set()


def test_keeping_a_batch_again_gives_what_is_there(checkpoint: Location, into: Location) -> None:
    first = keep(checkpoint, 5, into, facts())
    assert keep(checkpoint, 5, into, facts(job="another")) == first


def test_a_checkpoint_with_a_corrupted_manifest_is_kept_anew(
    checkpoint: Location, into: Location
) -> None:
    kept = keep(checkpoint, 5, into, facts(), clock=FakeClock())
    write(kept.folder / "checkpoint.json", b"{")
    assert list_kept(into) == []
    assert [problem.file for problem in catalog.list_all(into)[1]] == ["chk-5"]
    assert keep(checkpoint, 5, into, facts(), clock=FakeClock()) == kept
    assert catalog.list_all(into)[1] == []


def test_no_shared_file_is_removed_while_a_manifest_cannot_be_read(
    checkpoint: Location, into: Location
) -> None:
    first, second = (keep(checkpoint, batch, into, facts()) for batch in (13, 14))
    intact = (second.folder / "checkpoint.json").read_bytes()
    write(second.folder / "checkpoint.json", b"{")
    assert remove(first.folder)
    write(second.folder / "checkpoint.json", intact)
    assert verify(second.folder) == []


def test_a_batch_that_did_not_commit_is_not_kept(checkpoint: Location, into: Location) -> None:
    with pytest.raises(HeadgateError) as caught:
        keep(checkpoint, 21, into, facts())
    assert caught.value.code == "CHECKPOINT_INCOMPLETE"
    assert files_under(into) == set()


def test_checkpoints_are_listed_oldest_first(checkpoint: Location, into: Location) -> None:
    for batch in (10, 9, 2):
        keep(checkpoint, batch, into, facts(completed_at=NOON + timedelta(seconds=batch)))
    assert [one.id for one in list_kept(into)] == ["chk-2", "chk-9", "chk-10"]
    assert catalog.list_names(into) == ["chk-10", "chk-2", "chk-9"]
    assert list_kept(into.parent / "nowhere") == []


def test_a_pinned_checkpoint_stays_until_it_is_unpinned(
    checkpoint: Location, into: Location
) -> None:
    kept = keep(checkpoint, 9, into, facts())
    catalog.pin(kept.folder, job="shop")
    assert list_kept(into)[0].pinned
    assert not remove(kept.folder)
    catalog.unpin(kept.folder)
    assert not catalog.read_kept(kept.folder).pinned
    assert remove(kept.folder)
    with pytest.raises(HeadgateError, match="removed meanwhile"):
        catalog.pin(kept.folder, job="shop")
    assert files_under(into) == set()


def test_a_held_checkpoint_stays_until_it_is_let_go(checkpoint: Location, into: Location) -> None:
    kept = keep(checkpoint, 9, into, facts())
    with catalog.hold(kept.folder, job="shop"), catalog.hold(kept.folder, job="shop"):
        assert catalog.is_held(kept.folder)
        assert not remove(kept.folder)
    assert not catalog.is_held(kept.folder)
    assert remove(kept.folder)
    with (
        pytest.raises(HeadgateError, match="removed meanwhile"),
        catalog.hold(kept.folder, job="shop"),
    ):
        pass


def test_a_missing_state_file_is_named(checkpoint: Location, into: Location) -> None:
    kept = keep(checkpoint, 14, into, facts())
    file = _state_file(kept.folder)
    (spark_folder(kept.folder) / file).unlink()
    for quick in (True, False):
        problems = verify(kept.folder, quick=quick)
        assert problems[0].file == file
        assert problems[0].missing


def test_a_corrupted_state_file_is_named(checkpoint: Location, into: Location) -> None:
    kept = keep(checkpoint, 14, into, facts())
    file = spark_folder(kept.folder) / _state_file(kept.folder)
    content = file.read_bytes()
    write(file, content[:-1] + bytes([content[-1] ^ 1]))
    assert [problem.what for problem in verify(kept.folder)] == [
        "its checksum differs from Spark's"
    ]
    write(file, content[:-1])
    assert "truncated" in verify(kept.folder, quick=True)[0].what


def test_a_corrupted_checksum_is_noticed(checkpoint: Location, into: Location) -> None:
    kept = keep(checkpoint, 14, into, facts())
    file = spark_folder(kept.folder) / f"{_state_file(kept.folder)}.crc"
    write(file, b"x" * len(file.read_bytes()))
    assert len(verify(kept.folder)) == 1


def _state_file(kept: Location) -> str:
    files = sorted(catalog.read_manifest(kept).files)
    return next(file for file in files if file.endswith(".changelog"))


def test_what_a_killed_process_copied_is_swept(
    checkpoint: Location, into: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = keep(checkpoint, 13, into, facts())
    before = files_under(into)

    class KilledError(BaseException):
        pass

    def die(*_args: object, **_named: object) -> None:
        raise KilledError

    monkeypatch.setattr(catalog, "describe", die)
    with pytest.raises(KilledError):
        keep(checkpoint, 14, into, facts())
    monkeypatch.undo()
    assert [one.id for one in list_kept(into)] == ["chk-13"]
    catalog.sweep(into)
    assert files_under(into) == before
    assert verify(kept.folder) == []


def test_a_fork_resumes_where_the_checkpoint_is(
    checkpoint: Location, into: Location, home: Location
) -> None:
    kept = keep(checkpoint, 12, into, facts())
    new = home / "second" / "checkpoint"
    fork(kept.folder, new)
    assert sparklog.find_last_commit(new) == 12
    assert verify_batch(new, 12) == []
    assert sparklog.read_query_id(new) != sparklog.read_query_id(checkpoint)
    _check_schemas(new)
    with pytest.raises(HeadgateError, match="there is something already"):
        fork(kept.folder, new)


def test_a_fork_goes_from_disk_to_store_and_back(
    stored: Path, tmp_path: Path, home: Location
) -> None:
    kept = keep(stored, 12, tmp_path / "kept" / "checkpoints", facts())
    fork(kept.folder, home / "up")
    again = keep(home / "up", 12, home / RUN / "checkpoints", facts())
    fork(again.folder, tmp_path / "down")
    assert verify_batch(tmp_path / "down", 12) == []
    _check_schemas(home / "up")
    _check_schemas(tmp_path / "down")


def _check_schemas(folder: Location) -> None:
    present = files_at(folder)
    named = [file for file in present.walk("state") if "/_metadata/v2/" in file]
    paths = [
        path
        for file in named
        if file.rpartition("/")[2].isdigit()
        for store in json.loads(present.read(file).partition(b"\n")[2])["stateStoreInfo"]
        for path in store["stateSchemaFilePaths"]
    ]
    assert paths
    assert all(path.startswith(f"{url_of(folder)}/state/") for path in paths)


def test_a_savepoint_is_complete_and_needs_nothing_else(
    checkpoint: Location, into: Location, home: Location
) -> None:
    kept = keep(checkpoint, 12, into, facts())
    taken = savepoint.create_from(kept, home / "savepoints" / "before-upgrade")
    assert taken.id == "before-upgrade"
    assert remove(kept.folder)
    assert verify(taken.folder) == []
    fork(taken.folder, home / "second" / "checkpoint")
    assert sparklog.find_last_commit(home / "second" / "checkpoint") == 12


def test_an_abandoned_savepoint_leaves_nothing(
    checkpoint: Location, into: Location, home: Location
) -> None:
    kept = keep(checkpoint, 12, into, facts())
    with pytest.raises(HeadgateError, match="canceled meanwhile"):
        savepoint.create_from(kept, home / "savepoints" / "x", is_abandoned=lambda: True)
    assert files_under(home / "savepoints") == set()


def test_of_two_savepoints_in_one_folder_one_is_whole(
    checkpoint: Location, into: Location, home: Location
) -> None:
    first, second = (keep(checkpoint, batch, into, facts()) for batch in (12, 13))
    folder = home / "savepoints" / "x"
    taken: list[bool] = []

    def take_the_other() -> bool:
        if not taken:
            taken.append(True)
            with contextlib.suppress(HeadgateError):
                savepoint.create_from(first, folder)
        return False

    with contextlib.suppress(HeadgateError):
        savepoint.create_from(second, folder, is_abandoned=take_the_other)
    assert taken
    assert verify(folder) == []
    # On a disk the first one that is complete, on a store the first one that was begun.
    assert catalog.read_kept(folder).batch == (12 if is_local(home) else 13)


@pytest.mark.parametrize("checks", [1, 2])
def test_a_process_that_lost_the_run_leaves_no_checkpoint(
    checkpoint: Location, into: Location, checks: int
) -> None:
    keep(checkpoint, 13, into, facts())
    with pytest.raises(HeadgateError, match="taken over"):
        keep(checkpoint, 14, into, facts(), check=_losing(checks))
    assert [one.id for one in list_kept(into)] == ["chk-13"]
    assert catalog.list_all(into)[1] == []


def _losing(checks: int) -> Callable[[], None]:
    """Return a check that fails at a certain call, and from then on."""
    left = iter(range(1, checks))

    def check() -> None:
        if next(left, None) is None:
            raise HeadgateError("LEASE_LOST", "the job was taken over")

    return check


# What only a store does.


@pytest.mark.parametrize("checks", [1, 2])
def test_a_process_that_lost_the_run_removes_no_file_of_a_newer_checkpoint(
    s3_place: UPath, stored: Path, checks: int
) -> None:
    into = s3_place / RUN / "checkpoints"
    first = keep(stored, 13, into, facts())
    newer: list[Location] = []

    def check() -> None:
        # Another process keeps a checkpoint meanwhile, which needs the same files.
        if not newer:
            newer.append(keep(stored, 14, into, facts()).folder)
        fail()

    fail = _losing(checks)
    with pytest.raises(HeadgateError, match="taken over"):
        remove(first.folder, check=check)
    assert verify(newer[0]) == []


def test_a_hold_whose_process_died_ends(
    s3_place: UPath, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = keep(stored, 12, s3_place / RUN / "checkpoints", facts())
    monkeypatch.setattr(threading.Thread, "start", lambda _: None)
    monkeypatch.setattr(threading.Thread, "join", lambda _: None)
    holding = place_at(kept.folder).holding()
    assert holding.__enter__()
    assert catalog.is_held(kept.folder)
    # Renewed for the last time a while ago.
    monkeypatch.setattr(objects, "HELD_FOR", timedelta(seconds=-1))
    assert not catalog.is_held(kept.folder)


def test_the_clock_of_a_host_says_nothing_of_a_hold(
    s3_place: UPath, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = keep(stored, 12, s3_place / RUN / "checkpoints", facts())
    with catalog.hold(kept.folder, job="shop"):
        monkeypatch.setattr(time, "time", lambda: NOON.timestamp() + 1e9)
        assert catalog.is_held(kept.folder)
        assert not remove(kept.folder)
        monkeypatch.undo()


def test_a_hold_ends_though_the_store_fails(
    s3_place: UPath, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = keep(stored, 12, s3_place / RUN / "checkpoints", facts())

    async def fail(*_args: object, **_named: object) -> None:
        raise StoreError("STORE_UNAVAILABLE", "cannot use S3")

    with catalog.hold(kept.folder, job="shop"):
        monkeypatch.setattr(type(s3_place.fs), "_call_s3", fail)


def test_a_hold_is_renewed(s3_place: UPath, stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = keep(stored, 12, s3_place / RUN / "checkpoints", facts())
    monkeypatch.setattr(objects, "_RENEWED_AFTER_S", 0.05)
    with catalog.hold(kept.folder, job="shop"):
        (name,) = objects.list_objects(s3_place / RUN / "checkpoints" / "chk-12", "held-")
        hold = s3_place / RUN / "checkpoints" / "chk-12" / name
        first = s3_place.fs.info(hold.path)["LastModified"]
        assert eventually(lambda: s3_place.fs.info(hold.path)["LastModified"] != first)


def test_keeping_asks_the_store_for_new_files_only(
    s3_place: UPath, stored: Path, uploads: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, into = checkpoint_at(s3_place, stored, uploads), s3_place / RUN / "checkpoints"
    first = keep(checkpoint, 13, into, facts())
    asked: list[str] = []
    fs = type(s3_place.fs)
    call = fs._call_s3

    async def noting(self: object, method: str, *args: object, **kwargs: object) -> object:
        asked.append(method)
        return await call(self, method, *args, **kwargs)

    monkeypatch.setattr(fs, "_call_s3", noting)
    second = keep(checkpoint, 14, into, facts())
    new = catalog.read_manifest(second.folder).files.keys() - (
        catalog.read_manifest(first.folder).files.keys()
    )
    assert asked.count("copy_object") == len(new)
    assert asked.count("put_object") == 1
    # Of each partition the head of a changelog; the logs, and what has no checksum of Spark's.
    assert asked.count("get_object") <= 30
    assert asked.count("list_objects_v2") <= 10
    assert asked.count("head_object") == 0
