"""Checkpoints on an object store, which has neither links nor renames.

RUN/checkpoint/           Spark's folder
RUN/checkpoints/chk-N/    a kept checkpoint: its manifest, which is written last
RUN/checkpoints/pool/     the files of all kept checkpoints of the run, under their names in Spark's
                          folder, since files of committed batches never change

A checkpoint without a manifest does not exist. Files are copied within the store, once each, and
removed with the last checkpoint that names them. The pool is a folder that Spark can read.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from headgate._locations import shell_command
from headgate.checkpoints.stores.place import (
    HELD,
    KEPT_IN,
    MANIFESTS,
    PINNED,
    PREFIX,
    Draft,
    Entry,
    Files,
)
from headgate.errors import Domain, HeadgateError, StoreError

if TYPE_CHECKING:
    from upath import UPath

_POOL = "pool"
# Whose folder it is until its manifest is written.
_WRITING = "being-written"
# Files that are brought together; between two such groups, a caller may give up.
_GROUP = 256
# Larger files are read in pieces.
_SMALL = 1 << 20
_PIECE = 1 << 22
# A hold that is not renewed, since its process died, ends after this time.
HELD_FOR = timedelta(seconds=60)
_RENEWED_AFTER_S = 20.0
# The beginnings of state files, which never change; a job asks for the same ones at every
# checkpoint.
_MOST_REMEMBERED = 4096
_remembered: OrderedDict[str, bytes] = OrderedDict()
_remembering = threading.Lock()


class ObjectFiles:
    """The files of a folder on a store, as they are when they are first listed."""

    def __init__(self, root: UPath) -> None:
        self._root = root
        self._base = f"{root.path.rstrip('/')}/"
        self._sizes: dict[str, int] | None = None
        self._tree: dict[str, set[str]] = {}
        # The first bytes of files that are asked for next, or all of them.
        self._heads: dict[str, bytes] = {}

    @property
    def root(self) -> UPath:
        return self._root

    def path(self, file: str) -> str:
        """Return the name of a file on the store."""
        return self._base + file

    def has(self, file: str) -> bool:
        return file in self._list()

    def size(self, file: str) -> int:
        size = self._list().get(file)
        if size is None:
            raise _missing(self._root / file)
        return size

    def read(self, file: str) -> bytes:
        head = self._heads.get(file)
        if head is not None and self._sizes is not None and self._sizes.get(file) == len(head):
            return head
        return read_object(self._root / file)

    def open(self, file: str) -> BinaryIO:
        size, head = self.size(file), self._heads.get(file, b"")
        if len(head) == size:
            return io.BytesIO(head)
        pieces = _Pieces(self._root.fs, self.path(file), size, head)
        return cast("BinaryIO", io.BufferedReader(pieces, _PIECE))

    def children(self, folder: str) -> Sequence[str]:
        self._list()
        return sorted(self._tree.get(folder, ()))

    def walk(self, folder: str) -> Sequence[str]:
        inside = f"{folder}/" if folder else ""
        return sorted(file for file in self._list() if file.startswith(inside))

    def prepare(self, files: Iterable[str], *, most: int | None = None) -> None:
        sizes = self._list()
        wanted = {
            file: min(sizes[file], sizes[file] if most is None else most)
            for file in files
            if file in sizes
        }
        heads = self._recall(wanted)
        missing = [file for file in wanted if file not in heads]
        answers = self._root.fs.cat_ranges(
            [self.path(file) for file in missing],
            [0] * len(missing),
            [wanted[file] for file in missing],
            on_error="return",
            max_concurrency=1,
        )
        for file, answer in zip(missing, answers, strict=True):
            # A file that cannot be read now is asked for again, and then has its error.
            if isinstance(answer, bytes):
                heads[file] = answer
        self._heads = heads
        if most is not None:
            self._remember({file: heads[file] for file in missing if file in heads})

    def download(self, files: Iterable[str], into: Path) -> None:
        """Copy files to this machine."""
        for group in _groups(files):
            self._root.fs.get(
                [self.path(file) for file in group], [str(into / file) for file in group]
            )

    def _recall(self, wanted: Mapping[str, int]) -> dict[str, bytes]:
        with _remembering:
            known = {file: _remembered.get(self.path(file)) for file in wanted}
            for file, head in known.items():
                if head is not None:
                    _remembered.move_to_end(self.path(file))
        heads = {
            file: head
            for file, head in known.items()
            if head is not None and len(head) == wanted[file]
        }
        return heads | {file: b"" for file, size in wanted.items() if size == 0}

    def _remember(self, heads: Mapping[str, bytes]) -> None:
        with _remembering:
            _remembered.update({self.path(file): head for file, head in heads.items()})
            while len(_remembered) > _MOST_REMEMBERED:
                _remembered.popitem(last=False)

    def _list(self) -> Mapping[str, int]:
        if self._sizes is None:
            found = list_objects(self._root)
            self._sizes = {name: int(info["size"]) for name, info in found.items()}
            for file in self._sizes:
                parts = file.split("/")
                for depth, part in enumerate(parts):
                    self._tree.setdefault("/".join(parts[:depth]), set()).add(part)
        return self._sizes


class _Pieces(io.RawIOBase):
    """Reads a large object in pieces, the first one from memory."""

    def __init__(self, fs: Any, path: str, size: int, head: bytes) -> None:
        self._fs, self._path, self._size, self._head = fs, path, size, head
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        end = min(self._at + len(buffer), self._size)
        if end <= self._at:
            return 0
        if self._at < len(self._head):
            data = self._head[self._at : end]
        else:
            data = self._fs.cat_file(self._path, start=self._at, end=end)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class ObjectDraft:
    """A checkpoint whose files are in place, and whose manifest is not written yet."""

    def __init__(self, folder: UPath, data: UPath) -> None:
        self._folder = folder
        self._data = data
        self._texts: dict[str, str] = {}
        self._source: Files | None = None

    @property
    def files(self) -> Files:
        # What is copied within the store is what it was there.
        if self._data != self._folder and self._source is not None:
            return self._source
        return ObjectFiles(self._data)

    def bring(
        self, source: Files, files: Iterable[str], *, known: Mapping[str, int] | None = None
    ) -> None:
        self._source = source
        target = ObjectFiles(self._data)
        there = known or {}
        # Files of one name and size are the same: a pool is of one run.
        new = (file for file in files if file not in there or there[file] != source.size(file))
        for group in _groups(new):
            if isinstance(source, ObjectFiles):
                source.root.fs.copy_all(
                    [(source.path(file), target.path(file), source.size(file)) for file in group]
                )
            else:
                self._data.fs.put(
                    [str(source.root / file) for file in group],
                    [target.path(file) for file in group],
                )

    def write(self, file: str, content: str) -> None:
        self._texts[file] = content

    def publish(self) -> None:
        """Write what was written: the manifest comes last."""
        last = {file: self._texts.pop(file) for file in MANIFESTS if file in self._texts}
        for texts in (self._texts, last):
            if texts:
                paths = {(self._folder / file).path: text for file, text in texts.items()}
                self._folder.fs.pipe({path: text.encode() for path, text in paths.items()})


class ObjectPlace:
    """A folder on a store."""

    def __init__(self, folder: UPath) -> None:
        self._folder = folder

    def files(self) -> Files:
        return ObjectFiles(self._find_pool() or self._folder)

    def list_names(self) -> list[str]:
        return sorted(self.list_entries())

    def list_entries(self) -> dict[str, Entry | None]:
        found: dict[str, dict[str, Any]] = {}
        for name, info in list_objects(self._folder, PREFIX).items():
            checkpoint, _, file = name.partition("/")
            found.setdefault(checkpoint, {})[file] = info
        entries = {name: _entry(files) for name, files in found.items()}
        return {name: entry for name, entry in entries.items() if entry is not None}

    def find_entry(self) -> Entry | None:
        if self._find_pool() is not None:
            return _entry(list_objects(self._folder))
        for name in MANIFESTS:
            with contextlib.suppress(FileNotFoundError):
                return _entry({name: self._folder.fs.info((self._folder / name).path)})
        return None

    def read_texts(self, files: Sequence[str]) -> list[str | Exception]:
        paths = [(self._folder / file).path for file in files]
        # The size is not asked for before: manifests are read in one piece.
        answers = self._folder.fs.cat_ranges(
            paths, [None] * len(paths), [None] * len(paths), on_error="return", max_concurrency=1
        )
        return [_text_of(answer) for answer in answers]

    @contextlib.contextmanager
    def publishing(
        self, *, linked: bool = True, shared: bool = False, sync: bool = False
    ) -> Iterator[Draft]:
        pool = self._find_pool() if shared else None
        draft = ObjectDraft(self._folder, pool or self._folder)
        try:
            self._check_free(empty=pool is None)
            if pool is None:
                self._claim()
            try:
                yield draft
                self._check_free()
                if pool is None:
                    self._remove_files([_WRITING])
                draft.publish()
            except BaseException:
                if pool is None:
                    # A crash leaves files without a manifest, too.
                    with contextlib.suppress(OSError, StoreError):
                        self.remove_tree()
                raise
        except OSError as error:
            raise HeadgateError(
                "CHECKPOINT_NOT_WRITTEN",
                f"cannot write {self._folder}: {error}",
                hint=shell_command(f"{self._folder.parent}/", "ls", "ls"),
                domain=Domain.EXTERNAL,
                retryable=True,
            ) from error

    def pin(self) -> bool:
        self._folder.fs.pipe_file((self._folder / PINNED).path, b"")
        if self.find_entry() is not None:
            return True
        self.unpin()
        return False

    def unpin(self) -> None:
        self._remove_files([PINNED])

    @contextlib.contextmanager
    def holding(self) -> Iterator[bool]:
        name = f"{HELD}-{secrets.token_hex(8)}"
        over = threading.Event()
        self._hold(name)

        def renew() -> None:
            while not over.wait(_RENEWED_AFTER_S):
                # What fails now is tried again before the hold ends.
                with contextlib.suppress(OSError, StoreError):
                    self._hold(name)

        renewing = threading.Thread(target=renew, name=f"hold {self._folder.name}", daemon=True)
        renewing.start()
        try:
            # Asked after the hold is there: a process that removes asks for holds after its first
            # step.
            yield self.find_entry() is not None
        finally:
            over.set()
            renewing.join()
            # What cannot be removed ends by itself.
            with contextlib.suppress(OSError, StoreError):
                self._remove_files([name])

    def is_held(self) -> bool:
        holds = list_objects(self._folder, f"{HELD}-")
        if not holds:
            return False
        # By the store's clock: those of hosts may differ.
        first = self._store_time() - HELD_FOR
        return any(info["LastModified"] > first for info in holds.values())

    def remove(self, *, unshared: Callable[[], Iterable[str]], check: Callable[[], None]) -> bool:
        entry = self.find_entry()
        if entry is None:
            return True
        if entry.pinned or self.is_held():
            return False
        shared = [ObjectFiles(self._find_pool() or self._folder).path(file) for file in unshared()]
        manifest = (self._folder / entry.manifest).path
        content = self._folder.fs.cat_file(manifest, max_concurrency=1)
        check()
        # From here on it is not listed.
        self._remove_files([entry.manifest])
        left = list_objects(self._folder)
        if PINNED in left or self.is_held():
            self._folder.fs.pipe_file(manifest, content)
            return False
        self._remove_files(left)
        # A checkpoint that another process has kept meanwhile may have these files.
        check()
        _remove_paths(self._folder.fs, shared)
        return True

    def remove_tree(self) -> None:
        left = list_objects(self._folder)
        self._remove_files([name for name in MANIFESTS if name in left])
        self._remove_files(left)
        self._folder.fs.abort_uploads(self._folder.path)

    def sweep(self, named: Callable[[], set[str] | None]) -> list[str]:
        self._folder.fs.abort_uploads(self._folder.path)
        pool = ObjectFiles(self._folder / _POOL)
        present = pool.walk("")
        wanted = named() if present else None
        if wanted is None:
            return []
        doomed = sorted(file for file in present if file not in wanted)
        _remove_paths(self._folder.fs, [pool.path(file) for file in doomed])
        return doomed

    def _find_pool(self) -> UPath | None:
        """Return the folder with the files of a kept checkpoint; None for other folders."""
        number = self._folder.name.removeprefix(PREFIX)
        is_kept = self._folder.name != number and number.isdigit()
        within = self._folder.parent
        return within / _POOL if is_kept and within.name == KEPT_IN else None

    def _check_free(self, *, empty: bool = False) -> None:
        # A pool has files of other checkpoints.
        if self.find_entry() is not None or (empty and self._folder.exists()):
            raise HeadgateError(
                "CHECKPOINT_EXISTS",
                f"cannot write {self._folder}: there is something already",
                hint="choose a folder that does not exist",
            )

    def _claim(self) -> None:
        """Keep other processes from writing to the folder, which is empty."""
        token = secrets.token_hex(16).encode()
        file = (self._folder / _WRITING).path
        if self._folder.fs.put_if(file, token, None) is not None:
            return
        with contextlib.suppress(FileNotFoundError):
            # The answer to an earlier try may have been lost.
            if self._folder.fs.get_marked(file)[0] == token:
                return
        raise HeadgateError(
            "CHECKPOINT_EXISTS",
            f"cannot write {self._folder}: another process is writing it",
            hint="choose a folder that does not exist",
        )

    def _hold(self, name: str) -> None:
        self._folder.fs.pipe_file((self._folder / name).path, b"")

    def _store_time(self) -> datetime:
        """Return the store's time, by a file of its own."""
        name = f"now-{secrets.token_hex(8)}"
        self._folder.fs.pipe_file((self._folder / name).path, b"")
        try:
            stored_at: datetime = list_objects(self._folder, name)[name]["LastModified"]
            return stored_at
        finally:
            self._remove_files([name])

    def _remove_files(self, files: Iterable[str]) -> None:
        _remove_paths(self._folder.fs, [(self._folder / file).path for file in files])


