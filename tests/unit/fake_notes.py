"""The small files of an object store, in memory, with a clock of the store's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from fake_clock import FakeClock

from headgate.checkpoints.stores.notes import Note
from headgate.errors import Domain, StoreError


class FakeStore:
    """A store; `notes` gives its folders.

    Attributes:
        is_down: True if it does not answer.
        is_careless: True if it ignores conditions.
        before_put: Called before each write under a condition.
    """

    def __init__(self, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.files: dict[str, tuple[bytes, str, datetime]] = {}
        self.is_down = False
        self.is_careless = False
        self.before_put: Callable[[str], None] = lambda _: None
        self._writes = 0

    def notes(self, folder: str = "") -> FakeNotes:
        return FakeNotes(self, folder)

    def write(self, path: str, content: bytes) -> str:
        self._writes += 1
        mark = f'"{self._writes}"'
        self.files[path] = (content, mark, self.clock.now())
        return mark

    def check(self) -> None:
        if self.is_down:
            raise StoreError(
                "STORE_UNAVAILABLE", "cannot use S3", domain=Domain.EXTERNAL, retryable=True
            )


class FakeNotes:
    """The files in one folder of a store."""

    def __init__(self, store: FakeStore, folder: str) -> None:
        self._store = store
        self._folder = folder

    @property
    def folder(self) -> str:
        return f"s3a://shop/{self._folder}"

    def list_times(self, folder: str) -> Mapping[str, datetime]:
        self._store.check()
        inside = f"{self._path(folder)}/"
        return {
            path.removeprefix(inside): stored_at
            for path, (_, _, stored_at) in self._store.files.items()
            if path.startswith(inside)
        }

    def find(self, name: str) -> Note | None:
        self._store.check()
        found = self._store.files.get(self._path(name))
        return None if found is None else Note(found[0], found[1])

    def put(self, name: str, content: bytes, *, mark: str | None) -> str | None:
        self._store.check()
        self._store.before_put(self._path(name))
        found = self._store.files.get(self._path(name))
        present = None if found is None else found[1]
        if present != mark and not self._store.is_careless:
            return None
        return self._store.write(self._path(name), content)

    def write(self, name: str, content: bytes) -> None:
        self._store.check()
        self._store.write(self._path(name), content)

    def remove(self, names: Iterable[str]) -> None:
        self._store.check()
        for name in names:
            self._store.files.pop(self._path(name), None)

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}" if self._folder else name
