"""What is in the store's topics on any log: whether each order came out where it belongs."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from store_job import OUTPUTS

Orders: TypeAlias = npt.NDArray[np.int64]
"""Orders by number, sorted: the invoice and the line item in one."""

_ORDER = re.compile(rb'\{"invoiceId":(\d+),"lineItemId":(\d+),')
_REFERRED = re.compile(rb'.*?"userId":(\d+),"itemId":(\d+),')
_LINE_ITEMS = 10  # an invoice has fewer


class Reader(Protocol):
    """Reads topics of a log from a place to their end; places are the reader's own."""

    def find_ends(self, topics: Sequence[str]) -> Any:
        """Return where topics end now."""

    def beginning(self, topic: str) -> Any:
        """Return where a topic begins."""

    def read(self, since: Any) -> Iterator[tuple[str, bytes]]:
        """Yield topic and value of all records that a reader finds up to the end."""


def read_reference(reader: Reader, *, users: int, items: int) -> dict[str, Orders]:
    """Return which orders belong to which output, out of the orders themselves."""
    belong = {output: array("q") for output in OUTPUTS}
    for _, value in reader.read(reader.beginning("orders")):
        order, rest = _number(value)
        referred = _REFERRED.match(value, rest)
        if referred is None:
            raise RuntimeError(f"this is no order: {value!r}")
        if int(referred[1]) > users:
            belong["missing-users"].append(order)
        elif int(referred[2]) > items:
            belong["missing-items"].append(order)
        else:
            belong["enriched-orders"].append(order)
    return {output: _sorted(orders) for output, orders in belong.items()}


def check_outputs(
    reader: Reader, since: Any, reference: Mapping[str, Orders], *, exactly_once: bool
) -> dict[str, int]:
    """Count the rows that a reader finds in each output, and refuse wrong ones.

    Args:
        since: Where the outputs ended before the run.
        exactly_once: Whether an order may not be there twice.

    Raises:
        RuntimeError: An order is missing, is where it does not belong, or is there twice.
    """
    found = {output: array("q") for output in OUTPUTS}
    for topic, value in reader.read(since):
        found[topic].append(_number(value)[0])
    for output, wanted in reference.items():
        orders = _sorted(found[output])
        distinct = np.unique(orders)
        if not np.array_equal(distinct, wanted) or (exactly_once and len(orders) > len(distinct)):
            missing = len(np.setdiff1d(wanted, distinct))
            foreign = len(np.setdiff1d(distinct, wanted))
            raise RuntimeError(
                f"{output} has {len(orders):,} rows and should have {len(wanted):,}: {missing:,} "
                f"are missing, {foreign:,} are foreign, {len(orders) - len(distinct):,} are twice"
            )
    return {output: len(orders) for output, orders in found.items()}


def _number(value: bytes) -> tuple[int, int]:
    """Return the number of the order a record is of, and where in the record its rest begins."""
    found = _ORDER.match(value)
    if found is None:
        raise RuntimeError(f"this is no order: {value!r}")
    return int(found[1]) * _LINE_ITEMS + int(found[2]), found.end() - 1


def _sorted(orders: array[int]) -> Orders:
    return np.sort(np.frombuffer(orders, dtype=np.int64)) if orders else np.empty(0, np.int64)
