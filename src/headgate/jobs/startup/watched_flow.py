"""Running a job while its flow is being written: a changed file restarts it, with state kept."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from headgate.checkpoints.sparklog import find_open_batch
from headgate.errors import Domain, HeadgateError
from headgate.jobs.attempts.launch import Launcher
from headgate.jobs.flow_file import load_flow
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import find_present
from headgate.jobs.startup.foreground import run_job
from headgate.jobs.values import LATEST, JobSnapshot, RunOptions, Watcher

_LOOK_EVERY = 0.3


def run_watched(
    flow: str,
    options: RunOptions,
    watcher: Watcher,
    *,
    say: Callable[[str], None],
    launcher: Launcher | None = None,
) -> JobSnapshot:
    """Run a job, and run it again each time its flow's file changes, until it ends by itself.

    A flow that keeps its operators resumes where it was. If operators were added, moved or
    reordered, each takes its state from the checkpoint of the stop. A flow that cannot be run is
    reported, and the next change is awaited.

    Args:
        say: Called with a line for the user.
    """
    file = Path(flow.partition(":")[0])
    chosen = options
    while True:
        change = _Change(file)
        try:
            with change:
                ended = run_job(flow, chosen, watcher, launcher=launcher, stop=change.event)
        except HeadgateError as error:
            if error.domain is not Domain.USER:
                raise
            say(f"{error.code}: {error.message}; waiting for {file} to change")
            change.wait()
        else:
            if not change.event.is_set():
                return ended
            say(f"{file} has changed")
        chosen = _next_options(flow, options)


def _next_options(flow: str, options: RunOptions) -> RunOptions:
    """Return the options of the next start: from the last checkpoint if the operators differ."""
    again = options.for_later_start()
    try:
        graph = load_flow(flow).graph
        run = find_present(JobFolder(options.home, graph.name))
    except HeadgateError:
        # The start says it again, with the user watching.
        return again
    # A batch that is open is left by the start itself, with the state of before it.
    if run is None or find_open_batch(run.checkpoint) is not None:
        return again
    if run.operators != tuple(node.id for node in graph.stateful()):
        return replace(again, restore_from=LATEST)
    return again


class _Change:
    """Sets an event once a file is not what it was."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._was = _digest(file)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.event = threading.Event()

    def __enter__(self) -> _Change:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def wait(self) -> None:
        """Wait until the file has changed."""
        while _digest(self._file) == self._was:
            time.sleep(_LOOK_EVERY)

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_EVERY):
            if _digest(self._file) != self._was:
                self.event.set()
                return


def _digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        # An editor replaces files; the next look finds the new one.
        return ""
