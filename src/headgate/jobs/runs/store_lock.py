"""The lock of a job on an object store: one supervisor at a time, on whichever host.

STORE/jobs/NAME.lock/N    claims of supervisors, with rising numbers, each created if it is absent
STORE/jobs/NAME.lease/N   those of their drivers, of the same form, created by the kernel's Lease

The newest claim counts. A supervisor renews its own by the next number; another one takes over by
the next number, once the newest is older than the period that it names. Ages are differences of the
store's own times: the clocks of hosts are never compared. Who takes over also creates the next
claim of the drivers, so that a driver that wakes up later finds its next number taken.

The lock keeps a second supervisor away. The fences are the store, which creates each log of a
checkpoint only once, and those of the sinks.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from headgate._clock import Clock, SystemClock
from headgate._locations import shell_command
from headgate.checkpoints.stores.notes import Notes
from headgate.errors import Domain, HeadgateError, StoreError

FORMAT = 1
# Times of a store have whole seconds, and its hosts may differ a little.
_MARGIN = timedelta(seconds=2)
_RENEWALS = 3
_LOOK_EVERY = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class _Claim:
    """The newest claim in a folder.

    Attributes:
        holder: Equal for processes of which only one can be alive.
        process: That process, in words.
        period: How long the claim is valid.
        stored_at: By the store's clock.
    """

    number: int
    holder: str
    process: str
    released: bool
    period: timedelta
    stored_at: datetime


class StoreLock:
    """The lock of one job in one folder of a store.

    Args:
        notes: The folder `jobs` of the store.
        holders: Of this job's supervisor and of its driver: equal for processes of which only one
            can be alive, so that a dead one's claim is not waited for.
        period: How long a claim is valid.
    """

    def __init__(
        self,
        notes: Notes,
        job: str,
        *,
        holders: tuple[str, str],
        period: timedelta,
        clock: Clock | None = None,
    ) -> None:
        self._notes = notes
        self._job = job
        self._lock, self._lease = f"{job}.lock", f"{job}.lease"
        self._holder, self._driver = holders
        self._period = period
        self._clock = clock or SystemClock()
        self._claimer = uuid.uuid4().hex
        self._number = 0
        self._claimed_at = 0.0
        self._renewing = threading.Lock()
        self.lost: HeadgateError | None = None

    @contextlib.contextmanager
    def held(self, *, verb: str, tell: Callable[[str], None] | None = None) -> Iterator[None]:
        """Hold the lock in the block, and renew it on a thread of its own.

        Args:
            verb: What cannot be done without it.
            tell: Called with a line for the user if a process is waited for that may have died;
                None to refuse at once.

        Raises:
            HeadgateError: LEASE_HELD.
        """
        self.take(verb=verb, tell=tell)
        over = threading.Event()
        renewing = threading.Thread(
            target=self._renew_until, args=(over,), name=f"lock of {self._job}", daemon=True
        )
        renewing.start()
        try:
            yield
        finally:
            over.set()
            renewing.join()
            self.release()

    def take(self, *, verb: str, tell: Callable[[str], None] | None = None) -> None:
        """Take the lock, and shut out the driver that held the lease before."""
        self._check_store(verb)
        for folder, holder in ((self._lock, self._holder), (self._lease, self._driver)):
            self._await_end(folder, holder, verb, tell)
        newest = self._find_newest(self._lock)
        self._number = 0 if newest is None else newest.number
        if not self._claim():
            raise self._held(verb, "another process has just taken it")
        driver = self._find_newest(self._lease)
        if driver is not None and not driver.released and driver.holder != self._driver:
            content = self._content(self._driver, released=True)
            if self._put(self._lease, driver.number + 1, content) is None:
                self.release()
                raise self._held(verb, "its driver has just renewed its lease")

    def check(self) -> None:
        """Refuse to go on without the lock; one that is about to expire is renewed.

        Raises:
            HeadgateError: LEASE_LOST, STORE_UNAVAILABLE.
        """
        if self._clock.monotonic() - self._claimed_at >= self._period.total_seconds():
            self.renew()
        if self.lost is not None:
            raise self.lost

    def renew(self) -> None:
        """Create the next claim, or take note that another process has."""
        with self._renewing:
            if self.lost is None and not self._claim():
                newest = self._find_newest(self._lock)
                self.lost = self._lose(
                    "its claims are gone" if newest is None else f"{newest.process} took it over"
                )

    def release(self) -> None:
        """End the lock, so that the next process need not wait; nothing happens if it was lost."""
        # What cannot be written expires.
        with self._renewing, contextlib.suppress(StoreError):
            if self.lost is None:
                self._put(self._lock, self._number + 1, self._content(self._holder, released=True))

    def let_go(self) -> None:
        """Write no further claims: the job is about to be deleted with those that there are."""
        with self._renewing:
            self.lost = self._lose("the job was deleted")

    def _renew_until(self, over: threading.Event) -> None:
        due = self._period.total_seconds() / _RENEWALS
        while not over.wait(due) and self.lost is None:
            try:
                self.renew()
            except HeadgateError:
                # The store does not answer. It is asked again, also after the claim has expired.
                due = _LOOK_EVERY.total_seconds()
            else:
                due = self._period.total_seconds() / _RENEWALS

    def _check_store(self, verb: str) -> None:
        """Refuse a store that ignores the conditions of writes: it keeps nobody away."""
        name = f"{self._lock}/probe-{uuid.uuid4().hex}"
        try:
            self._notes.put(name, b"1", mark=None)
            is_replaced = self._notes.put(name, b"2", mark=None) is not None
        finally:
            self._notes.remove([name])
        if is_replaced:
            raise HeadgateError(
                "BAD_STORE",
                f"cannot {verb} job {self._job!r} with checkpoints in {self._notes.folder}: the "
                "store ignores If-None-Match, so two drivers could write one checkpoint",
                hint="use a store with conditional writes, as Amazon S3 has them, or a folder",
                domain=Domain.EXTERNAL,
            )

    def _await_end(
        self, folder: str, holder: str, verb: str, tell: Callable[[str], None] | None
    ) -> None:
        """Return when no other process can hold a folder's newest claim."""
        newest = first = self._find_newest(folder)
        deadline: float | None = None
        while newest is not None and not newest.released and newest.holder != holder:
            if first is None or newest.number != first.number:
                raise self._held(verb, f"{newest.process} has just renewed it")
            if deadline is None:
                age = self._store_time() - newest.stored_at
                left = max(self._period, newest.period) + _MARGIN - age
                if left <= timedelta(0):
                    return
                if tell is None:
                    ends = f"it expires in {_seconds(left)} s unless it is renewed"
                    raise self._held(verb, f"{newest.process} has it, and {ends}")
                tell(
                    f"waiting for up to {_seconds(left)} s: {newest.process} ran job "
                    f"{self._job!r}, and may have died"
                )
                deadline = self._clock.monotonic() + left.total_seconds()
            elif self._clock.monotonic() >= deadline:
                return
            self._clock.sleep(_LOOK_EVERY)
            newest = self._find_newest(folder)

    def _claim(self) -> bool:
        """Create the next claim; return False if another process has a newer one."""
        at = self._clock.monotonic()
        content = self._content(self._holder, released=False)
        if self._put(self._lock, self._number + 1, content) is None:
            return False
        numbers = self._numbers(self._lock)
        # A number far back may be free again: its claim was old and is gone.
        if max(numbers, default=0) != self._number + 1:
            return False
        self._number += 1
        self._claimed_at = at
        old = (number for number in numbers if number < self._number - 1)
        self._notes.remove(f"{self._lock}/{number}" for number in old)
        return True

    def _put(self, folder: str, number: int, content: bytes) -> str | None:
        return self._notes.put(f"{folder}/{number}", content, mark=None)

    def _numbers(self, folder: str) -> dict[int, datetime]:
        times = self._notes.list_times(folder)
        return {int(name): time for name, time in times.items() if name.isdigit()}

    def _find_newest(self, folder: str) -> _Claim | None:
        numbers = self._numbers(folder)
        for number in sorted(numbers, reverse=True):
            note = self._notes.find(f"{folder}/{number}")
            if note is not None:
                return self._parse(folder, number, note.content, numbers[number])
        return None

    def _parse(self, folder: str, number: int, content: bytes, stored_at: datetime) -> _Claim:
        try:
            claim: Mapping[str, Any] = json.loads(content)
            if claim["format"] != FORMAT:
                raise ValueError(f"its format is {claim['format']!r}, not {FORMAT}")
            return _Claim(
                number,
                str(claim["holder"]),
                f"process {claim['process']} on {claim['host']}",
                bool(claim["released"]),
                timedelta(milliseconds=claim.get("period_ms", 0)),
                stored_at,
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            place = f"{self._notes.folder}/{folder}"
            raise HeadgateError(
                "LEASE_UNREADABLE",
                f"cannot read claim {number} of job {self._job!r} in {place}: {error}",
                hint="if the job runs nowhere: " + shell_command(place, "rm --recursive", "rm -r"),
                domain=Domain.EXTERNAL,
            ) from error

    def _content(self, holder: str, *, released: bool) -> bytes:
        claim = {
            "format": FORMAT,
            "holder": holder,
            "driver": self._claimer,
            "host": socket.gethostname(),
            "process": os.getpid(),
            "released": released,
            "period_ms": round(self._period.total_seconds() * 1000),
        }
        return json.dumps(claim).encode()

    def _store_time(self) -> datetime:
        """Return the store's time, by a file of its own."""
        name = f"now-{uuid.uuid4().hex}"
        self._notes.write(f"{self._lock}/{name}", b"now")
        try:
            return self._notes.list_times(self._lock)[name]
        finally:
            self._notes.remove([f"{self._lock}/{name}"])

    def _held(self, verb: str, why: str) -> HeadgateError:
        return HeadgateError(
            "LEASE_HELD",
            f"cannot {verb} job {self._job!r}: its checkpoints are in use: {why} (the claims are "
            f"in {self._notes.folder})",
            hint=f"where it runs: headgate stop {self._job}",
            domain=Domain.EXTERNAL,
            retryable=True,
        )

    def _lose(self, why: str) -> HeadgateError:
        return HeadgateError(
            "LEASE_LOST",
            f"cannot go on with job {self._job!r}: this supervisor has lost its claim in "
            f"{self._notes.folder}: {why}",
            hint=f"where it runs now: headgate show {self._job}",
            domain=Domain.EXTERNAL,
        )


def _seconds(duration: timedelta) -> int:
    return -(-duration // timedelta(seconds=1))
