"""Folders that appear whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from headgate.checkpoints._checksums import sha256_of
from headgate.checkpoints.storage import (
    link_files,
    publishing,
    remove_tree,
    sweep,
    write_file,
)
from headgate.checkpoints.stores.local import LocalFiles
from headgate.errors import Domain, HeadgateError


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "one").write_text("first")
    (folder / "deep" / "er" / "two").write_text("second")
    return folder


FILES = ["one", "deep/er/two"]


def test_files_are_linked_and_not_copied(source: Path, tmp_path: Path) -> None:
    link_files(source, FILES, tmp_path / "target")
    for file in FILES:
        assert (source / file).samefile(tmp_path / "target" / file)


def test_a_copy_shares_nothing_with_its_source(source: Path, tmp_path: Path) -> None:
    link_files(source, FILES, tmp_path / "target", copy=True)
    (source / "one").write_text("changed")
    assert (tmp_path / "target" / "one").read_text() == "first"


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK])
def test_files_are_copied_where_links_are_refused(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", refuse)
    link_files(source, FILES, tmp_path / "target")
    assert (tmp_path / "target" / "deep" / "er" / "two").read_text() == "second"


def test_a_folder_is_invisible_until_it_is_whole(tmp_path: Path) -> None:
    with publishing(tmp_path / "new", sync=True) as draft:
        (draft / "file").write_text("content")
        assert not (tmp_path / "new").exists()
    assert (tmp_path / "new" / "file").read_text() == "content"
    assert [each.name for each in tmp_path.iterdir()] == ["new"]


def test_what_goes_wrong_leaves_nothing_behind(tmp_path: Path) -> None:
    def half_done() -> None:
        with publishing(tmp_path / "new") as draft:
            (draft / "file").write_text("content")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half_done()
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_taken_is_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(HeadgateError) as caught, publishing(source):
        pass
    assert caught.value.code == "CHECKPOINT_EXISTS"
    assert (source / "one").read_text() == "first"


def test_a_name_that_is_taken_meanwhile_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HeadgateError) as caught, publishing(tmp_path / "new"):
        (tmp_path / "new").mkdir()
    assert caught.value.code == "CHECKPOINT_EXISTS"


def test_a_disk_that_refuses_is_told_as_an_error_of_the_outside(tmp_path: Path) -> None:
    with pytest.raises(HeadgateError) as caught, publishing(tmp_path / "new"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "file")
    assert caught.value.code == "CHECKPOINT_NOT_WRITTEN"
    assert caught.value.domain is Domain.EXTERNAL
    assert caught.value.retryable
    assert "No space left" in caught.value.message


def test_a_file_that_is_replaced_leaves_its_links_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    os.link(tmp_path / "old", tmp_path / "linked")
    write_file(tmp_path / "linked", "new")
    assert (tmp_path / "old").read_text() == "old"
    assert (tmp_path / "linked").read_text() == "new"


def test_a_marker_saves_a_folder_even_at_the_last_moment(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def is_marked(folder: Path) -> bool:
        return (folder / "marker").exists()

    def marked_first(self: Path, target: Path) -> Path:
        if self == source:
            (source / "marker").touch()
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", marked_first)
    assert not remove_tree(source, unless=is_marked)
    assert (source / "one").read_text() == "first"
    assert not remove_tree(source, unless=is_marked)


def test_a_folder_that_is_removed_is_gone_and_removing_it_again_is_no_error(source: Path) -> None:
    assert remove_tree(source)
    assert remove_tree(source)
    assert not source.exists()
    assert list(source.parent.iterdir()) == []


def test_what_a_crash_left_is_swept_away(source: Path) -> None:
    (source / "chk-3.tmp-1-abcd" / "deep").mkdir(parents=True)
    (source / ".file.tmp-1-abcd").touch()
    assert sweep(source) == [".file.tmp-1-abcd", "chk-3.tmp-1-abcd"]
    assert sorted(each.name for each in source.iterdir()) == ["deep", "one"]
    assert sweep(source / "nowhere") == []


def test_checksums_are_those_of_the_content(source: Path) -> None:
    assert sha256_of(LocalFiles(source), "one").startswith("a7937b64")
