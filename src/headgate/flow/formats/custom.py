"""Formats that users write in Python."""

from __future__ import annotations

from typing import Any, Protocol, TypeGuard, runtime_checkable

# What has such methods and is not a format: names of formats, bytes, and classes.
_OTHERS = (str, bytes, type)


@runtime_checkable
class Decoder(Protocol):
    """A format that a source can read."""

    def decode(self, record: bytes) -> Any:
        """Return the rows of a record: a dataclass, a dict, or an iterable of these.

        It must depend on the bytes alone. If it raises, the record is a dead letter.
        """


@runtime_checkable
class Encoder(Protocol):
    """A format that an output can write."""

    def encode(self, row: Any, /) -> bytes:
        """Return the record of a row.

        The row is the dataclass or `dict` of the argument's annotation, or else an object with the
        columns as attributes. It must depend on the row alone. If it raises, the row is a dead
        letter.
        """


def is_decoder(value: object) -> TypeGuard[Decoder]:
    """Return True if a value is a format of a user that can be read."""
    return isinstance(value, Decoder) and not isinstance(value, _OTHERS)


def is_encoder(value: object) -> TypeGuard[Encoder]:
    """Return True if a value is a format of a user that can be written."""
    return isinstance(value, Encoder) and not isinstance(value, _OTHERS)
