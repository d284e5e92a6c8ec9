"""Starts and restarts compare what they go on from with what was written: exact, or refused."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, bag, refused
from eventually import eventually
from inline_attempts import InlineChild, InlineLauncher
from stored_run import local

from headgate import Flow
from headgate._locations import is_local
from headgate.checkpoints.catalog import list_kept
from headgate.checkpoints.sparklog import find_begun, find_last_commit
from headgate.checkpoints.verify import verify
from headgate.jobs.attempts.wire import AttemptSpec, Ended, Failed, News
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.failures import Failure
from headgate.jobs.startup.foreground import run_job
from headgate.jobs.values import JobSnapshot, RunOptions, Watcher

# Of one job: files of orders, each of which is about a batch.
PER_FILE = 10
PATIENCE = 120
EVERY_BATCH = timedelta(0)


def doubling() -> Flow:
    """Return a flow without state: what is wrong here is wrong with every flow."""
    flow = Flow("doubling")
    flow.stream("orders", "n BIGINT").select("n", "n * 2 AS twice").to("out")
    return flow


def expected(count: int) -> list[dict[str, int]]:
    """Return what comes out of the first so many orders when nothing fails."""
    return [{"n": n, "twice": 2 * n} for n in range(count)]


def fill(bench: Bench, first: int, files: int) -> int:
    """Put files of orders into the topic; return how many orders there are then."""
    for start in range(first, first + files * PER_FILE, PER_FILE):
        bench.put("orders", [{"n": n} for n in range(start, start + PER_FILE)])
    return first + files * PER_FILE


def run(bench: Bench, **options: Any) -> JobSnapshot:
    return bench.run(doubling(), parallelism=1, checkpoint_every=EVERY_BATCH, **options)


def home_of(bench: Bench) -> JobFolder:
    return JobFolder(bench.home, "doubling")


def checkpoint_of(bench: Bench) -> Path:
    home = home_of(bench)
    return home.run_folder(str(home.find_present_run())) / "checkpoint"


@pytest.fixture
def begun(bench: Bench) -> Bench:
    """Give a bench on which the job has run some batches."""
    fill(bench, 0, 3)
    run(bench, max_batch=120)
    assert bench.bag("out") == bag(expected(30))
    assert (find_last_commit(checkpoint_of(bench)) or 0) >= 2
    return bench


class DyingLauncher(InlineLauncher):
    """Starts attempts in this process; the first is taken for dead where it would have ended.

    Args:
        meanwhile: Done before the supervisor hears of the death.
    """

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self._meanwhile: Callable[[], object] | None = meanwhile
        self.launched = 0

    def launch(self, spec: AttemptSpec) -> InlineChild:
        meanwhile, self._meanwhile = self._meanwhile, None
        self.launched += 1
        return InlineChild(spec) if meanwhile is None else DyingChild(spec, meanwhile)


class DyingChild(InlineChild):
    """Tells all that its attempt does, and that it died instead of its end."""

    def __init__(self, spec: AttemptSpec, meanwhile: Callable[[], object]) -> None:
        super().__init__(spec)
        checkpoint = spec.settings.checkpoint
        assert is_local(checkpoint)
        self._checkpoint = checkpoint
        self._meanwhile = meanwhile
        self._is_over = False

    def news(self, seconds: float) -> list[News]:
        found: list[News] = [] if self._is_over else super().news(seconds)
        reports: list[News] = [each for each in found if not isinstance(each, Ended)]
        if reports or (not found and not self._is_over):
            # The supervisor keeps what was reported before it hears of the death.
            self._is_over = len(reports) < len(found)
            return reports
        self._is_over = False
        return [self._die()]

    def _die(self) -> Failed:
        # Checkpoints are kept on another thread: the death comes after that of the last batch.
        last = find_last_commit(self._checkpoint)
        kept = self._checkpoint.with_name("checkpoints")
        eventually(lambda: [each.batch for each in list_kept(kept)][-1:] == [last])
        self._meanwhile()
        now = datetime.now(UTC)
        return Failed(
            Failure(now, "DRIVER_DIED", "killed", "killed", "driver", True, domain="external")
        )


def run_with_a_death(bench: Bench, meanwhile: Callable[[], object]) -> DyingLauncher:
    """Run the job; its first attempt dies once it has caught up. Raises what the job ends with."""
    launcher = DyingLauncher(meanwhile)
    options = RunOptions(
        on=f"files:{bench.topics}",
        home=bench.home,
        until_caught_up=True,
        parallelism=1,
        batch_every=timedelta(0),
        checkpoint_every=EVERY_BATCH,
        max_batch=120,
        restart="fixed-delay:3,10ms",
    )
    try:
        run_job(str(bench.flow_file(doubling())), options, Watcher(), launcher=launcher)
    finally:
        bench.launched = launcher.launched  # type: ignore[attr-defined]
    return launcher


@pytest.mark.parametrize("lost", ["the folder", "a digit of the newest offsets"])
def test_a_restart_does_not_go_on_from_a_checkpoint_that_was_removed_or_changed(
    bench: Bench, lost: str
) -> None:
    fill(bench, 0, 3)

    def meanwhile() -> None:
        checkpoint = checkpoint_of(bench)
        if lost == "the folder":
            shutil.rmtree(checkpoint)
        else:
            change_a_digit(checkpoint / "offsets" / str(find_begun(checkpoint)), by=-1)
        fill(bench, 30, 3)

    with refused("CHECKPOINT_DAMAGED") as told:
        run_with_a_death(bench, meanwhile)
    # Not tried again: the second attempt was never launched.
    assert bench.launched == 1  # type: ignore[attr-defined]
    assert "headgate restore doubling --from chk-" in told.value.hint
    status = home_of(bench).find_json("status.json")
    assert status is not None
    assert (status["state"], status["last_failure"]["code"]) == ("FAILED", "CHECKPOINT_DAMAGED")
    assert bench.bag("out") == bag(expected(30))
    # The way out that the hint names: the newest checkpoint that was kept is that of the end.
    run(bench, restore_from="latest")
    assert bench.bag("out") == bag(expected(60))


def test_a_restart_after_a_death_goes_on_where_it_was(bench: Bench) -> None:
    fill(bench, 0, 3)
    launcher = run_with_a_death(bench, lambda: fill(bench, 30, 3))
    assert launcher.launched == 2
    assert bench.bag("out") == bag(expected(60))


def test_a_start_without_any_checkpoint_left_does_not_begin_anew(begun: Bench) -> None:
    home = home_of(begun)
    shutil.rmtree(checkpoint_of(begun))
    shutil.rmtree(local(home.checkpoints_folder(str(home.find_present_run()))))
    fill(begun, 30, 3)
    with refused("CHECKPOINT_DAMAGED") as told:
        run(begun)
    assert "--fresh" in told.value.hint
    assert begun.bag("out") == bag(expected(30))
    # As the hint says: everything once more, in a lineage of its own.
    run(begun, fresh=True)
    assert begun.bag("out") == bag(expected(30) + expected(60))


def change_a_digit(file: Path, *, by: int) -> None:
    """Change the number of the file that a position names."""
    text = file.read_text()
    before, name, after = text.rpartition('"file":')
    digits = after.split(",")[0].split("}")[0]
    changed = f"{before}{name}{int(digits) + by}{after[len(digits) :]}"
    assert changed != text
    file.unlink()
    file.write_text(changed)


@pytest.mark.parametrize("by", [1, -1])
def test_a_digit_changed_in_the_newest_offsets_is_noticed(begun: Bench, by: int) -> None:
    checkpoint = checkpoint_of(begun)
    newest = checkpoint / "offsets" / str(find_begun(checkpoint))
    whole = newest.read_bytes()
    change_a_digit(newest, by=by)
    fill(begun, 30, 2)
    with refused("CHECKPOINT_DAMAGED") as told:
        run(begun, strict=True)
    assert newest.name in told.value.message
    assert begun.bag("out") == bag(expected(30))
    newest.write_bytes(whole)
    run(begun, strict=True)
    assert begun.bag("out") == bag(expected(50))


def test_what_a_crash_leaves_between_a_checksum_and_its_file_harms_nothing(begun: Bench) -> None:
    checkpoint = checkpoint_of(begun)
    after = (find_last_commit(checkpoint) or 0) + 1
    for log in ("offsets", "commits"):
        (checkpoint / log / f"{after}.crc").write_text('{"algorithm":"CRC32C","value":1')
        (checkpoint / log / f".{after}.0000.tmp").write_text("v1")
    total = fill(begun, 30, 2)
    run(begun, strict=True)
    assert begun.bag("out") == bag(expected(total))
    assert verify(checkpoint) == []


def test_kill_9_between_a_checksum_and_its_file_leaves_a_checkpoint_to_go_on_from(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashes = bench.root / "crashes"
    crashes.mkdir()
    monkeypatch.setenv("HEADGATE_CRASH_DIR", str(crashes))
    total = fill(bench, 0, 30)
    crash = crashes / "checksum-written"
    job = bench.spawn(bench.flow_file(doubling()), max_batch=120, parallelism=1, restart="none")
    try:
        eventually(lambda: _last_commit(bench) >= 1, every=0.01, what="a commit", alive=job)
        crash.touch()
        job.communicate(timeout=PATIENCE)
    finally:
        if job.poll() is None:
            os.killpg(job.pid, 9)
    assert job.returncode != 0
    assert not crash.exists(), "the job ended before it got there"
    monkeypatch.delenv("HEADGATE_CRASH_DIR")
    run(bench, strict=True)
    assert bench.bag("out") == bag(expected(total))
    assert verify(checkpoint_of(bench)) == []


def _last_commit(bench: Bench) -> int:
    last = find_last_commit(checkpoint_of(bench))
    return -1 if last is None else last


def test_a_job_that_lost_its_file_does_not_write_everything_again(begun: Bench) -> None:
    home = home_of(begun)
    lineage = str(home.find_present_run())
    file = home.path / "job.json"
    content = file.read_bytes()
    file.unlink()
    total = fill(begun, 30, 2)
    with refused("JOB_FILE_MISSING") as told:
        run(begun)
    newest = list_kept(home.checkpoints_folder(lineage))[-1]
    assert f"--from {lineage}/{newest.id}" in told.value.hint
    assert begun.bag("out") == bag(expected(30))
    # Both ways that the hint names.
    file.write_bytes(content)
    run(begun)
    assert begun.bag("out") == bag(expected(total))
    file.unlink()
    newest = list_kept(home.checkpoints_folder(lineage))[-1]
    run(begun, restore_from=f"{lineage}/{newest.id}")
    assert begun.bag("out") == bag(expected(total))


def test_a_run_of_release_0_7_goes_on_and_its_new_batches_are_guarded(begun: Bench) -> None:
    home = home_of(begun)
    checkpoint = checkpoint_of(begun)
    for file in checkpoint.rglob("*.crc"):
        file.unlink()
    manifest = checkpoint.parent / "run.json"
    stored = json.loads(manifest.read_text())
    del stored["checksums_since"]
    manifest.write_text(json.dumps(stored))
    (checkpoint.parent / "reached.json").unlink()
    shutil.rmtree(local(home.checkpoints_folder(str(home.find_present_run()))))
    old = find_last_commit(checkpoint) or 0
    total = fill(begun, 30, 2)
    run(begun, strict=True)
    assert begun.bag("out") == bag(expected(total))
    assert not (checkpoint / "offsets" / f"{old}.crc").exists()
    for sums in (
        checkpoint / "offsets" / f"{old + 1}.crc",
        checkpoint / "commits" / f"{old + 1}.crc",
    ):
        assert sums.is_file()
    newest = checkpoint / "offsets" / f"{find_begun(checkpoint)}.crc"
    newest.unlink()
    with refused("CHECKPOINT_DAMAGED") as caught:
        run(begun, strict=True)
    assert newest.name in caught.value.message
