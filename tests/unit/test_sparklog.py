"""Spark's logs of batches, as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.checkpoints.sparklog import find_last_commit, find_open_batch


def checkpoint(folder: Path, *, offsets: list[str], commits: list[str]) -> Path:
    for name, files in (("offsets", offsets), ("commits", commits)):
        (folder / name).mkdir()
        for file in files:
            (folder / name / file).touch()
    return folder


def test_a_folder_that_is_not_there_has_no_batch(tmp_path: Path) -> None:
    assert find_last_commit(tmp_path / "nowhere") is None
    assert find_open_batch(tmp_path / "nowhere") is None


def test_the_newest_commit_is_found_by_number_and_not_by_name(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, offsets=["9", "10"], commits=["9", "10"])
    assert find_last_commit(folder) == 10
    assert find_open_batch(folder) is None


@pytest.mark.parametrize(
    ("offsets", "commits", "wanted"),
    [(["0"], [], 0), (["0", "1"], ["0"], 1), (["0", "1"], ["0", "1"], None), ([], [], None)],
)
def test_a_batch_that_was_begun_and_not_committed_is_open(
    tmp_path: Path, offsets: list[str], commits: list[str], wanted: int | None
) -> None:
    assert find_open_batch(checkpoint(tmp_path, offsets=offsets, commits=commits)) == wanted


def test_checksums_and_half_written_files_are_no_batches(tmp_path: Path) -> None:
    strange = [".7.crc", ".8.tmp", "9.tmp", "x", ".1234.abc.tmp"]
    folder = checkpoint(tmp_path, offsets=["3", *strange], commits=["3", *strange])
    assert (find_last_commit(folder), find_open_batch(folder)) == (3, None)
