"""A folder that hosts share, such as a mount of NFS, as a store: with the methods of `_s3.py`.

Nothing is written in place: a file appears whole, under a name of its own first and then by a link,
which fails if the name is taken, or by a rename, which replaces. Both are one step on the server.
As on S3, a folder is there while it has files.
"""

# Paths are text, as fsspec has them.
# ruff: noqa: PTH103, PTH105, PTH106, PTH108, PTH112, PTH116, PTH120, PTH123, PTH208, PTH121

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import io
import os
import shutil
import threading
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem
from upath import UPath
from upath.registry import register_implementation

from headgate.errors import Domain, StoreError

SCHEME = "shared"
# A file in the making, as the kernel's SharedFs names it, too.
_MAKING = (".", ".making")
_GUARD = ".guard"
# The lock of a file is one of the whole process.
_guarding = threading.Lock()
_REFUSALS = {errno.EACCES, errno.EPERM, errno.EROFS}
# Another process removed the folder in between, since it was empty.
_TRIES = 5


class SharedPath(UPath):
    """A place in a shared folder: `shared:///mnt/checkpoints`."""

    __slots__ = ()


class SharedFiles(LocalFileSystem):  # type: ignore[misc] # fsspec has no types
    """Raises StoreError if the file system fails, or refuses."""

    protocol = (SCHEME,)
    root_marker = "/"

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "auto_mkdir": True})

    @classmethod
    def _strip_protocol(cls, path: Any) -> str:
        text = os.fspath(path) if isinstance(path, os.PathLike) else str(path)
        text = text.removeprefix(f"{SCHEME}:")
        return f"/{text.strip('/')}"

    def unstrip_protocol(self, name: str) -> str:
        return f"{SCHEME}://{self._strip_protocol(name)}"

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        with _naming(path):
            facts = os.stat(path)
            if os.path.isdir(path) and not any(_walk(path)):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return _info(path, facts, is_folder=os.path.isdir(path))

    def exists(self, path: str, **_: Any) -> bool:
        try:
            self.info(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def isfile(self, path: str) -> bool:
        try:
            return bool(self.info(path)["type"] == "file")
        except (FileNotFoundError, NotADirectoryError):
            return False

    def isdir(self, path: str) -> bool:
        return self.exists(path) and not self.isfile(path)

    def ls(self, path: str, detail: bool = False, **_: Any) -> list[Any]:
        path = self._strip_protocol(path)
        if self.info(path)["type"] == "file":
            return [self.info(path)] if detail else [path]
        found = []
        with _naming(path):
            for name in sorted(os.listdir(path)):
                with contextlib.suppress(FileNotFoundError):
                    if not _is_making(name) and name != _GUARD:
                        found.append(self.info(f"{path}/{name}"))
        return found if detail else [info["name"] for info in found]

    def cat_file(self, path: str, start: Any = None, end: Any = None, **_: Any) -> bytes:
        path = self._strip_protocol(path)
        with _naming(path), open(path, "rb") as file:
            file.seek(start or 0)
            return file.read() if end is None else file.read(end - (start or 0))

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        path = self._strip_protocol(path)
        with self._made(path, value) as made:
            if mode != "create":
                os.replace(made, path)
            elif not _link(made, path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)

    def _open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        path = self._strip_protocol(path)
        if mode == "rb":
            with _naming(path):
                return open(path, "rb")
        if mode != "wb":
            raise ValueError(f"cannot open a file of a store with mode {mode!r}")
        return _Written(self, path)

    def put_if(self, path: str, content: bytes, mark: str | None) -> str | None:
        """Write a small file under a condition; return its mark, or None if that does not hold.

        Args:
            mark: Of the file that is replaced; None to write it only if there is none.
        """
        path = self._strip_protocol(path)
        with self._made(path, content) as made:
            written = _mark(content, os.stat(made))
            if mark is None:
                return written if _link(made, path) else None
            # What is compared must not change before it is replaced.
            with _guarding, _locked(os.path.dirname(path)):
                try:
                    if self.get_marked(path)[1] != mark:
                        return None
                except FileNotFoundError:
                    return None
                os.replace(made, path)
        return written

    def get_marked(self, path: str) -> tuple[bytes, str]:
        """Return the content of a small file, and its mark, which differs once it has changed."""
        path = self._strip_protocol(path)
        with _naming(path), open(path, "rb") as file:
            content = file.read()
            return content, _mark(content, os.fstat(file.fileno()))

    def list_all(self, folder: str, prefix: str = "") -> list[dict[str, Any]]:
        """Return the files below a folder, sorted by name; none if it does not exist.

        Args:
            folder: Its path, without a slash at the end.
            prefix: Of the names below it.
        """
        folder = self._strip_protocol(folder)
        found = []
        with _naming(folder):
            for path in sorted(_walk(folder)):
                if path.removeprefix(f"{folder}/").startswith(prefix):
                    with contextlib.suppress(FileNotFoundError):
                        found.append(_info(path, os.stat(path), is_folder=False))
        return found

    def copy_all(self, files: Sequence[tuple[str, str, int]]) -> None:
        """Give files further names, in place of copies: no file ever changes.

        Args:
            files: The path of each, the path of its copy, and its size.
        """
        for source, target, _ in files:
            with self._made(self._strip_protocol(target), None) as made:
                try:
                    os.link(self._strip_protocol(source), made)
                except OSError as error:
                    # Not every file system has links, and some have a limit for one file.
                    if error.errno not in (errno.EMLINK, errno.EXDEV, errno.EPERM):
                        raise
                    shutil.copyfile(self._strip_protocol(source), made)
                os.replace(made, self._strip_protocol(target))

    def put_file(self, lpath: str, rpath: str, **_: Any) -> None:
        target = self._strip_protocol(rpath)
        with self._made(target, None) as made:
            shutil.copyfile(lpath, made)
            os.replace(made, target)

    def abort_uploads(self, folder: str) -> int:
        """Remove what killed processes had not written whole, and folders without a file.

        No process may be writing there.

        Returns:
            The number of files.
        """
        folder = self._strip_protocol(folder)
        left = [*_walk(folder, making=True)]
        with _naming(folder):
            for path in left:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
            for inside, _, _ in os.walk(folder, topdown=False):
                # One that is not empty stays.
                with contextlib.suppress(OSError):
                    os.rmdir(inside)
        return len(left)

    def rm(self, path: Any, recursive: bool = False, **_: Any) -> None:
        """Remove files; nothing happens if one is gone."""
        paths = [path] if isinstance(path, str) else list(path)
        for each in map(self._strip_protocol, paths):
            with _naming(each):
                doomed = [each]
                if recursive and os.path.isdir(each):
                    doomed = [*_walk(each), *_walk(each, making=True)]
                for file in doomed:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(file)

    rm_file = rm
    _rm = rm

    @contextlib.contextmanager
    def _made(self, path: str, content: bytes | None) -> Iterator[str]:
        """Give the path of a new file beside another one, which is removed at the end.

        Args:
            content: None for a file that the block makes.
        """
        folder, name = os.path.split(path)
        made = f"{folder}/{_MAKING[0]}{name}.{uuid.uuid4().hex}{_MAKING[1]}"
        with _naming(path):
            if content is not None:
                _write(made, content)
            else:
                os.makedirs(folder, exist_ok=True)
            try:
                yield made
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(made)


class _Written(io.BytesIO):
    """A file that appears whole when it is closed."""

    def __init__(self, files: SharedFiles, path: str) -> None:
        super().__init__()
        self._files, self._path = files, path

    def close(self) -> None:
        if not self.closed:
            self._files.pipe_file(self._path, self.getvalue())
        super().close()


def _link(made: str, path: str) -> bool:
    """Give a file its name; return False if another one has it."""
    try:
        os.link(made, path)
    except FileExistsError:
        # NFS sends a request again whose answer was lost, and finds the link of the first.
        with contextlib.suppress(FileNotFoundError):
            return os.path.samefile(made, path)
        return False
    return True


def _write(path: str, content: bytes) -> None:
    for tried in range(_TRIES):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            with open(path, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            return
        except FileNotFoundError:
            if tried == _TRIES - 1:
                raise


def _walk(folder: str, *, making: bool = False) -> Iterator[str]:
    """Yield the files below a folder, or those in the making."""
    for inside, _, names in os.walk(folder):
        for name in names:
            if _is_making(name) == making and name != _GUARD:
                yield f"{inside}/{name}"


def _is_making(name: str) -> bool:
    return name.startswith(_MAKING[0]) and name.endswith(_MAKING[1])


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Keep other processes, on any host, from replacing a file of a folder in the block."""
    # Its own file stays: a lock on one that is removed keeps nobody away.
    handle = os.open(f"{folder}/{_GUARD}", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        # Over NFS, this is a lock of the server; a flock may be one of this host alone.
        fcntl.lockf(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _mark(content: bytes, facts: os.stat_result) -> str:
    """Return a mark: the number of the file tells two of the same content apart."""
    return f"{facts.st_ino}-{hashlib.sha256(content).hexdigest()}"


def _info(path: str, facts: os.stat_result, *, is_folder: bool) -> dict[str, Any]:
    return {
        "name": path,
        "type": "directory" if is_folder else "file",
        "size": 0 if is_folder else facts.st_size,
        "LastModified": datetime.fromtimestamp(facts.st_mtime, UTC),
        "mtime": facts.st_mtime,
        "ETag": f"{facts.st_ino}-{facts.st_mtime_ns}",
    }


@contextlib.contextmanager
def _naming(path: str) -> Iterator[None]:
    """Raise StoreError for an error of the file system; that a file is missing or there is none."""
    try:
        yield
    except (FileNotFoundError, FileExistsError, NotADirectoryError):
        raise
    except OSError as error:
        refused = error.errno in _REFUSALS
        raise StoreError(
            "STORE_REFUSED" if refused else "STORE_UNAVAILABLE",
            f"cannot use the shared folder: {error.strerror or error}: {path}",
            hint=f"check the mount and its permissions: ls -ld {os.path.dirname(path)}",
            domain=Domain.EXTERNAL,
            retryable=not refused,
        ) from error


def check_mounted(folder: str) -> None:
    """Refuse a shared folder that does not exist: where a mount is missing, it would be local.

    Raises:
        StoreError: STORE_UNAVAILABLE.
    """
    if not Path(folder).is_dir():
        raise StoreError(
            "STORE_UNAVAILABLE",
            f"cannot use {SCHEME}://{folder}: there is no such folder on this host",
            hint=f"mount it; for a new one: mkdir -p {folder}",
            domain=Domain.EXTERNAL,
            retryable=True,
        )


def register() -> None:
    """Make addresses that begin with `shared:` use this file system in this process."""
    fsspec.register_implementation(SCHEME, SharedFiles, clobber=True)
    register_implementation(SCHEME, SharedPath, clobber=True)
