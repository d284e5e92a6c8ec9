"""Restarting the jobs of a session whose supervisor died."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from headgate._clock import Clock, SystemClock
from headgate.errors import Domain, HeadgateError
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.registry import get_job
from headgate.jobs.upkeep.kept_jobs import KeptJob, Session
from headgate.jobs.upkeep.orders import LONGEST_START, follow_apart, start_kept
from headgate.jobs.views.job import DEAD, JobView, view_job

_LOOK_EVERY = timedelta(seconds=1)
_TAKEN_AT_ONCE = 4
# The states of a job that should be running.
_UP = (JobState.STARTING, JobState.RUNNING, JobState.RESTARTING, JobState.RESCALING)
_ENDED_BY_WISH = (JobState.STOPPED, JobState.CANCELED)


@dataclass(slots=True)
class _Tries:
    """How often a job was taken up, and when it may be again."""

    count: int = 0
    last: float = 0.0


class BackOff:
    """Says when a job that died may be taken up again.

    The first time at once; then after a second, two, four and so on up to five minutes. A job
    that was up for two minutes begins anew.
    """

    FIRST = 1.0
    LONGEST = 300.0
    HEALTHY = 120.0

    def __init__(self) -> None:
        self._tries: dict[str, _Tries] = {}

    def is_due(self, job: str, now: float) -> bool:
        """Tell whether a job may be taken up now."""
        tries = self._tries.get(job)
        if tries is None:
            return True
        return now - tries.last >= self._wait(tries.count)

    def took(self, job: str, now: float) -> None:
        """Remember that a job was taken up."""
        tries = self._tries.setdefault(job, _Tries())
        tries.count += 1
        tries.last = now

    def saw_alive(self, job: str, now: float) -> None:
        """Forget what was, once a job has been up for long enough."""
        tries = self._tries.get(job)
        if tries is not None and now - tries.last >= self.HEALTHY:
            del self._tries[job]

    def _wait(self, count: int) -> float:
        return float(min(self.LONGEST, self.FIRST * 2 ** min(count - 1, 30)))


TakenUp = Callable[[str, HeadgateError | None], None]


class SessionWatch:
    """Takes jobs up again whose supervisor is gone; one loop, on a thread of its own."""

    def __init__(self, root: Path, *, on_taken_up: TakenUp, clock: Clock | None = None) -> None:
        """Look after the jobs of a home.

        Args:
            on_taken_up: Called after a job was taken up, or with the error if that failed.
        """
        self._root = root
        self._session = Session(root)
        self._notify = on_taken_up
        self._clock = clock or SystemClock()
        self._back_off = BackOff()
        self._lock = threading.Lock()
        self._taking: set[str] = set()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._looked = self._clock.monotonic()
        self._problem: HeadgateError | None = None
        # Jobs whose unreadable files were reported.
        self._odd: set[str] = set()

    def start(self) -> None:
        """Begin to look, every second."""
        self._thread = threading.Thread(target=self._run, name="session-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more; jobs stay as they are."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    @property
    def problem(self) -> str:
        """Why jobs are not looked after; empty while they are."""
        if self._problem is not None:
            return self._problem.message
        if self._thread is not None and not self._thread.is_alive() and not self._stop.is_set():
            return "the loop that takes jobs up again has ended"
        if self._clock.monotonic() - self._looked > 60:
            return "the loop that takes jobs up again hangs"
        return ""

    def look(self) -> list[str]:
        """Take up what died and is due; return the jobs that are being taken up now."""
        now = self._clock.monotonic()
        taken = []
        for kept in self._session.list().values():
            try:
                if self._look_at(kept, now):
                    taken.append(kept.job)
                self._odd.discard(kept.job)
            except Exception as error:  # noqa: BLE001 - one odd file must not cost the other jobs
                self._note(kept.job, error)
        self._looked = now
        return taken

    def _look_at(self, kept: KeptJob, now: float) -> bool:
        """Take up a job if it died and is due; return whether it is being taken up now."""
        view = view_job(JobFolder(self._root, kept.job), clock=self._clock)
        if view.is_alive:
            self._back_off.saw_alive(kept.job, now)
        elif view.state in _ENDED_BY_WISH and view.since and view.since > kept.since:
            # Somebody ended it in another way; a start through the server keeps it up again.
            # It may have been wished for anew since this look began.
            self._session.let_go(kept.job, only=kept)
        elif (
            self._wants(view, kept)
            # A start takes seconds until the job has a supervisor.
            and not self._session.is_starting(kept.job)
            and self._begin(kept.job, now)
        ):
            threading.Thread(
                target=self._take_up, args=(kept,), name=f"take-up-{kept.job}", daemon=True
            ).start()
            return True
        return False

    def _note(self, job: str, error: Exception) -> None:
        """Tell once that a job cannot be looked at, until it can be again."""
        if job in self._odd:
            return
        self._odd.add(job)
        if not isinstance(error, HeadgateError):
            error = HeadgateError(
                "JOB_FILE_BROKEN",
                f"cannot look after job {job!r}: one of its files is corrupted ({error!r})",
                hint=f"headgate show {job}",
                domain=Domain.EXTERNAL,
            )
        self._notify(job, error)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self.look()
                self._problem = None
            except HeadgateError as error:
                self._problem = error
            except OSError as error:
                self._problem = HeadgateError("NO_ACCESS", f"cannot look after jobs: {error}")
            except Exception as error:  # noqa: BLE001 - the loop goes on and reports it
                self._problem = HeadgateError(
                    "INTERNAL", f"cannot look after jobs: {error!r}", domain=Domain.INTERNAL
                )
            self._stop.wait(_LOOK_EVERY.total_seconds())

    def _wants(self, view: JobView, kept: KeptJob) -> bool:
        if view.state != DEAD or view.status.get("held"):
            return False
        said = view.status.get("state")
        if said is not None or kept.order is None:
            return said in _UP
        # It died before its first status. After that time, a user removed its folder.
        return self._clock.now() - kept.since < LONGEST_START

    def _begin(self, job: str, now: float) -> bool:
        with self._lock:
            busy = job in self._taking or len(self._taking) >= _TAKEN_AT_ONCE
            if busy or not self._back_off.is_due(job, now):
                return False
            self._taking.add(job)
            self._back_off.took(job, now)
            return True

    def _take_up(self, kept: KeptJob) -> None:
        error: HeadgateError | None = None
        try:
            self._start(kept)
        except HeadgateError as raised:
            error = raised
        except Exception as raised:  # noqa: BLE001 - the loop goes on and reports it
            error = HeadgateError("INTERNAL", str(raised), domain=Domain.INTERNAL)
        finally:
            with self._lock:
                self._taking.discard(kept.job)
        if error is None or error.code != "JOB_RUNNING":
            self._notify(kept.job, error)

    def _start(self, kept: KeptJob) -> None:
        order = kept.order
        if order is not None and not self._is_remembered(kept):
            # It died before it ran: what it was to restore, or begin with, still holds.
            follow_apart({"do": "start", **order, "by": kept.by, "keep": False})
            return
        job = get_job(self._root, kept.job, verb="start")
        start_kept(job, by=kept.by, keep=False)

    def _is_remembered(self, kept: KeptJob) -> bool:
        """Tell whether the job itself wrote down which run it is in since that was wished."""
        home = JobFolder(self._root, kept.job)
        file = home.path / "job.json"
        is_newer = file.is_file() and file.stat().st_mtime >= kept.since.timestamp()
        return is_newer and home.find_present_run() is not None
