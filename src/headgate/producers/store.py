"""The data of a generated store: users and items that change, and orders that refer to them.

The data is a pure function of the shape: the same arguments give the same bytes, on any machine and
in any release.
"""

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headgate.errors import HeadgateError
from headgate.producers._catalogue import first_users, items, updated_ids, updated_users
from headgate.producers._chunks import check_count, check_share, chunk_ranges, split_lines
from headgate.producers._draws import Column, Draws, Ints
from headgate.producers._orders import OrderBook

_USER_OR_ITEM_KEY = re.compile(rb'\{"id":(-?[0-9]+)[,}]')
_ORDER_KEY = re.compile(rb'\{"invoiceId":([0-9]+),')
_TOMBSTONE_END = b',"$deleted":true}'


class StoreTopic(enum.StrEnum):
    """The store's topics."""

    USERS = "users"
    ITEMS = "items"
    ORDERS = "orders"


@dataclass(frozen=True, slots=True)
class StoreShape:
    """The amount and kind of data.

    Round 0 is every user and item, `updates` changes of users, and `orders` orders. A later round
    is `updates` further changes and `orders` further orders, whose invoices and times continue
    after the previous round with the same arguments.

    Attributes:
        users: The number of users, with ids from 1.
        items: The number of items, with ids from 1.
        orders: The number of order lines of the round.
        unknown: The share of orders whose user (half of them) or item (half) does not exist.
        bad: The share of order lines that are not orders: broken JSON, wrong types, missing fields,
            nulls, arrays, numbers and bytes that are not UTF-8, in rotation.
        seed: Another seed gives another store.
        updates: The number of changes of users in the round.
        round: The number of the round, from 0.
        deletes: The share of the updates that delete the user.
    """

    users: int
    items: int
    orders: int
    unknown: float = 0.01
    bad: float = 0.001
    seed: int = 7
    updates: int = 0
    round: int = 0
    deletes: float = 0.0

    def __post_init__(self) -> None:
        for name in ("users", "items", "orders", "updates", "round"):
            check_count(name, getattr(self, name), _bad_shape)
        for name in ("unknown", "bad", "deletes"):
            check_share(name, getattr(self, name), _bad_shape)
        if self.orders and not self.items:
            raise _bad_shape("orders need at least one item", "--items 1")
        if (self.orders or self.updates) and not self.users:
            raise _bad_shape("orders and updates need at least one user", "--users 1")

    def count(self, topic: StoreTopic) -> int:
        """Return the number of records of the round for a topic."""
        first = self.round == 0
        match topic:
            case StoreTopic.USERS:
                return (self.users if first else 0) + self.updates
            case StoreTopic.ITEMS:
                return self.items if first else 0
            case StoreTopic.ORDERS:
                return self.orders

    @property
    def records(self) -> int:
        """The number of records of the round."""
        return sum(self.count(topic) for topic in StoreTopic)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some records of one topic.

    Attributes:
        topic: Their topic.
        lines: The records, each with its newline.
        records: The number of records, including bad ones.
        bad: The number of bad records.
    """

    topic: StoreTopic
    lines: bytes
    records: int
    bad: int = 0


def generate(shape: StoreShape) -> Iterator[Chunk]:
    """Yield the round's data in chunks of up to 20,000 records: users, items, updates, orders.

    Updates follow the first rows in the users topic. The changelogs come before the orders that
    refer to them.
    """
    if shape.round == 0:
        yield from _users(shape)
        yield from _items(shape)
    yield from _updates(shape)
    yield from _orders(shape)


def key_values(topic: StoreTopic, lines: bytes) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Yield the records as key and value, for a log with keys.

    The key of a user or an item is its id, that of an order its invoice; a bad order may have none.
    The value of a deletion is None.
    """
    pattern = _ORDER_KEY if topic is StoreTopic.ORDERS else _USER_OR_ITEM_KEY
    for line in split_lines(lines):
        match = pattern.match(line)
        key = match[1] if match else None
        yield key, None if line.endswith(_TOMBSTONE_END) else line


def _users(shape: StoreShape) -> Iterator[Chunk]:
    draws = Draws(shape.seed)
    for first, last in chunk_ranges(shape.users):
        rows = first_users(draws, _ints(first + 1, last + 1), shape.users)
        yield Chunk(StoreTopic.USERS, "".join(rows.lines()).encode(), last - first)


def _items(shape: StoreShape) -> Iterator[Chunk]:
    draws = Draws(shape.seed)
    for first, last in chunk_ranges(shape.items):
        rows = items(draws, _ints(first + 1, last + 1))
        text = "".join(item.line() for item in rows)
        yield Chunk(StoreTopic.ITEMS, text.encode(), last - first)


def _updates(shape: StoreShape) -> Iterator[Chunk]:
    draws = Draws(shape.seed)
    start = shape.round * shape.updates
    at = OrderBook(shape).start_ms
    for first, last in chunk_ranges(shape.updates):
        updates = _ints(start + first, start + last)
        rows = updated_users(draws, updates, shape.users, _ints(at + first, at + last))
        lines = rows.lines()
        places, _ = draws.picks(Column.UPDATE_DELETE, shape.deletes, start + first, start + last)
        ids = updated_ids(draws, places, shape.users)
        for place, user in zip(places.tolist(), ids.tolist(), strict=True):
            lines[place - start - first] = f'{{"id":{user},"$deleted":true}}\n'
        yield Chunk(StoreTopic.USERS, "".join(lines).encode(), last - first)


def _orders(shape: StoreShape) -> Iterator[Chunk]:
    book = OrderBook(shape)
    for first, last in chunk_ranges(shape.orders):
        lines, bad = book.lines(first, last)
        content = "".join(lines).encode(errors="surrogateescape")
        yield Chunk(StoreTopic.ORDERS, content, last - first, bad)


def _ints(first: int, last: int) -> Ints:
    return np.arange(first, last, dtype=np.int64)


def _bad_shape(problem: str, hint: str) -> HeadgateError:
    return HeadgateError("BAD_STORE_SHAPE", f"cannot produce store data: {problem}", hint=hint)
