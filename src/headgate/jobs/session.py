"""Session mode: the jobs that a server keeps up, and how it starts them.

Every job has a supervisor of its own, a process that outlives the server. What the server owns is
the wish that a job be up: `server/session.json` in the home has one entry for each, written when
it is submitted, started or restored through the server, and removed when it is stopped or
cancelled. A job in there whose supervisor is gone is taken up again.

Flows are the user's code. They are loaded in a process of their own, so that whatever a file does
when it is read, it does not do it to the server.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from headgate._clock import Clock, SystemClock
from headgate.checkpoints.catalog import pin, read_kept, unpin
from headgate.errors import Domain, HeadgateError
from headgate.jobs.control import get_start, restart_job
from headgate.jobs.detach import start_detached
from headgate.jobs.home import JobHome, read_json, write_json
from headgate.jobs.job import RunOptions
from headgate.jobs.loading import load_flow
from headgate.jobs.options import resolve_options
from headgate.jobs.registry import get_home
from headgate.jobs.restoring import plan_of_restore
from headgate.jobs.states import JobState
from headgate.jobs.views import DEAD, JobView, view_job

_FILE = "session.json"
_LOOK_EVERY = timedelta(seconds=1)
# Fetching a connector's jars takes minutes, the first time.
_LONGEST_START = timedelta(minutes=15)
# A dry run loads a flow and reads small files.
_LONGEST_PLAN = timedelta(seconds=60)
_TAKEN_AT_ONCE = 4
# What a job was doing that nobody had asked to rest.
_UP = (JobState.STARTING, JobState.RUNNING, JobState.RESTARTING, JobState.RESCALING)
_ENDED_BY_WISH = (JobState.STOPPED, JobState.CANCELED)


@dataclass(frozen=True, slots=True)
class KeptJob:
    """A job that is to be up.

    Attributes:
        since: When that was wished last.
        by: Who wished it.
        order: How it was to be started; of use until the job itself remembers.
    """

    job: str
    since: datetime
    by: str
    order: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the entry as JSON values."""
        return {"since": self.since.isoformat(), "by": self.by, "order": self.order}


