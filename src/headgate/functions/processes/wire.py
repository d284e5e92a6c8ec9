"""Calls of a process and their replies as bytes: the worker's protocol, kind PROCESS.

The other end is `io.headgate.kernel.process.ProcessCalls`. Integers within a body are little
endian.
"""

from __future__ import annotations

import enum
import struct
import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from headgate.functions.calling.messages import check_size

NO_TIME = -(2**63)
_FIXED = struct.Struct("<qqqiiii")
_INT = struct.Struct("<i")
# A call of a process of two streams has two sections more.
_PARTS = 9
_NOTHING = memoryview(b"")


class What(enum.IntFlag):
    """What a change of timers is about."""

    EVENT = 0
    PROCESSING = 1
    EXPIRY = 2
    REMOVE = 16


@dataclass(frozen=True, slots=True)
class Request:
    """A call. Sections with Arrow batches are kept as bytes until they are needed.

    Attributes:
        now: The clock of the batch, in ms.
        phase: 0 for events and processing timers, 1 for timers of event time.
        events: Those of the left stream, if two streams are connected.
        sides: The stream of each event then: 0 for the left one, 1 for the right one.
        broadcast: The version of the broadcast's rows; empty without a broadcast.
    """

    now: int
    watermark: int
    batch: int
    phase: int
    keys: int
    key_batch: memoryview
    key_texts: memoryview
    records: memoryview
    events_per_key: list[int]
    events: memoryview
    times: list[int]
    timers_per_key: list[int]
    timer_kinds: list[int]
    timer_times: list[int]
    cleanups: memoryview
    sides: memoryview
    right_events: memoryview
    broadcast: bytes = b""

    def key_text(self, at: int) -> bytes:
        """Return the key at a place as state has it."""
        lengths = ints(self.key_texts[: 4 * self.keys])
        start = 4 * self.keys + sum(lengths[:at])
        return bytes(self.key_texts[start : start + lengths[at]])


@dataclass(frozen=True, slots=True)
class Fetch:
    """Pages that a call needs: of one list or map, by the places of their keys."""

    var: int
    keys: Sequence[int]
    pages: Sequence[int]

    def body(self) -> bytes:
        """Return the body of the message."""
        return pack_ints(self.keys) + pack_longs(self.pages)


@dataclass(slots=True)
class Reply:
    """The answer to a call.

    Attributes:
        rows: The number of emitted rows.
        errors: The events and timers that failed, by origin, with the text of each.
        sections: The parts of the body.
    """

    rows: int
    errors: list[tuple[int, str]]
    sections: list[bytes] = field(default_factory=list)

    def body(self) -> bytes:
        """Return the body of the message, or raise MessageTooLarge."""
        parts: list[bytes] = []
        check_size(sum(_INT.size + len(section) for section in self.sections), "its answer")
        for section in self.sections:
            parts.append(_INT.pack(len(section)))
            parts.append(section)
        return b"".join(parts)


def parse_request(body: bytes) -> Request:
    """Return the call that the kernel sent."""
    now, watermark, batch, phase, keys, _, timers = _FIXED.unpack_from(body)
    parts = list(sections(memoryview(body)[_FIXED.size :]))
    return Request(
        now,
        watermark if watermark > 0 else NO_TIME,
        batch,
        phase,
        keys,
        key_batch=parts[0],
        key_texts=parts[1],
        records=parts[2],
        events_per_key=ints(parts[3]),
        events=parts[4],
        times=longs(parts[5]),
        timers_per_key=ints(parts[6]),
        timer_kinds=list(parts[7][:timers]),
        timer_times=longs(parts[7][timers:]),
        cleanups=parts[8],
        sides=parts[9] if len(parts) > _PARTS + 1 else _NOTHING,
        right_events=parts[10] if len(parts) > _PARTS + 1 else _NOTHING,
        broadcast=bytes(parts[9]) if len(parts) == _PARTS + 1 else b"",
    )


def sections(body: memoryview) -> Iterable[memoryview]:
    """Yield the sections of a body."""
    at = 0
    while at < len(body):
        (length,) = _INT.unpack_from(body, at)
        at += _INT.size
        yield body[at : at + length]
        at += length


def ints(data: bytes | memoryview) -> list[int]:
    """Return integers of 32 bits."""
    return _numbers("i", data)


def longs(data: bytes | memoryview) -> list[int]:
    """Return integers of 64 bits."""
    return _numbers("q", data)


def pack_ints(values: Iterable[int]) -> bytes:
    """Return the bytes of integers of 32 bits."""
    return _packed("i", values)


def pack_longs(values: Iterable[int]) -> bytes:
    """Return the bytes of integers of 64 bits."""
    return _packed("q", values)


def read_batch(data: bytes | memoryview, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch of a section that is not empty."""
    return pa.ipc.read_record_batch(pa.py_buffer(data), schema)


def _numbers(kind: str, data: bytes | memoryview) -> list[int]:
    numbers = array(kind)
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()


def _packed(kind: str, values: Iterable[int]) -> bytes:
    numbers = array(kind, values)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()
