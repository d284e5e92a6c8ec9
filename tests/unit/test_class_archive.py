"""Archives of brokers' classes: created once for each class path, also if that fails."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from headgate._clock import SystemClock
from headgate.brokers.class_archive import get_archive, use_archive
from headgate.brokers.process import Process, start_process

CLOCK = SystemClock()
# Writes the file of its first argument when it is asked to end, as Java does with its archive.
BROKER = """
import pathlib, signal, sys, time
def end(number, frame):
    pathlib.Path(sys.argv[1].partition("=")[2]).write_text("classes")
    sys.exit()
signal.signal(signal.SIGTERM, end)
pathlib.Path("up").touch()
time.sleep(60)
"""


class Trials:
    """Starts brokers, and counts them."""

    def __init__(self, script: str = BROKER) -> None:
        self.count = 0
        self._script = script
        self.told: list[str] = []

    def get(self, folder: Path, jars: Sequence[Path] = ()) -> Path | None:
        return get_archive(
            folder, self.start, self.serves, jars=jars, progress=self.told.append, clock=CLOCK
        )

    def start(self, folder: Path, options: Sequence[str]) -> Process:
        self.count += 1
        self._folder = folder
        command = [sys.executable, "-c", self._script, *options]
        output = folder / "out"
        return start_process(command, folder / "p.json", output=output, facts={}, clock=CLOCK)

    def serves(self, _: Process) -> bool:
        return (self._folder / "up").exists()


def test_an_archive_is_created_by_the_first_start_and_used_by_later_ones(tmp_path: Path) -> None:
    trials = Trials()
    archive = trials.get(tmp_path / "kafka")
    assert archive is not None
    assert archive.read_text() == "classes"
    assert use_archive(archive) == [f"-XX:SharedArchiveFile={archive}"]
    assert trials.get(tmp_path / "kafka") == archive
    assert trials.count == 1
    assert len(trials.told) == 1
    # Of the trial nothing is left.
    assert {file.name for file in archive.parent.iterdir()} == {archive.name, "lock"}


def test_a_broker_that_fails_is_tried_once_and_starts_without_an_archive(tmp_path: Path) -> None:
    trials = Trials("raise SystemExit(1)")
    assert trials.get(tmp_path) is None
    assert trials.get(tmp_path) is None
    assert trials.count == 1
    assert use_archive(None) == []


def test_changed_jars_have_another_archive(tmp_path: Path) -> None:
    jar, trials = tmp_path / "a.jar", Trials()
    jar.write_text("one")
    first = trials.get(tmp_path / "kafka", [jar])
    jar.write_text("longer")
    second = trials.get(tmp_path / "kafka", [jar])
    assert first is not None
    assert second not in (None, first)


def test_a_cache_that_cannot_be_written_is_no_obstacle(tmp_path: Path) -> None:
    trials = Trials()
    (tmp_path / "cache").write_text("a file where a folder should be")
    assert trials.get(tmp_path / "cache" / "kafka") is None
    assert trials.count == 0