class Session:
    """The file of the jobs that are to be up; several processes may change it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._file = root / "server" / _FILE

    def list(self) -> dict[str, KeptJob]:
        """Return the jobs that are to be up, by name.

        Raises:
            HeadgateError: JOB_FILE_BROKEN or JOB_FORMAT_UNSUPPORTED.
        """
        content = read_json(self._file) or {"jobs": {}}
        try:
            return {
                name: KeptJob(
                    name, datetime.fromisoformat(each["since"]), each["by"], each["order"]
                )
                for name, each in content["jobs"].items()
            }
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise HeadgateError(
                "JOB_FILE_BROKEN",
                f"cannot read {self._file}: it is damaged ({error!r})",
                hint=f"restore it from a backup, or remove {self._file}",
                domain=Domain.EXTERNAL,
            ) from error

    def keep(self, job: KeptJob) -> KeptJob | None:
        """Write that a job is to be up; return what was written of it before."""
        return self._change(job.job, job)

    def let_go(self, name: str, *, only: KeptJob | None = None) -> KeptJob | None:
        """Write that a job need not be up; return what was written of it before.

        Args:
            only: Nothing is changed where something else than this is written by now.
        """
        return self._change(name, None, only=only)

    def put_back(self, name: str, before: KeptJob | None) -> None:
        """Undo a change."""
        self._change(name, before)

    def _change(
        self, name: str, to: KeptJob | None, *, only: KeptJob | None = None
    ) -> KeptJob | None:
        with self._writing():
            jobs = self.list()
            before = jobs.pop(name, None)
            if only is not None and before != only:
                return before
            if to is not None:
                jobs[name] = to
            if to != before:
                told = {"jobs": {key: jobs[key].to_json() for key in sorted(jobs)}}
                write_json(self._file, told, sync=True)
        return before

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self._file.with_suffix(".lock")).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


# What a server asks for, each done in a process of its own.


def submit_flow(
    root: Path,
    flow: str,
    *,
    on: str,
    settings: Mapping[str, Any],
    fresh: bool,
    restore_from: str | None,
    by: str,
    keep: bool,
) -> dict[str, Any]:
    """Start a flow as a job in the background; return what it said of itself, as JSON values.

    Args:
        flow: As `load_flow` takes it.
        on: The log of topics that are known by name alone, unless a headgate.toml names one.
        settings: By the names of headgate.toml.
        keep: Whether the job is to be up from now on.

    Raises:
        HeadgateError: What a start refuses.
    """
    base = RunOptions(home=root.absolute(), fresh=fresh, restore_from=restore_from)
    options = resolve_options(flow, settings, base)
    if options.settings["on"]["from"] == "default":
        options = resolve_options(flow, {**settings, "on": on}, base)
    return _ask({"do": "start", "flow": flow, "options": options.to_json(), "by": by, "keep": keep})


def start_kept(root: Path, name: str, *, by: str, keep: bool) -> dict[str, Any]:
    """Start a job as it was last run, in the background."""
    flow, options = get_start(root.absolute(), name)
    return _ask({"do": "start", "flow": flow, "options": _quiet(options), "by": by, "keep": keep})


def restart_kept(root: Path, name: str, *, by: str, keep: bool) -> dict[str, Any]:
    """Stop a job between two batches and start it again; one that is not running is started."""
    flow, options = get_start(root.absolute(), name)
    return _ask({"do": "restart", "flow": flow, "options": _quiet(options), "by": by, "keep": keep})


def restore_kept(
    root: Path,
    name: str,
    *,
    source: str | None,
    at: str | None,
    drop: Collection[str],
    by: str,
    keep: bool,
) -> dict[str, Any]:
    """Go back to a checkpoint and run on from there, in the background.

    Raises:
        HeadgateError: What a restore refuses; JOB_RUNNING among it.
    """
    flow, options = _restoring(root, name, source, at, drop)
    return _ask({"do": "start", "flow": flow, "options": _quiet(options), "by": by, "keep": keep})


def foresee_restore(
    root: Path, name: str, *, source: str | None, at: str | None, drop: Collection[str]
) -> dict[str, Any]:
    """Return what a restore would do, as JSON values; the job may be running."""
    flow, options = _restoring(root, name, source, at, drop)
    return _ask({"do": "plan", "flow": flow, "options": _quiet(options), "by": "", "keep": False})


@contextlib.contextmanager
def hold_checkpoint(root: Path, name: str, folder: Path) -> Iterator[None]:
    """Keep a checkpoint of a job's present run from being removed meanwhile.

    It is pinned, and unpinned at the end unless it was pinned before. One of an earlier run, or
    a savepoint, is removed by nobody, and is left as it is.

    Raises:
        HeadgateError: CHECKPOINT_NOT_FOUND if it is gone already.
    """
    home = get_home(root, name, verb="restore")
    lineage = home.find_present_run()
    present = None if lineage is None else home.checkpoints_folder(lineage).absolute()
    if folder.absolute().parent != present:
        yield
        return
    kept = read_kept(folder)
    if kept.pinned:
        yield
        return
    pin(kept)
    try:
        yield
    finally:
        unpin(kept)


def name_of_flow(flow: str) -> str:
    """Return the name of the job that a flow makes; its file is loaded here.

    Args:
        flow: As `load_flow` takes it.
    """
    return load_flow(flow).graph.name


def look_at(root: Path, name: str, *, verb: str = "show") -> JobView:
    """Return one job, in short.

    Raises:
        HeadgateError: JOB_NOT_FOUND.
    """
    return view_job(get_home(root, name, verb=verb))


def last_checkpoint_took(root: Path, view: JobView) -> timedelta | None:
    """Return how long the batch of a job's newest checkpoint took; None where there is none."""
    lineage = view.status.get("lineage")
    if not lineage or not view.checkpoint:
        return None
    folder = JobHome(root, view.name).checkpoints_folder(str(lineage)) / view.checkpoint
    try:
        return read_kept(folder).manifest.facts.duration
    except HeadgateError:
        return None


def check_running(root: Path, name: str, *, verb: str) -> JobView:
    """Return one job that is running, or refuse.

    Raises:
        HeadgateError: JOB_NOT_FOUND or JOB_NOT_RUNNING.
    """
    view = look_at(root, name, verb=verb)
    if not view.is_alive:
        raise HeadgateError(
            "JOB_NOT_RUNNING",
            f"cannot {verb} job {name!r}: it is not running, it is {view.state}",
            hint=f"headgate start {name}",
        )
    return view


def check_at_rest(root: Path, name: str, *, verb: str) -> JobView:
    """Return one job that nobody runs, or refuse.

    Raises:
        HeadgateError: JOB_NOT_FOUND or JOB_RUNNING.
    """
    view = look_at(root, name, verb=verb)
    if view.is_alive:
        raise HeadgateError(
            "JOB_RUNNING",
            f"cannot {verb} job {name!r}: it is running, it is {view.state}",
            hint=f"headgate stop {name}",
        )
    return view


def _restoring(
    root: Path, name: str, source: str | None, at: str | None, drop: Collection[str]
) -> tuple[str, RunOptions]:
    flow, options = get_start(root.absolute(), name)
    return flow, replace(
        options,
        parallelism=None,
        until_caught_up=False,
        restore_from=None if at is not None else (source or "latest"),
        restore_at=at,
        drop_state=tuple(drop),
    )


def _quiet(options: RunOptions) -> dict[str, Any]:
    return replace(options, print_rows=0, verbose=False).to_json()


