"""Forks: a new folder for Spark that shares files with the old one and changes none of them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from stored_run import LAST, facts, files_under, local, unpack

from headgate.checkpoints import sparklog
from headgate.checkpoints.catalog import keep, read_manifest
from headgate.checkpoints.log_sums import is_summed
from headgate.checkpoints.restore import fork, fork_batch
from headgate.checkpoints.verify import verify
from headgate.errors import HeadgateError


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return unpack(tmp_path)


def contents(folder: Path) -> dict[str, bytes]:
    return {file: (folder / file).read_bytes() for file in files_under(folder)}


def test_a_fork_has_the_files_of_its_batch_and_ends_with_it(
    checkpoint: Path, tmp_path: Path
) -> None:
    kept = keep(checkpoint, 12, tmp_path / "kept", facts())
    into = tmp_path / "new" / "checkpoint"
    assert fork(kept.folder, into) == read_manifest(kept.folder)
    files = set(sparklog.files_of(checkpoint, 12))
    # An earlier release wrote none for these.
    sums = {f"{file}.crc" for file in files if is_summed(file)}
    assert {"metadata.crc", "offsets/12.crc", "commits/11.crc"} <= sums
    assert files_under(into) == files | sums
    assert sparklog.find_last_commit(into) == 12
    assert sparklog.find_open_batch(into) is None
    assert verify(into) == []


def test_a_fork_is_another_query_and_names_its_own_place(checkpoint: Path, tmp_path: Path) -> None:
    kept = keep(checkpoint, 12, tmp_path / "kept", facts())
    into = tmp_path / "a place with spaces" / "checkpoint"
    fork(kept.folder, into)
    assert sparklog.read_query_id(into) != sparklog.read_query_id(checkpoint)
    for file in into.glob("state/*/_metadata/v2/*"):
        version, _, text = file.read_text().partition("\n")
        assert version == "v2"
        (store,) = json.loads(text)["stateStoreInfo"]
        for path in store["stateSchemaFilePaths"]:
            assert Path(path.removeprefix("file:")).is_file()
            assert path.startswith(f"file:{into}/")


def test_nothing_but_the_place_changes_in_what_is_rewritten(
    checkpoint: Path, tmp_path: Path
) -> None:
    fork_batch(checkpoint, 12, tmp_path / "new")
    for file in (tmp_path / "new").glob("state/*/_metadata/v2/*"):
        old = (checkpoint / file.relative_to(tmp_path / "new")).read_text()
        prefix = old.split('"file:')[1].split("/state/")[0]
        assert file.read_text() == old.replace(f"file:{prefix}/", f"file:{tmp_path / 'new'}/")


def test_state_is_linked_and_the_source_is_not_touched(checkpoint: Path, tmp_path: Path) -> None:
    kept = keep(checkpoint, 12, tmp_path / "kept", facts())
    before = contents(checkpoint), contents(local(kept.folder))
    into = tmp_path / "new"
    fork(kept.folder, into)
    assert (contents(checkpoint), contents(local(kept.folder))) == before
    rewritten = [
        file
        for file in files_under(into) & files_under(local(kept.folder))
        if not (into / file).samefile(local(kept.folder) / file)
    ]
    assert sorted(rewritten) == ["metadata", "state/0/_metadata/v2/2", "state/1/_metadata/v2/2"]


def test_a_fork_of_a_fork_is_as_good(checkpoint: Path, tmp_path: Path) -> None:
    fork_batch(checkpoint, 12, tmp_path / "first")
    kept = keep(tmp_path / "first", 12, tmp_path / "kept", facts())
    fork(kept.folder, tmp_path / "second")
    assert files_under(tmp_path / "second") == files_under(tmp_path / "first")
    assert verify(tmp_path / "second") == []


@pytest.mark.parametrize("batch", [0, 1, 2, 12, LAST])
def test_every_batch_can_be_forked(checkpoint: Path, tmp_path: Path, batch: int) -> None:
    fork_batch(checkpoint, batch, tmp_path / "new", quick=True)
    assert sparklog.find_last_commit(tmp_path / "new") == batch
    assert sparklog.survey(tmp_path / "new", batch).problems == ()


def test_a_damaged_source_is_refused_and_nothing_appears(checkpoint: Path, tmp_path: Path) -> None:
    kept = keep(checkpoint, 12, tmp_path / "kept", facts())
    table = next(local(kept.folder).glob("state/0/0/SSTs/*.sst"))
    os.truncate(table, 10)
    for quick in (True, False):
        with pytest.raises(HeadgateError, match="truncated") as caught:
            fork(kept.folder, tmp_path / "new", quick=quick)
        assert caught.value.code == "CHECKPOINT_DAMAGED"
        assert table.name in caught.value.message
    with pytest.raises(HeadgateError):
        fork_batch(kept.folder, 12, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_source_without_its_commit_is_refused_as_never_completed(
    checkpoint: Path, tmp_path: Path
) -> None:
    kept = keep(checkpoint, 12, tmp_path / "kept", facts())
    (kept.folder / "commits" / "12").unlink()
    with pytest.raises(HeadgateError) as caught:
        fork(kept.folder, tmp_path / "new")
    assert caught.value.code == "CHECKPOINT_INCOMPLETE"
    assert caught.value.message.startswith(
        "cannot restore from checkpoint 12 of job 'shop': "
        "commits/12 is missing, so it never completed"
    )
    assert caught.value.hint == "headgate checkpoints shop"


def test_a_place_that_is_taken_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    with pytest.raises(HeadgateError) as caught:
        fork_batch(checkpoint, 12, tmp_path / "new")
    assert caught.value.code == "CHECKPOINT_EXISTS"


def test_a_folder_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(HeadgateError) as caught:
            fork(folder, tmp_path / "new")
        assert caught.value.code == "CHECKPOINT_NOT_FOUND"
        assert caught.value.hint


def test_a_schema_path_that_leads_elsewhere_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    file = checkpoint / "state/0/_metadata/v2/2"
    file.write_text(file.read_text().replace("/_stateSchema/default/", "/_stateSchema/../../"))
    with pytest.raises(HeadgateError, match="is not the path of a schema file") as caught:
        fork_batch(checkpoint, 12, tmp_path / "new")
    assert caught.value.code == "CHECKPOINT_DAMAGED"
