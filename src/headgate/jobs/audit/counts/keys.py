"""How often each key is in the input and in the outputs, by a hash of 64 bits. Pure."""

from __future__ import annotations

import json
from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.int64]

_JSON = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """The columns that tell records apart: paths into their JSON."""

    paths: tuple[tuple[str, ...], ...]

    def find(self, value: bytes | None) -> tuple[str, ...] | None:
        """Return a record's key, as text that is equal for equal keys; None where it has none.

        It has none if it is no JSON object, or any of the columns is missing or null.
        """
        try:
            row = _JSON.decode(str(value or b"", "utf-8"))
        except (ValueError, RecursionError):
            return None
        found = []
        for path in self.paths:
            at = row
            for part in path:
                at = at.get(part) if type(at) is dict else None
            if at is None:
                return None
            found.append(str(at) if type(at) is int else _text(at))
        return tuple(found)


def hash_of(key: tuple[str, ...]) -> int:
    """Return a key's hash; good for this process alone."""
    return hash(key)


def _text(value: Any) -> str:
    # A whole number is the same key whether a column's type writes it with a point or without.
    if type(value) is float and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


@dataclass(frozen=True, slots=True)
class KeyCount:
    """What was found of one partition: records, those of them that are lost, rows too many."""

    records: int
    lost: int
    doubled: int


@dataclass(frozen=True, slots=True)
class KeyFindings:
    """What a comparison of keys found.

    Attributes:
        partitions: By number. Of the records of one key, the last ones are the lost ones, and
            rows too many count for the partition of the first.
        unknown: Rows whose key the input does not have.
        ahead: Rows of earlier runs whose key it does not have: nothing tells where they were read.
        lost_keys: Hashes of some keys that are lost; likewise the others.
    """

    partitions: dict[int, KeyCount]
    unknown: int
    ahead: int
    lost_keys: frozenset[int]
    doubled_keys: frozenset[int]
    unknown_keys: frozenset[int]


class KeyCounts:
    """Collects the keys of records and of rows: 8 bytes each, and 4 more for a record."""

    def __init__(self) -> None:
        self._records = array("q")
        self._partitions = array("i")
        self._rows = array("q")
        self._earlier = array("q")

    def expect(self, key: int, partition: int) -> None:
        """Take a record of the input by its key's hash."""
        self._records.append(key)
        self._partitions.append(partition)

    def take(self, key: int, *, is_earlier: bool = False) -> None:
        """Take a row of an output by its key's hash.

        Args:
            is_earlier: Of a run before the audited one, which may have read further.
        """
        (self._earlier if is_earlier else self._rows).append(key)

    def compare(self, *, examples: int) -> KeyFindings:
        """Return what is lost and what is there too often.

        Args:
            examples: How many keys of each kind are named at most.
        """
        records = np.frombuffer(self._records, np.int64)
        order = np.argsort(records, kind="stable")
        partitions = np.frombuffer(self._partitions, np.int32)[order]
        keys, first, wanted = np.unique(records[order], return_index=True, return_counts=True)
        written, times = np.unique(np.frombuffer(self._rows, np.int64), return_counts=True)
        earlier, times_earlier = np.unique(
            np.frombuffer(self._earlier, np.int64), return_counts=True
        )
        found = _look_up(keys, written, times) + _look_up(keys, earlier, times_earlier)
        doubled = np.maximum(found - wanted, 0)
        # The n-th record of a key is lost if fewer than n rows have the key.
        rank = np.arange(records.size) - np.repeat(first, wanted)
        is_lost = rank >= np.repeat(found, wanted)
        is_unknown = _look_up(written, keys, wanted) == 0
        return KeyFindings(
            {
                int(number): KeyCount(
                    int(np.count_nonzero(partitions == number)),
                    int(np.count_nonzero(is_lost & (partitions == number))),
                    int(doubled[partitions[first] == number].sum()),
                )
                for number in np.unique(partitions)
            },
            int(times[is_unknown].sum()),
            int(times_earlier[_look_up(earlier, keys, wanted) == 0].sum()),
            _some(keys[found < wanted], examples),
            _some(keys[found > wanted], examples),
            _some(written[is_unknown], examples),
        )


def _look_up(keys: Hashes, known: Hashes, counts: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return the count of each key, 0 of one that is not known; `known` is sorted."""
    if not known.size:
        return np.zeros(keys.size, np.intp)
    places = np.minimum(np.searchsorted(known, keys), known.size - 1)
    return np.where(known[places] == keys, counts[places], 0)


def _some(keys: Hashes, limit: int) -> frozenset[int]:
    return frozenset(int(key) for key in keys[:limit])
