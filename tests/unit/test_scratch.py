"""The folder of what a driver leaves behind."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from headgate.engine.session.driver_lock import (
    make_scratch,
    remove_scratch,
    scratch_conf,
    take_lock,
)

_NOW = timedelta(0)


def test_the_next_driver_of_a_job_finds_nothing_of_the_last_one(tmp_path: Path) -> None:
    file = tmp_path / "driver.lock"
    lock = take_lock(file, wait=_NOW)
    left = make_scratch(file, lock) / "blockmgr-1" / "shuffle"
    left.mkdir(parents=True)
    again = make_scratch(file, lock)
    assert again.is_dir()
    assert list(again.iterdir()) == []
    assert not left.exists()


def test_a_driver_with_another_lock_keeps_what_it_works_with(tmp_path: Path) -> None:
    file = tmp_path / "driver.lock"
    kept = make_scratch(file, take_lock(file, wait=_NOW)) / "at-work"
    kept.touch()
    file.unlink()
    other = make_scratch(file, take_lock(file, wait=_NOW))
    assert kept.exists()
    assert other != kept.parent


def test_nothing_is_left_of_a_driver_that_has_ended(tmp_path: Path) -> None:
    file = tmp_path / "driver.lock"
    lock = take_lock(file, wait=_NOW)
    folder = make_scratch(file, lock)
    (folder / "StateStore").mkdir()
    os.close(lock)
    remove_scratch(file)
    assert not folder.exists()
    os.close(take_lock(file, wait=_NOW))


def test_a_driver_that_lives_keeps_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.engine.session.driver_lock._LAST_BREATH", _NOW)
    file = tmp_path / "driver.lock"
    lock = take_lock(file, wait=_NOW)
    folder = make_scratch(file, lock)
    remove_scratch(file)
    assert folder.exists()
    os.close(lock)


def test_a_job_that_never_had_a_driver_gets_no_lock(tmp_path: Path) -> None:
    remove_scratch(tmp_path / "driver.lock")
    assert list(tmp_path.iterdir()) == []


def test_spark_and_its_jvm_are_told_of_the_folder() -> None:
    assert scratch_conf(Path("/jobs/my job/scratch/7"), "-Xms1g") == {
        "spark.local.dir": "/jobs/my job/scratch/7",
        "spark.driver.extraJavaOptions": '-Xms1g "-Djava.io.tmpdir=/jobs/my job/scratch/7"',
    }


@pytest.mark.parametrize("name", ["a,b", 'a"b', "a\\b"])
def test_a_name_that_spark_would_read_otherwise_is_not_told(name: str) -> None:
    assert scratch_conf(Path("/jobs") / name, "") == {}
