"""Where the reader of state looks: again, in folders that stay, and not at everything."""

from __future__ import annotations

import errno
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.checkpoints.checkpoint import Checkpoint
from headgate.checkpoints.manifest import Kind
from headgate.checkpoints.state_format import STATE_FORMAT
from headgate.errors import HeadgateError
from headgate.jobs.checkpoints import listing
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.state import answers as state_answers
from headgate.jobs.state import places
from headgate.jobs.state.answers import Answers
from headgate.jobs.state.places import NOW
from headgate.jobs.state.values import Held

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def not_written(cause: OSError) -> None:
    raise HeadgateError("CHECKPOINT_NOT_WRITTEN", "cannot write it") from cause


def test_a_file_that_was_cleared_up_meanwhile_is_no_full_disk() -> None:
    tries: list[int] = []

    def look(cause: OSError) -> int:
        tries.append(1)
        if len(tries) < 3:
            not_written(cause)
        return 7

    assert state_answers._again(lambda: look(FileNotFoundError())) == 7
    tries.clear()
    with pytest.raises(HeadgateError):
        state_answers._again(lambda: look(OSError(errno.ENOSPC, "full")))
    assert len(tries) == 1


def test_a_folder_stays_as_long_as_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_answers, "fork_batch", lambda _a, _b, into, **_: into.mkdir())
    monkeypatch.setattr(state_answers, "_state", lambda _, folder: folder)
    answers = Answers(tmp_path, tmp_path / "work", lambda: None)  # type: ignore[arg-type, return-value]
    (tmp_path / "work").mkdir()

    def at_rest(batch: int) -> Any:
        place = SimpleNamespace(folder=tmp_path, batch=batch, checkpoint=NOW)
        return answers._at_rest(place)  # type: ignore[arg-type]

    with at_rest(0) as read, at_rest(0) as same:
        assert read == same
        for batch in range(1, 10):
            with at_rest(batch) as other:
                assert other.is_dir()
        assert read.is_dir()
        assert len(list((tmp_path / "work").iterdir())) == 4
    with at_rest(10), at_rest(11), at_rest(12), at_rest(13), at_rest(14):
        assert len(list((tmp_path / "work").iterdir())) == 5
    assert len(list((tmp_path / "work").iterdir())) == 4
    assert not read.exists()


def kept(number: int) -> Checkpoint:
    return Checkpoint(
        id=f"chk-{number}",
        kind=Kind.CHECKPOINT,
        run="run",
        folder=Path("none"),
        batch=number,
        completed_at=NOON,
    )


def test_a_history_is_of_the_newest_checkpoints_whatever_flows_they_are_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = SimpleNamespace(node=lambda uid: uid)
    now = SimpleNamespace(
        job="j", checkpoint=NOW, operators=("u",), flow=flow, state_format=STATE_FORMAT
    )
    monkeypatch.setattr(places, "list_checkpoints", lambda *_: [*map(kept, range(250))])
    monkeypatch.setattr(places, "find_place", lambda *_: now)
    facts = SimpleNamespace(operators=("u",), flow={"format": 99}, job="j")
    monkeypatch.setattr(places, "read_manifest", lambda _: SimpleNamespace(facts=facts))
    found = places.list_places(JobFolder(tmp_path, "j"), "u")
    assert (len(found.kept), found.left_off) == (200, 50)
    assert (found.kept[0].checkpoint, found.kept[-1].checkpoint) == ("chk-50", "chk-249")
    assert isinstance(found.kept[0], Held)
    assert "99" in found.kept[0].problem


def test_other_runs_are_looked_at_only_for_what_this_one_has_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def listed(_home: JobFolder, *, every_run: bool = False) -> list[Any]:
        asked.append(every_run)
        return [kept(1), kept(2)] if every_run else [kept(2)]

    monkeypatch.setattr(listing, "list_checkpoints", listed)
    assert listing.choose_checkpoint(JobFolder(tmp_path, "j"), "latest").id == "chk-2"
    assert asked == [False]
    assert listing.choose_checkpoint(JobFolder(tmp_path, "j"), "1").id == "chk-1"
    assert asked == [False, False, True]
