"""A run goes on from its checkpoint as it left it; whatever was lost or changed is noticed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from stored_run import facts, files_under, local, unpack

from headgate import Flow, HeadgateError
from headgate.checkpoints import sparklog
from headgate.checkpoints.catalog import keep
from headgate.checkpoints.log_sums import is_summed, render_sums
from headgate.checkpoints.restore import fork_batch
from headgate.checkpoints.verify import verify
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import Origin, Run, continue_run, find_run, new_run, write_run
from headgate.jobs.runs.reached import ReachedNote, find_reached
from headgate.jobs.startup.resuming import check_attempt, check_job_file, find_damage

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
# The newest batch of the run under test.
LAST = 12


def flow() -> Flow:
    made = Flow("shop")
    made.stream("in", "a BIGINT").to("out")
    return made


def begin(root: Path, **options: object) -> tuple[JobFolder, Run]:
    """Return a job and a run of it that has a manifest and nothing else."""
    home = JobFolder(root, "shop")
    run = new_run(home, flow().graph(), parallelism=2, checkpoints=None, now=NOW)
    run = Run(**{name: getattr(run, name) for name in Run.__slots__} | options)
    write_run(home, run)
    return home, run


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    """Give a home with a job that has run up to a batch; its logs have checksums."""
    root = tmp_path_factory.mktemp("template")
    home, run = begin(root / "home")
    unpack(root).rename(local(run.checkpoint))
    for log in ("offsets", "commits"):
        for number in range(LAST + 1, 21):
            (local(run.checkpoint) / log / str(number)).unlink()
    for file in summed_files(local(run.checkpoint)):
        text = render_sums((local(run.checkpoint) / file).read_bytes())
        (local(run.checkpoint) / f"{file}.crc").write_text(text)
    note = ReachedNote(home, run)
    note.attempt_running()
    note.batch_committed(LAST)
    home.write_job(run.lineage, flow="flow.py", options={})
    return root / "home", run


@pytest.fixture
def ran(template: tuple[Path, Run], tmp_path: Path) -> tuple[JobFolder, Run]:
    """Give a copy of it of the test's own."""
    shutil.copytree(template[0], tmp_path / "home")
    home = JobFolder(tmp_path / "home", "shop")
    run = find_run(home, template[1].lineage)
    assert run is not None
    return home, run


def summed_files(checkpoint: Path) -> list[str]:
    """Return the files that have a checksum of the kernel's."""
    return [file for file in files_under(checkpoint) if is_summed(file)]


