"""The record of a job on the object store of its checkpoints, which an empty home goes on from.

STORE/jobs/NAME.json          which home owns the job, and the manifest of its present run
STORE/LINEAGE/run.json        the manifest of an earlier run
STORE/LINEAGE/reached.json    how far a run had come when its newest checkpoint was kept

The files of a home are the owners of all this, as long as the home owns the job: the record is
written after them, before a run's first batch, and nothing reads it. A home that does not own the
job, since its folder is empty or another home has run the job meanwhile, takes over what the record
says before it starts the job. It owns the job once it has replaced the record, whose condition is
that nobody else has. The caller holds the job's lock on the store.

A record whose run has its checkpoints elsewhere is left where a job has moved away.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from headgate._codec import DecodeError, decode, encode
from headgate._locations import Location, is_local, parse_location
from headgate.checkpoints.catalog import list_names
from headgate.checkpoints.stores.notes import Note, Notes, StoreNotes
from headgate.errors import Domain, HeadgateError
from headgate.jobs.job_folder import JobFolder, read_json, write_json
from headgate.jobs.runs.lineage import FORMAT as RUN_FORMAT
from headgate.jobs.runs.lineage import read_manifest
from headgate.jobs.runs.reached import REACHED
from headgate.jobs.runs.written_batches import UNMARKED, has_unmarked

FORMAT = 1
_JOBS = "jobs"
_RUN = "run.json"
_STATION = "store.json"
_RUN_FORMATS = range(1, RUN_FORMAT + 1)
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class _Version:
    """One state of a record: the home that wrote it, and a number that rises."""

    home: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True)
class _Kept:
    """The manifest of a run, and what is noted beside it.

    Attributes:
        run: As `run.json` has it.
        unmarked: Whether some start of the run wrote rows that leave no mark on brokers.
    """

    run: Mapping[str, Any]
    unmarked: bool = False


@dataclass(frozen=True, slots=True)
class _Record:
    """The record of a job.

    Attributes:
        lineage: The present run; None for a job that begins anew.
        kept: Of that run; None as well.
        runs: The lineages of earlier runs, whose manifests are beside their checkpoints.
    """

    job: str
    version: _Version
    lineage: str | None
    kept: _Kept | None
    runs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Station:
    """What a home knows of the records of its job: its file `store.json`.

    Attributes:
        written: The last version that this home has written, or was about to.
        seen: The version that it has taken over; it is up to date with it.
        stores: The addresses of the folders that have a record.
    """

    written: _Version
    seen: _Version = field(default_factory=_Version)
    stores: tuple[str, ...] = ()

    def owns(self, record: _Record) -> bool:
        """Return True if no other home has written a record since."""
        version = record.version
        by_itself = version.home == self.written.home and version.number <= self.written.number
        return by_itself or version == self.seen


class StoreRecord:
    """The record of a job in one folder of a store.

    Args:
        store: The folder that `--checkpoints` names.
        notes: Its files.
        job: The job's name, if its folder has another one since it is being deleted.
    """

    def __init__(
        self,
        home: JobFolder,
        store: Location,
        notes: Notes | None = None,
        *,
        job: str | None = None,
    ) -> None:
        self._home = home
        self._store = store
        self._notes = notes or StoreNotes(store)
        self._job = job or home.name
        self._name = f"{_JOBS}/{self._job}.json"

    def take_over(
        self, *, ignore_corrupted: bool, flow: str, options: Mapping[str, Any]
    ) -> str | None:
        """Bring the home up to date with the record, and return the lineage that it names.

        None if there is nothing to take over.

        Args:
            ignore_corrupted: The start does not go on from the present run.
            flow: Of this start, for `job.json`.
            options: Likewise.

        Raises:
            HeadgateError: JOB_FILE_BROKEN, JOB_FORMAT_UNSUPPORTED; JOB_ELSEWHERE if the record, or
                this home, has a run with checkpoints elsewhere.
        """
        note = self._notes.find(self._name)
        station = find_station(self._home)
        try:
            record = None if note is None else self._parse(note)
        except HeadgateError as error:
            if error.code == "JOB_FILE_BROKEN" and ignore_corrupted:
                return None
            raise
        if record is None or station.owns(record):
            return None
        self._check_home()
        if record.lineage is not None and record.kept is not None:
            self._check_place(record.lineage, record.kept)
            for lineage in (*record.runs, record.lineage):
                self._bring(lineage, record)
        stores = tuple(dict.fromkeys((*station.stores, str(self._store))))
        self._home.write_job(record.lineage, flow=flow, options=options)
        _write_station(self._home, replace(station, seen=record.version, stores=stores))
        return record.lineage

    def replace(self, lineage: str | None) -> None:
        """Write which run is the job's present one; from here on, this home owns the job.

        Raises:
            HeadgateError: LEASE_LOST if another home has written the record meanwhile.
        """
        note = self._notes.find(self._name)
        station = find_station(self._home)
        record = None
        if note is not None:
            try:
                record = self._parse(note)
            except HeadgateError as error:
                if error.code != "JOB_FILE_BROKEN":
                    raise
        if record is not None and not station.owns(record):
            raise self._lost()
        before = max(station.written.number, 0 if record is None else record.version.number)
        version = _Version(station.written.home, before + 1)
        known = () if record is None else record.runs
        runs = self._note_earlier(lineage, known)
        kept = None if lineage is None else self._kept(lineage)
        written = _Record(self._home.name, version, lineage, kept, runs)
        # First: a home that is killed here has written this version, or an older one.
        stores = tuple(dict.fromkeys((*station.stores, str(self._store))))
        _write_station(self._home, replace(station, written=version, stores=stores))
        content = json.dumps({"format": FORMAT, **encode(written)}, indent=1).encode()
        if self._notes.put(self._name, content, mark=None if note is None else note.mark) is None:
            raise self._lost()

    def is_ours(self) -> bool:
        """Return True if no other home has written the record, or there is none."""
        note = self._notes.find(self._name)
        return note is None or find_station(self._home).owns(self._parse(note))

    def remove(self) -> None:
        """Remove the record of a job that is deleted, and its claims."""
        self._notes.remove([self._name])
        for folder in (f"{_JOBS}/{self._job}.lease", f"{_JOBS}/{self._job}.lock"):
            names = self._notes.list_times(folder)
            self._notes.remove(f"{folder}/{name}" for name in names)

    def _note_earlier(self, lineage: str | None, known: tuple[str, ...]) -> tuple[str, ...]:
        """Write the manifests of runs that are left, and return the lineages of all of them."""
        there = [name for name in list_names(self._home.path / "runs") if name != lineage]
        for name in there:
            if name not in known:
                kept = self._kept(name)
                if kept is not None:
                    content = json.dumps({"format": FORMAT, **encode(kept)}, indent=1)
                    self._notes.write(f"{name}/{_RUN}", content.encode())
        return tuple(there)

    def _kept(self, lineage: str) -> _Kept | None:
        try:
            manifest = read_manifest(self._home.run_folder(lineage))
        except HeadgateError:
            # Of an earlier run; the present one was read by its start.
            return None
        return None if manifest is None else _Kept(manifest, has_unmarked(self._home, lineage))

    def _bring(self, lineage: str, record: _Record) -> None:
        """Write the files of a run in this home."""
        folder = self._home.run_folder(lineage)
        kept = record.kept
        if lineage != record.lineage:
            note = self._notes.find(f"{lineage}/{_RUN}")
            if note is None:
                return
            kept = self._read(f"{lineage}/{_RUN}", note, _Kept)
        assert kept is not None, "the caller has checked it"
        write_json(folder / _RUN, kept.run)
        if kept.unmarked:
            (folder / UNMARKED).touch()
        reached = self._notes.find(f"{lineage}/{REACHED}")
        if reached is not None:
            write_json(folder / REACHED, self._content(f"{lineage}/{REACHED}", reached))

    def _parse(self, note: Note) -> _Record:
        record = self._read(self._name, note, _Record)
        if record.kept is not None and record.kept.run.get("format") not in _RUN_FORMATS:
            raise _unsupported(f"{self._store}/{self._name}", record.kept.run.get("format"))
        return record

    def _read(self, name: str, note: Note, kind: type[_Value]) -> _Value:
        try:
            return decode(kind, self._content(name, note))
        except DecodeError as error:
            raise self._broken(name, error) from error

    def _content(self, name: str, note: Note) -> dict[str, Any]:
        try:
            content = json.loads(note.content)
            version = content["format"]
        except (ValueError, TypeError, KeyError) as error:
            raise self._broken(name, error) from error
        if version != FORMAT:
            raise _unsupported(f"{self._store}/{name}", version)
        return dict(content)

    def _check_home(self) -> None:
        """Refuse if the home has another job of this name, with checkpoints elsewhere."""
        lineage = self._home.find_present_run()
        manifest = None if lineage is None else read_manifest(self._home.run_folder(lineage))
        if manifest is None or self._has(str(manifest.get("checkpoint"))):
            return
        raise HeadgateError(
            "JOB_ELSEWHERE",
            f"cannot start job {self._home.name!r}: {self._store} has a job of this name of "
            f"another home, and the present run {lineage} in {self._home.path} has its checkpoints "
            "elsewhere",
            hint="omit --checkpoints to go on here, or add --home DIR with an empty folder to go "
            "on there",
        )

    def _check_place(self, lineage: str, kept: _Kept) -> None:
        place = str(kept.run.get("checkpoint"))
        if not self._has(place):
            raise HeadgateError(
                "JOB_ELSEWHERE",
                f"cannot go on with job {self._home.name!r} from {self._store}: its run {lineage} "
                f"has its checkpoints elsewhere, in {place}",
                hint="name that place with --checkpoints, or start from a checkpoint here: "
                f"--from {self._store}/LINEAGE/checkpoints/chk-N",
            )

    def _has(self, checkpoint: str) -> bool:
        place = parse_location(checkpoint)
        return not is_local(place) and place.parent.parent == self._store

    def _lost(self) -> HeadgateError:
        return HeadgateError(
            "LEASE_LOST",
            f"cannot go on with job {self._home.name!r}: another home has written its record "
            f"{self._store}/{self._name}",
            hint=f"where it runs now: headgate show {self._home.name}",
            domain=Domain.EXTERNAL,
        )

    def _broken(self, name: str, error: Exception) -> HeadgateError:
        return HeadgateError(
            "JOB_FILE_BROKEN",
            f"cannot read {self._store}/{name}: it is corrupted ({error})",
            hint=f"start from a checkpoint: --from {self._store}/LINEAGE/checkpoints/chk-N, or "
            "start empty with --fresh",
            domain=Domain.EXTERNAL,
        )


def find_station(home: JobFolder) -> _Station:
    """Return what a home knows of the records of its job; a new name for the home if nothing."""
    content = read_json(home.path / _STATION)
    if content is None:
        return _Station(_Version(secrets.token_hex(8)))
    try:
        return decode(_Station, content)
    except DecodeError:
        # A home that does not know itself does not own the job.
        return _Station(_Version(secrets.token_hex(8)))


def forget_stores(home: JobFolder, *, but: Location | None) -> None:
    """Note that the records of other stores say where the job has gone.

    Args:
        but: The store of the present run; None if its checkpoints are on a disk.
    """
    station = find_station(home)
    stores = () if but is None else (str(but),)
    if station.stores not in ((), stores):
        _write_station(home, replace(station, stores=stores))


def list_stores(home: JobFolder) -> tuple[Location, ...]:
    """Return the folders of object stores that have a record of a home's job."""
    return tuple(parse_location(store) for store in find_station(home).stores)


def _write_station(home: JobFolder, station: _Station) -> None:
    home.write_json(_STATION, encode(station))


def _unsupported(file: str, version: object) -> HeadgateError:
    return HeadgateError(
        "JOB_FORMAT_UNSUPPORTED",
        f"cannot read {file}: its format is {version!r}, and this release reads {FORMAT}",
        hint="use the release of headgate that wrote it, or a newer one",
    )
