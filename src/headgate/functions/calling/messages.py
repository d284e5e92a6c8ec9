"""How much fits into one message between the kernel and a worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

# An array of Java has at most 2 GiB, less some bytes of its own.
LARGEST = 2**31 - 1024


class MessageTooLarge(Exception):  # noqa: N818 - what it is
    """Values of one call that no message can hold."""

    code = "FUNCTION_MESSAGE_TOO_LARGE"


def array_of(values: Sequence[Any], kind: pa.DataType, what: str) -> pa.Array:
    """Return values as one array, or raise MessageTooLarge.

    Args:
        what: The values in the message: "the column 'name'".
    """
    try:
        array = pa.array(values, type=kind)
    except pa.ArrowCapacityError as error:
        raise _too_large(what) from error
    # Arrow cuts strings and bytes of more than 2 GiB into several arrays by itself.
    if isinstance(array, pa.ChunkedArray):
        raise _too_large(what)
    return array


def check_size(length: int, what: str) -> None:
    """Raise MessageTooLarge if a message cannot have so many bytes."""
    if length > LARGEST:
        raise MessageTooLarge(
            f"{what} needs {length:,} bytes, and one message holds at most {LARGEST:,}"
        )


def _too_large(what: str) -> MessageTooLarge:
    return MessageTooLarge(f"{what} needs more than the {LARGEST:,} bytes that one message holds")
