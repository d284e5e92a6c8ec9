"""The object stores that a start of a job, or its removal, has to do with."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headgate._locations import Location, check_mounted, is_local
from headgate.checkpoints.stores.notes import StoreNotes
from headgate.engine.session.driver_lock import holder_of
from headgate.errors import HeadgateError
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import find_run, find_store
from headgate.jobs.runs.store_lock import StoreLock
from headgate.jobs.runs.store_record import (
    StoreRecord,
    forget_stores,
    list_stores,
)

# Of a command on a job at rest.
_LEASE = timedelta(seconds=30)


def lease_of(job: str, store: Location) -> Location:
    """Return where the drivers of a job claim its checkpoint."""
    return store / "jobs" / f"{job}.lease"


@dataclass(frozen=True, slots=True)
class JobStores:
    """A job's locks and records on object stores; none for a job with checkpoints on a disk."""

    home: JobFolder
    locks: Mapping[Location, StoreLock]

    def take_over(
        self, *, ignore_corrupted: bool, flow: str, options: Mapping[str, Any]
    ) -> tuple[Location, str] | None:
        """Bring the home up to date, and return a store and the run that was taken over from it.

        None if the home is up to date.

        Raises:
            HeadgateError: As `StoreRecord.take_over`.
        """
        for store in self.locks:
            lineage = StoreRecord(self.home, store).take_over(
                ignore_corrupted=ignore_corrupted, flow=flow, options=options
            )
            if lineage is not None:
                return store, lineage
        return None

    def note_present(self, lineage: str | None) -> None:
        """Write into the records which run is the job's present one.

        Args:
            lineage: None to make the next start begin anew.

        Raises:
            HeadgateError: LEASE_LOST if another home has taken the job over.
        """
        run = None if lineage is None else find_run(self.home, lineage)
        own = None if run is None else find_store(run)
        known = set(list_stores(self.home))
        for store in self.locks:
            if store == own or store in known:
                self.locks[store].check()
                StoreRecord(self.home, store).replace(lineage)
        if run is not None:
            forget_stores(self.home, but=own)

    def empty_records(self) -> None:
        """Make an empty home find no run to go on with; the job's files are removed next.

        The stores of jobs that another home has taken over stay as they are.
        """
        for store, lock in self.locks.items():
            record = StoreRecord(self.home, store)
            lock.check()
            if record.is_ours():
                record.replace(None)

    def let_go(self, store: Location) -> None:
        """Write no further claims on a store: the job's record there is removed next.

        Raises:
            HeadgateError: LEASE_LOST, STORE_UNAVAILABLE.
        """
        lock = self.locks.get(store)
        if lock is not None:
            lock.check()
            lock.let_go()

    def check(self) -> None:
        """Refuse to go on if another process has taken over a lock.

        Raises:
            HeadgateError: LEASE_LOST, STORE_UNAVAILABLE.
        """
        for lock in self.locks.values():
            lock.check()

    def find_loss(self) -> HeadgateError | None:
        """Return why this process must not go on; None if nothing is known. Asks no store."""
        return next((lock.lost for lock in self.locks.values() if lock.lost is not None), None)


@contextlib.contextmanager
def held_stores(
    home: JobFolder,
    *,
    verb: str,
    chosen: Location | None = None,
    lease: timedelta = _LEASE,
    tell: Callable[[str], None] | None = None,
) -> Iterator[JobStores]:
    """Hold the locks of a job on its object stores in the block; the local lock is held.

    Args:
        verb: What cannot be done without them.
        chosen: The place of new runs; None for the job's folder.
        lease: The time after which another process may take over, if this one has died.
        tell: As `StoreLock.held` takes it.

    Raises:
        HeadgateError: LEASE_HELD.
    """
    stores = dict.fromkeys(list_stores(home))
    if chosen is not None and not is_local(chosen):
        stores[chosen] = None
    holders = (holder_of(home.path / "lock"), holder_of(home.path / "driver.lock"))
    locks = {
        store: StoreLock(StoreNotes(store / "jobs"), home.name, holders=holders, period=lease)
        for store in stores
    }
    with contextlib.ExitStack() as held:
        for store, lock in locks.items():
            check_mounted(store)
            held.enter_context(lock.held(verb=verb, tell=tell))
        yield JobStores(home, locks)


def stores_at(home: JobFolder, chosen: Location | None) -> Sequence[Location]:
    """Return the stores and folders in which a start may find and write checkpoints."""
    return [*list_stores(home), *(() if chosen is None else (chosen,))]