def list_objects(folder: UPath, prefix: str = "") -> dict[str, dict[str, Any]]:
    """Return the objects below a folder by their names relative to it.

    Args:
        prefix: Of these names.
    """
    base = folder.path.rstrip("/")
    found = folder.fs.list_all(base, prefix)
    names = {info["name"].removeprefix(f"{base}/"): info for info in found}
    # A folder that some tools create is an object whose name ends in a slash.
    return {name: info for name, info in names.items() if name and not name.endswith("/")}


def read_object(file: UPath) -> bytes:
    """Return the content of an object, in one request."""
    try:
        return bytes(file.fs.cat_file(file.path, max_concurrency=1))
    except FileNotFoundError as error:
        raise _missing(file) from error


def write_object(file: UPath, content: bytes) -> None:
    """Write or replace an object; readers see all of it or none."""
    file.fs.pipe_file(file.path, content)


def _missing(file: UPath) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(file))


def _entry(files: Mapping[str, Mapping[str, Any]]) -> Entry | None:
    for name in MANIFESTS:
        if name in files:
            info = files[name]
            return Entry(name, (info.get("ETag"), info["size"]), PINNED in files)
    return None


def _text_of(answer: bytes | Exception) -> str | Exception:
    if isinstance(answer, Exception):
        return answer
    try:
        return answer.decode()
    except ValueError as error:
        return error


def _remove_paths(fs: Any, paths: Sequence[str]) -> None:
    if paths:
        fs.rm(list(paths))


def _groups(files: Iterable[str]) -> Iterator[list[str]]:
    left = iter(files)
    while group := list(islice(left, _GROUP)):
        yield group