def flip(file: Path) -> None:
    """Change one digit, as an editor would; the file stays as long as it was."""
    content = bytearray(file.read_bytes())
    place = next((at for at, byte in enumerate(content) if 48 <= byte < 57), len(content) // 2)
    content[place] ^= 1
    file.write_bytes(bytes(content))


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


DAMAGES: dict[str, Callable[[Path], None]] = {
    "flip": flip,
    "truncate": truncate,
    "delete": Path.unlink,
}


def test_a_run_that_nothing_happened_to_goes_on(ran: tuple[JobFolder, Run]) -> None:
    home, run = ran
    assert find_damage(home, run) == []
    check_attempt(home, run)
    assert verify(local(run.checkpoint)) == []


def logs(run: Run) -> Iterator[Path]:
    for file in ("metadata", *(f"{log}/{n}" for log in ("offsets", "commits") for n in (11, 12))):
        yield local(run.checkpoint) / file
        yield local(run.checkpoint) / f"{file}.crc"
    found = sorted((local(run.checkpoint) / "sources").rglob("*.json"))
    assert found
    yield from (each for file in found for each in (file, file.with_name(f"{file.name}.crc")))


@pytest.mark.parametrize("how", DAMAGES)
def test_no_log_can_be_damaged_without_notice_by_a_start_or_a_restart(
    ran: tuple[JobFolder, Run], how: str
) -> None:
    home, run = ran
    unnoticed = set()
    for file in logs(run):
        before = file.read_bytes()
        DAMAGES[how](file)
        name = file.relative_to(local(run.checkpoint)).as_posix()
        for quick in (False, True):
            if not find_damage(home, run, quick=quick):
                unnoticed.add(name)
        file.write_bytes(before)
    # Without its commit a batch is repeated, with the same offsets and the state before it.
    assert unnoticed == ({"commits/12"} if how == "delete" else set())


def test_state_that_was_damaged_is_noticed_by_a_start(ran: tuple[JobFolder, Run]) -> None:
    home, run = ran
    files = sparklog.files_of(local(run.checkpoint), LAST)
    state = [
        local(run.checkpoint) / file for file in files if file.endswith((".changelog", ".zip"))
    ]
    assert state
    for file in state:
        before = file.read_bytes()
        for how, act in DAMAGES.items():
            act(file)
            # Without a snapshot the changelogs tell the same.
            assert find_damage(home, run) or (how, file.suffix) == ("delete", ".zip"), file
            file.write_bytes(before)


def test_a_digit_changed_in_a_batch_that_was_only_begun_is_noticed(
    ran: tuple[JobFolder, Run],
) -> None:
    home, run = ran
    (local(run.checkpoint) / "commits/12").unlink()
    assert find_damage(home, run) == []
    for file in (local(run.checkpoint) / "offsets/12", local(run.checkpoint) / "offsets/12.crc"):
        before = file.read_bytes()
        for how in DAMAGES.values():
            how(file)
            assert find_damage(home, run), file
            file.write_bytes(before)


def test_a_commit_that_is_missing_between_two_batches_is_noticed(
    ran: tuple[JobFolder, Run],
) -> None:
    home, run = ran
    for file in ("13", "13.crc"):
        shutil.copy(
            local(run.checkpoint) / "offsets" / file.replace("13", "12"),
            local(run.checkpoint) / "x",
        )
        (local(run.checkpoint) / "x").rename(local(run.checkpoint) / "offsets" / file)
    assert find_damage(home, run) == []
    (local(run.checkpoint) / "commits/12").unlink()
    assert [each.file for each in find_damage(home, run)] == ["commits/12"]


@pytest.mark.parametrize("lost", ["checkpoint", "offsets and commits", "newest batch", "metadata"])
def test_a_checkpoint_behind_what_the_run_has_reached_is_refused(
    ran: tuple[JobFolder, Run], lost: str
) -> None:
    home, run = ran
    match lost:
        case "checkpoint":
            shutil.rmtree(local(run.checkpoint))
        case "offsets and commits":
            for log in ("offsets", "commits"):
                shutil.rmtree(local(run.checkpoint) / log)
        case "newest batch":
            for log in ("offsets", "commits"):
                (local(run.checkpoint) / log / "12").unlink()
        case "metadata":
            (local(run.checkpoint) / "metadata").unlink()
    assert find_damage(home, run)
    with pytest.raises(HeadgateError) as refused:
        check_attempt(home, run)
    assert (refused.value.code, refused.value.retryable) == ("CHECKPOINT_DAMAGED", False)
    assert "--fresh" in refused.value.hint


def test_the_refusal_of_an_attempt_names_a_checkpoint_to_restore(
    ran: tuple[JobFolder, Run],
) -> None:
    home, run = ran
    told = facts(flow=json.loads(flow().graph().to_json()), lineage=run.lineage, state_format=2)
    keep(local(run.checkpoint), LAST, home.checkpoints_folder(run.lineage), told)
    shutil.rmtree(local(run.checkpoint))
    with pytest.raises(HeadgateError) as refused:
        check_attempt(home, run)
    assert "headgate restore shop --from chk-12" in refused.value.hint


def test_the_folder_of_another_query_is_refused(ran: tuple[JobFolder, Run], tmp_path: Path) -> None:
    home, run = ran
    fork_batch(local(run.checkpoint), LAST, tmp_path / "other")
    shutil.rmtree(local(run.checkpoint))
    (tmp_path / "other").rename(local(run.checkpoint))
    assert [each.file for each in find_damage(home, run)] == ["metadata"]


def test_a_checkpoint_ahead_of_the_record_goes_on(ran: tuple[JobFolder, Run]) -> None:
    home, run = ran
    note = ReachedNote(home, run)
    note.attempt_running()
    note.batch_committed(LAST - 2)
    assert find_damage(home, run) == []


def test_a_run_that_was_restored_must_have_the_batch_it_was_restored_at(tmp_path: Path) -> None:
    home, run = begin(tmp_path / "home", origin=Origin("chk-12", "other", LAST))
    fork_batch(unpack(tmp_path), LAST, local(run.checkpoint), quick=True)
    assert find_damage(home, run) == []
    shutil.rmtree(local(run.checkpoint))
    assert find_damage(home, run)


def test_a_run_that_never_ran_may_start_from_nothing(tmp_path: Path) -> None:
    home, run = begin(tmp_path)
    assert find_damage(home, run) == []


# Runs of release 0.7, which wrote no checksums and no record.


@pytest.fixture
def old(ran: tuple[JobFolder, Run]) -> tuple[JobFolder, Run]:
    home, run = ran
    for file in (
        *local(run.checkpoint).glob("*/*.crc"),
        *local(run.checkpoint).glob("sources/*/*.crc"),
    ):
        file.unlink()
    (local(run.checkpoint) / "metadata.crc").unlink()
    (home.run_folder(run.lineage) / "reached.json").unlink()
    manifest = home.run_folder(run.lineage) / "run.json"
    content = json.loads(manifest.read_text())
    del content["checksums_since"]
    manifest.write_text(json.dumps(content))
    found = find_run(home, run.lineage)
    assert found is not None
    return home, found


def test_a_run_of_release_0_7_goes_on_and_has_checksums_from_then_on(
    old: tuple[JobFolder, Run],
) -> None:
    home, run = old
    assert find_damage(home, run) == []
    run = continue_run(run, run.flow, job="shop")
    assert run.checksums_since == LAST + 1
    write_run(home, run)
    assert find_run(home, run.lineage) == run
    assert continue_run(run, run.flow, job="shop") == run
    ReachedNote(home, run).attempt_running()
    assert find_damage(home, run) == []
    # A batch of this release, whose checksum is gone.
    shutil.copy(local(run.checkpoint) / "offsets/12", local(run.checkpoint) / "offsets/13")
    assert [each.file for each in find_damage(home, run)] == ["offsets/13.crc"]


def test_a_run_of_release_0_7_whose_folder_was_removed_does_not_start_empty(
    old: tuple[JobFolder, Run],
) -> None:
    home, run = old
    shutil.rmtree(local(run.checkpoint))
    assert find_damage(home, run)


# The record of what was reached.


def test_the_record_never_goes_back_and_holds_the_query(ran: tuple[JobFolder, Run]) -> None:
    home, run = ran
    note = ReachedNote(home, run)
    note.attempt_running()
    note.batch_committed(20)
    again = ReachedNote(home, run)
    again.attempt_running()
    found = find_reached(home, run.lineage)
    assert found is not None
    assert (found.query, found.batch) == (sparklog.read_query_id(local(run.checkpoint)), 20)


@pytest.mark.parametrize("content", ["", "{", '{"format": 1}', '{"format": 1, "query": 1}'])
def test_a_record_that_does_not_read_is_told_with_the_way_out(
    ran: tuple[JobFolder, Run], content: str
) -> None:
    home, run = ran
    file = home.run_folder(run.lineage) / "reached.json"
    file.write_text(content)
    with pytest.raises(HeadgateError) as refused:
        find_damage(home, run)
    assert refused.value.code == "JOB_FILE_BROKEN"
    assert refused.value.hint.endswith(f"rm {file}")


# The file that names the present run.


def test_a_job_whose_file_is_gone_does_not_begin_anew_beside_a_run_that_has_written(
    ran: tuple[JobFolder, Run],
) -> None:
    home, run = ran
    check_job_file(home)
    (home.path / "job.json").unlink()
    for left in ("all of it", "its record", "its manifest"):
        with pytest.raises(HeadgateError) as refused:
            check_job_file(home)
        assert refused.value.code == "JOB_FILE_MISSING", left
        assert "--fresh" in refused.value.hint
        if left == "all of it":
            shutil.rmtree(local(run.checkpoint))
        else:
            (home.run_folder(run.lineage) / "run.json").unlink(missing_ok=True)


def test_a_start_that_was_killed_before_its_first_batch_locks_nobody_out(tmp_path: Path) -> None:
    home, run = begin(tmp_path / "home")
    check_job_file(home)
    # Killed between its two notes, when the query had started.
    local(run.checkpoint).mkdir(parents=True)
    (local(run.checkpoint) / "metadata").write_text('{"id":"a"}')
    ReachedNote(home, run).attempt_running()
    check_job_file(home)
    # A restore that was killed at the same place: its batches are those of another run.
    home, run = begin(tmp_path / "restored", origin=Origin("chk-12", "other", LAST))
    fork_batch(unpack(tmp_path), LAST, local(run.checkpoint), quick=True)
    ReachedNote(home, run).attempt_running()
    check_job_file(home)
