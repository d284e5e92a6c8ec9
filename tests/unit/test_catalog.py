"""Kept checkpoints: linked out, listed, found, pinned, removed."""

from __future__ import annotations

import gc
import json
import shutil
import tracemalloc
from datetime import timedelta
from pathlib import Path

import pytest
from fake_clock import FakeClock
from stored_run import NOON, copy, facts, files_under, local, unpack

from headgate.checkpoints import catalog, sparklog
from headgate.checkpoints._checksums import sha256_of
from headgate.checkpoints.catalog import keep, list_kept, remove
from headgate.checkpoints.stores import Files
from headgate.errors import HeadgateError


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return unpack(tmp_path)


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints"


def test_a_kept_checkpoint_has_exactly_the_files_of_its_batch_as_links(
    checkpoint: Path, into: Path
) -> None:
    kept = keep(checkpoint, 12, into, facts())
    files = set(sparklog.files_of(checkpoint, 12))
    assert kept.folder == into / "chk-12"
    assert files_under(local(kept.folder)) == files | {"checkpoint.json"}
    assert all((kept.folder / file).samefile(checkpoint / file) for file in files)
    assert kept.full_bytes == sum((checkpoint / each).stat().st_size for each in files)


def test_what_is_kept_outlives_sparks_own_folder(checkpoint: Path, into: Path) -> None:
    kept = keep(checkpoint, 12, into, facts())
    files = sparklog.files_of(checkpoint, 12)
    shutil.rmtree(checkpoint)
    assert sparklog.files_of(kept.folder, 12) == files


def test_what_is_said_of_a_checkpoint_is_read_back(checkpoint: Path, into: Path) -> None:
    told = facts()
    kept = keep(checkpoint, 3, into, told)
    assert catalog.read_kept(kept.folder) == kept
    assert catalog.read_manifest(kept.folder).facts == told
    assert json.loads((kept.folder / "checkpoint.json").read_text())["format"] == 2


def test_a_checkpoint_of_an_older_release_does_not_say_how_long_it_took(
    checkpoint: Path, into: Path
) -> None:
    file = keep(checkpoint, 3, into, facts()).folder / "checkpoint.json"
    told = json.loads(file.read_text())
    del told["took_ms"]
    file.write_text(json.dumps(told))
    assert catalog.read_kept(file.parent).took is None


def test_the_size_of_the_change_counts_only_files_that_are_new(
    checkpoint: Path, into: Path
) -> None:
    first = keep(checkpoint, 13, into, facts())
    second = keep(checkpoint, 14, into, facts())
    files = catalog.read_manifest(second.folder).files
    new = set(files) - set(catalog.read_manifest(first.folder).files)
    assert first.new_bytes == first.full_bytes
    assert second.new_bytes == sum(files[each].size for each in new)
    assert second.new_bytes < second.full_bytes / 2


def test_checksums_of_state_that_did_not_change_are_taken_over(
    checkpoint: Path, into: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(checkpoint, 13, into, facts())
    summed: list[str] = []

    def noting(files: Files, file: str) -> str:
        summed.append(file)
        return sha256_of(files, file)

    monkeypatch.setattr(catalog, "sha256_of", noting)
    keep(checkpoint, 14, into, facts())
    # The logs, what names the folder, and the checksum files of four new changelogs.
    assert len(summed) == 5 + 2 + 2 + 4
    assert not any(name.endswith((".sst", ".zip", ".changelog")) for name in summed)


def test_keeping_a_batch_again_gives_what_is_there(checkpoint: Path, into: Path) -> None:
    first = keep(checkpoint, 5, into, facts())
    assert keep(checkpoint, 5, into, facts(job="another")) == first


def test_a_kept_checkpoint_whose_manifest_is_damaged_is_kept_anew(
    checkpoint: Path, into: Path
) -> None:
    kept = keep(checkpoint, 5, into, facts(), clock=FakeClock())
    (kept.folder / "checkpoint.json").write_text("{")
    assert list_kept(into) == []
    assert [each.file for each in catalog.list_all(into)[1]] == ["chk-5"]
    assert keep(checkpoint, 5, into, facts(), clock=FakeClock()) == kept
    assert catalog.list_all(into)[1] == []


def test_a_batch_that_did_not_commit_is_not_kept(checkpoint: Path, into: Path) -> None:
    (checkpoint / "commits" / "20").unlink()
    with pytest.raises(HeadgateError) as caught:
        keep(checkpoint, 20, into, facts())
    assert caught.value.code == "CHECKPOINT_INCOMPLETE"
    assert "commits/20 is missing, so it never completed" in caught.value.message
    assert not into.exists() or list(into.iterdir()) == []


def test_checkpoints_are_listed_oldest_first_without_drafts_and_strangers(
    checkpoint: Path, into: Path
) -> None:
    for batch in (10, 9, 2):
        keep(checkpoint, batch, into, facts(completed_at=NOON + timedelta(seconds=batch)))
    copy(into / "chk-2", into / "chk-4.tmp-1-abcd")
    (into / "notes").mkdir()
    (into / "file").touch()
    assert [each.id for each in list_kept(into)] == ["chk-2", "chk-9", "chk-10"]
    assert list_kept(into / "nowhere") == []


def test_a_pinned_checkpoint_cannot_be_removed_until_it_is_unpinned(
    checkpoint: Path, into: Path
) -> None:
    kept = keep(checkpoint, 9, into, facts())
    catalog.pin(kept.folder, job="shop")
    assert catalog.read_kept(kept.folder).pinned
    assert not catalog.remove(kept.folder)
    catalog.unpin(kept.folder)
    catalog.unpin(kept.folder)
    assert catalog.remove(kept.folder)
    assert list_kept(into) == []


def test_pinning_what_was_removed_is_refused(checkpoint: Path, into: Path) -> None:
    kept = keep(checkpoint, 9, into, facts())
    catalog.remove(kept.folder)
    with pytest.raises(HeadgateError, match="removed meanwhile"):
        catalog.pin(kept.folder, job="shop")


def test_removing_one_leaves_the_others_and_sparks_folder_whole(
    checkpoint: Path, into: Path
) -> None:
    first, second = (keep(checkpoint, batch, into, facts()) for batch in (13, 14))
    before = files_under(checkpoint)
    catalog.remove(first.folder)
    assert sparklog.files_of(second.folder, 14) == sparklog.files_of(checkpoint, 14)
    assert files_under(checkpoint) == before


def test_a_checkpoint_that_is_gone_takes_no_memory(checkpoint: Path, into: Path) -> None:
    kept = keep(checkpoint, 13, into, facts())
    # Other threads of a process of tests may take memory meanwhile.
    ours = tracemalloc.Filter(True, "*/headgate/checkpoints/*", all_frames=True)
    tracemalloc.start(20)
    try:
        held = []
        # A job that keeps a checkpoint every second, and retains one.
        for number in range(20):
            again = into / f"chk-{100 + number}"
            shutil.copytree(local(kept.folder), again)
            (read,) = [each for each in list_kept(into) if each.folder == again]
            assert remove(read.folder)
            del read
            if number in (4, 19):
                # What is in cycles goes with the collector, which seldom runs in a large process.
                gc.collect()
                traces = tracemalloc.take_snapshot().filter_traces([ours]).traces
                # What Python keeps of a manifest is many small blocks. One of megabytes is its own
                # table of names, which grows whoever adds the next one.
                held.append(sum(trace.size for trace in traces if trace.size < 1024**2))
    finally:
        tracemalloc.stop()
    one = len((kept.folder / "checkpoint.json").read_bytes())
    assert held[1] - held[0] < 3 * one