def _ask(order: Mapping[str, Any]) -> dict[str, Any]:
    """Have an order followed by a process of its own, and return its answer or raise it."""
    longest = _LONGEST_PLAN if order["do"] == "plan" else _LONGEST_START
    process = subprocess.Popen(
        [sys.executable, "-m", "headgate.jobs.session"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # An order that was given is followed, also when the server goes.
        start_new_session=True,
    )
    try:
        said, told = process.communicate(
            json.dumps(order).encode(), timeout=longest.total_seconds()
        )
    except subprocess.TimeoutExpired as error:
        process.kill()
        process.communicate()
        raise HeadgateError(
            "WAITED_TOO_LONG",
            f"cannot {order['do']} flow {order['flow']!r}: it said nothing for {longest}",
            hint="headgate jobs",
            domain=Domain.EXTERNAL,
            retryable=True,
        ) from error
    try:
        answer = json.loads(said)
    except ValueError as error:
        last = told.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise HeadgateError(
            "FLOW_BROKEN",
            f"cannot {order['do']} flow {order['flow']!r}: the process that read it ended with "
            f"{process.returncode}{f': {last}' if last else ''}",
            hint=f"python {str(order['flow']).partition(':')[0]}",
        ) from error
    if "error" in answer:
        error_ = answer["error"]
        raise HeadgateError(
            error_["code"],
            error_["message"],
            hint=error_["hint"],
            domain=Domain(error_["domain"]),
            retryable=error_["retryable"],
        )
    return dict(answer["answer"])


def main() -> None:
    """Follow the order on standard input; the answer is a line on standard output."""
    # What the user's file prints is no answer.
    answer = os.dup(1)
    os.dup2(2, 1)
    order = json.load(sys.stdin)
    try:
        said: dict[str, Any] = {"answer": _follow(order)}
    except HeadgateError as error:
        told = {"domain": error.domain.value, "retryable": error.retryable}
        said = {"error": {**error.as_dict(), **told}}
    os.write(answer, json.dumps(said).encode() + b"\n")


def _follow(order: Mapping[str, Any]) -> dict[str, Any]:
    flow, options = str(order["flow"]), RunOptions.from_json(order["options"])
    if order["do"] == "plan":
        return plan_of_restore(flow, options).to_json()
    name = load_flow(flow).graph.name
    session = Session(options.home)
    how = {"flow": flow, "options": order["options"]}
    kept = KeptJob(name, SystemClock().now(), str(order["by"]), how)
    # First, so that a job that was started is kept up whatever dies in between.
    before = session.keep(kept) if order["keep"] else None
    try:
        if order["do"] == "restart":
            started = restart_job(options.home, name)
        else:
            started = start_detached(flow, options)
    except HeadgateError:
        if order["keep"]:
            session.put_back(name, before)
        raise
    if order["keep"]:
        # A restart is a stop in between, and a job that was stopped is let go.
        session.keep(kept)
    return started.to_json()


# Taking up what died.


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

    def __init__(self, root: Path, *, told: TakenUp, clock: Clock | None = None) -> None:
        """Look after the jobs of a home.

        Args:
            told: Called when a job was taken up, with the error if it could not be.
        """
        self._root = root
        self._session = Session(root)
        self._told = told
        self._clock = clock or SystemClock()
        self._back_off = BackOff()
        self._lock = threading.Lock()
        self._taking: set[str] = set()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._looked = self._clock.monotonic()
        self._problem: HeadgateError | None = None
        # Those of which it was told that they cannot be looked at.
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
        view = view_job(JobHome(self._root, kept.job), clock=self._clock)
        if view.is_alive:
            self._back_off.saw_alive(kept.job, now)
        elif view.state in _ENDED_BY_WISH and view.since and view.since > kept.since:
            # Somebody ended it in another way; a start through the server keeps it up again.
            # It may have been wished for anew since this look began.
            self._session.let_go(kept.job, only=kept)
        elif self._wants(view, kept) and self._begin(kept.job, now):
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
                f"cannot look after job {job!r}: one of its files is damaged ({error!r})",
                hint=f"headgate show {job}",
                domain=Domain.EXTERNAL,
            )
        self._told(job, error)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self.look()
                self._problem = None
            except HeadgateError as error:
                self._problem = error
            except OSError as error:
                self._problem = HeadgateError("NO_ACCESS", f"cannot look after jobs: {error}")
            except Exception as error:  # noqa: BLE001 - the loop goes on, and whoever looks is told
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
        # No word yet: it died before it could say any. Later on, somebody removed its folder.
        return self._clock.now() - kept.since < _LONGEST_START

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
        except Exception as raised:  # noqa: BLE001 - the loop goes on, and whoever looks is told
            error = HeadgateError("INTERNAL", str(raised), domain=Domain.INTERNAL)
        finally:
            with self._lock:
                self._taking.discard(kept.job)
        if error is None or error.code != "JOB_RUNNING":
            self._told(kept.job, error)

    def _start(self, kept: KeptJob) -> None:
        order = kept.order
        if order is not None and not self._is_remembered(kept):
            # It died before it ran: what it was to restore, or begin with, still holds.
            _ask({"do": "start", **order, "by": kept.by, "keep": False})
            return
        start_kept(self._root, kept.job, by=kept.by, keep=False)

    def _is_remembered(self, kept: KeptJob) -> bool:
        """Tell whether the job itself wrote down how it was started since that was wished."""
        file = JobHome(self._root, kept.job).path / "job.json"
        return file.is_file() and file.stat().st_mtime >= kept.since.timestamp()


if __name__ == "__main__":
    main()
