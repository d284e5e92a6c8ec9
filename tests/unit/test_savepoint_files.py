"""Savepoints: self-contained, movable, and checked to the last byte."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from stored_run import facts, files_under, local, unpack

from headgate.checkpoints import savepoint, sparklog
from headgate.checkpoints.catalog import keep, list_kept, read_kept, read_manifest
from headgate.checkpoints.manifest import Kind
from headgate.checkpoints.restore import fork
from headgate.checkpoints.verify import verify
from headgate.errors import HeadgateError


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return unpack(tmp_path)


def test_a_savepoint_shares_no_file_with_the_job(checkpoint: Path, tmp_path: Path) -> None:
    taken = savepoint.create(checkpoint, 12, tmp_path / "sp", facts())
    files = set(sparklog.files_of(checkpoint, 12))
    assert files_under(local(taken.folder)) == files | {"manifest.json"}
    assert not any((taken.folder / each).samefile(checkpoint / each) for each in files)


def test_a_savepoint_can_be_moved_and_needs_nothing_else(checkpoint: Path, tmp_path: Path) -> None:
    savepoint.create(checkpoint, 12, tmp_path / "sp", facts())
    shutil.rmtree(checkpoint)
    moved = tmp_path / "else" / "where"
    moved.parent.mkdir()
    (tmp_path / "sp").rename(moved)
    assert (verify(moved), read_kept(moved).batch) == ([], 12)
    fork(moved, tmp_path / "new")
    assert sparklog.find_last_commit(tmp_path / "new") == 12


def test_its_manifest_holds_a_checksum_of_every_file_and_what_the_state_means(
    checkpoint: Path, tmp_path: Path
) -> None:
    savepoint.create(checkpoint, 12, tmp_path / "sp", facts())
    manifest = json.loads((tmp_path / "sp" / "manifest.json").read_text())
    for file, (size, sha256) in manifest["files"].items():
        content = (tmp_path / "sp" / file).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (size, sha256)
    assert (manifest["format"], manifest["state_format"]) == (2, 2)
    assert manifest["kind"] == "savepoint"
    assert manifest["flow"]["name"] == "shop"
    assert manifest["operators"] == ["with-user", "with-item"]
    assert manifest["parallelism"] == 2
    assert manifest["sources"]["orders"] == {"position": '{"file":3,"byte":0}', "records": 12}


def test_a_savepoint_is_taken_from_a_kept_checkpoint_too(checkpoint: Path, tmp_path: Path) -> None:
    kept = keep(checkpoint, 12, tmp_path / "kept", facts())
    shutil.rmtree(checkpoint)
    taken = savepoint.create_from(kept, tmp_path / "savepoints" / "before-upgrade")
    assert read_manifest(taken.folder).facts == read_manifest(kept.folder).facts
    assert read_kept(taken.folder) == taken
    (listed,) = list_kept(tmp_path / "savepoints")
    assert (listed.id, listed.kind) == ("before-upgrade", Kind.SAVEPOINT)


def test_damage_is_not_copied_into_a_savepoint(checkpoint: Path, tmp_path: Path) -> None:
    file = next(checkpoint.glob("state/0/0/12_*.changelog"))
    content = bytearray(file.read_bytes())
    content[-1] ^= 0xFF
    file.write_bytes(bytes(content))
    with pytest.raises(HeadgateError, match=file.name) as caught:
        savepoint.create(checkpoint, 11, tmp_path / "sp", facts())
    assert caught.value.code == "CHECKPOINT_DAMAGED"
    assert not (tmp_path / "sp").exists()


def test_a_damaged_kept_checkpoint_makes_no_savepoint(checkpoint: Path, tmp_path: Path) -> None:
    kept = keep(checkpoint, 12, tmp_path / "kept", facts())
    (kept.folder / "sources/users/load-target-v1.json").write_text("{}")
    with pytest.raises(HeadgateError) as caught:
        savepoint.create_from(kept, tmp_path / "sp")
    assert caught.value.code == "CHECKPOINT_DAMAGED"


def test_a_folder_that_exists_is_never_written_into(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "sp").mkdir()
    with pytest.raises(HeadgateError) as caught:
        savepoint.create(checkpoint, 12, tmp_path / "sp", facts())
    assert caught.value.code == "CHECKPOINT_EXISTS"
    assert list((tmp_path / "sp").iterdir()) == []


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "", "a/../../b"])
def test_a_manifest_that_names_files_outside_is_refused(
    checkpoint: Path, tmp_path: Path, name: str
) -> None:
    savepoint.create(checkpoint, 12, tmp_path / "sp", facts())
    file = tmp_path / "sp" / "manifest.json"
    content = json.loads(file.read_text())
    content["files"][name] = [1, None]
    file.write_text(json.dumps(content))
    with pytest.raises(HeadgateError) as caught:
        read_kept(tmp_path / "sp")
    assert caught.value.code == "CHECKPOINT_DAMAGED"


def test_a_savepoint_of_a_format_to_come_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    savepoint.create(checkpoint, 12, tmp_path / "sp", facts())
    file = tmp_path / "sp" / "manifest.json"
    file.write_text(file.read_text().replace('"format": 2', '"format": 3', 1))
    with pytest.raises(HeadgateError, match="its format is 3, and this release reads 1 to 2"):
        read_kept(tmp_path / "sp")


@pytest.mark.parametrize("looks", [0, 1, 5, 10_000])
def test_a_savepoint_that_is_given_up_leaves_nothing(
    checkpoint: Path, tmp_path: Path, looks: int
) -> None:
    kept = keep(checkpoint, 12, tmp_path / "kept", facts())
    left = [looks]
    to = tmp_path / "savepoints" / "sp"

    def is_abandoned() -> bool:
        left[0] -= 1
        return left[0] < 0

    if looks == 10_000:
        assert savepoint.create_from(kept, to, is_abandoned=is_abandoned).folder == to
        return
    with pytest.raises(HeadgateError) as caught:
        savepoint.create_from(kept, to, is_abandoned=is_abandoned)
    assert caught.value.code == "SAVEPOINT_NOT_TAKEN"
    assert list(to.parent.iterdir()) == []
