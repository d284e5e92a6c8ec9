"""The rows of the store's changelogs, `users` and `items`, by id.

Any id has a row, even beyond the store's last one: an order for an unknown item names it.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from headgate.producers._draws import Column, Draws, Ints
from headgate.producers._words import (
    ADJECTIVES,
    CATEGORIES,
    FIRST_NAMES,
    LAST_NAMES,
    MAIL_DOMAINS,
    MODIFIERS,
)

DAY_MS = 86_400_000
BASE_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z
OPENED_MS = BASE_MS - 365 * DAY_MS
FIRST_ORDER_MS = BASE_MS - 30 * DAY_MS

ABSENT = -1

_PRICE_ENDINGS = np.array([99, 99, 99, 95, 90, 49, 50, 0], dtype=np.int64)
_LOW = np.array([category.low for category in CATEGORIES], dtype=np.int64)
_SPAN = np.array([category.high - category.low for category in CATEGORIES], dtype=np.int64)


def _mailbox(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name.lower())
    return "".join(letter for letter in plain if "a" <= letter <= "z")


_FIRST_MAILBOXES = tuple(_mailbox(name) for name in FIRST_NAMES)
_LAST_MAILBOXES = tuple(_mailbox(name) for name in LAST_NAMES)


@dataclass(frozen=True, slots=True)
class Users:
    """Rows of the users changelog as columns; names and domains are indices of words."""

    ids: Ints
    first: Ints
    last: Ints
    domain: Ints
    created: Ints
    deleted: Ints
    merged: Ints
    parent: Ints

    def lines(self) -> list[str]:
        """Return a line of JSON for each row, with its newline."""
        columns = (self.ids, self.first, self.last, self.domain)
        times = (self.created, self.deleted, self.merged, self.parent)
        rows = zip(*(column.tolist() for column in (*columns, *times)), strict=True)
        return [
            f'{{"id":{i},"firstName":"{FIRST_NAMES[f]}","lastName":"{LAST_NAMES[n]}",'
            f'"emailAddress":"{_FIRST_MAILBOXES[f]}.{_LAST_MAILBOXES[n]}{i}@{MAIL_DOMAINS[d]}",'
            f'"createdAt":{created},"deletedAt":{deleted},"mergedAt":{merged},'
            f'"parentUserId":{parent}}}\n'
            for i, f, n, d, created, deleted, merged, parent in rows
        ]


def first_users(draws: Draws, ids: Ints, count: int) -> Users:
    """Return the first row of each user: one in 50 deleted since, one in 100 merged into another.

    Args:
        draws: The draws of the store's seed.
        ids: Which users, counted from 1.
        count: How many users the store has.
    """
    created = OPENED_MS + draws.below(Column.USER_CREATED, FIRST_ORDER_MS - OPENED_MS, ids)
    fate = draws.below(Column.USER_FATE, 100, ids)
    open_for = FIRST_ORDER_MS - created
    left = created + (draws.unit(Column.USER_FATE_TIME, ids) * open_for).astype(np.int64)
    merged = (fate == 2) & (count > 1)
    return Users(
        ids=ids,
        first=draws.below(Column.USER_FIRST_NAME, len(FIRST_NAMES), ids),
        last=draws.below(Column.USER_LAST_NAME, len(LAST_NAMES), ids),
        domain=draws.below(Column.USER_DOMAIN, len(MAIL_DOMAINS), ids),
        created=created,
        deleted=np.where(fate < 2, left, ABSENT),
        merged=np.where(merged, left, ABSENT),
        parent=np.where(merged, _other_user(draws, Column.USER_PARENT, ids, ids, count), ABSENT),
    )


def updated_users(draws: Draws, updates: Ints, count: int, at: Ints) -> Users:
    """Return a changed row for each update: a new last name, a new address, or a merge.

    Each row is the user's first row with one change, and differs from it.

    Args:
        draws: The draws of the store's seed.
        updates: Which updates, counted from 0 over all rounds.
        count: How many users the store has.
        at: When each update happens, in epoch milliseconds.
    """
    rows = first_users(draws, updated_ids(draws, updates, count), count)
    kind = draws.below(Column.UPDATE_KIND, 100, updates)
    value = Column.UPDATE_VALUE
    merges = (kind < 15) & (count > 1)
    renames = kind >= 50
    parent = _other_user(draws, value, updates, rows.ids, count)
    return replace(
        rows,
        last=np.where(renames, _other(draws, updates, rows.last, len(LAST_NAMES)), rows.last),
        domain=np.where(
            merges | renames,
            rows.domain,
            _other(draws, updates, rows.domain, len(MAIL_DOMAINS)),
        ),
        merged=np.where(merges, at, rows.merged),
        parent=np.where(merges, parent, rows.parent),
    )


def updated_ids(draws: Draws, updates: Ints, count: int) -> Ints:
    """Return the user of each update."""
    return 1 + draws.below(Column.UPDATE_USER, count, updates)


def _other(draws: Draws, updates: Ints, current: Ints, limit: int) -> Ints:
    return (current + 1 + draws.below(Column.UPDATE_VALUE, limit - 1, updates)) % limit


def _other_user(draws: Draws, column: Column, index: Ints, ids: Ints, count: int) -> Ints:
    if count < 2:
        return ids
    return 1 + (ids + draws.below(column, count - 1, index)) % count


@dataclass(frozen=True, slots=True)
class Item:
    """One row of the items changelog; the price in cents."""

    id: int
    created: int
    adjective: str
    category: str
    modifier: str
    name: str
    cents: int

    @property
    def price(self) -> str:
        """The price with two decimals."""
        return f"{self.cents // 100}.{self.cents % 100:02d}"

    def line(self) -> str:
        """Return the row as a line of JSON with its newline."""
        return (
            f'{{"id":{self.id},"createdAt":{self.created},"adjective":"{self.adjective}",'
            f'"category":"{self.category}","modifier":"{self.modifier}","name":"{self.name}",'
            f'"price":{self.price}}}\n'
        )

    def order_fields(self) -> str:
        """Return the fields that an order repeats of its item, as the inside of a JSON object."""
        return (
            f'"itemId":{self.id},"itemName":"{self.name}","itemCategory":"{self.category}",'
            f'"price":{self.price}'
        )


def items(draws: Draws, ids: Ints) -> Iterator[Item]:
    """Yield the row of each item; ids are counted from 1."""
    category = draws.below(Column.ITEM_CATEGORY, len(CATEGORIES), ids)
    # A cube keeps most prices low; only exactly rounded operations give the same result everywhere.
    unit = draws.unit(Column.ITEM_PRICE, ids)
    cents = _LOW[category] + (_SPAN[category] * (unit * unit * unit)).astype(np.int64)
    ending = _PRICE_ENDINGS[draws.below(Column.ITEM_CENTS, len(_PRICE_ENDINGS), ids)]
    columns = (
        ids,
        OPENED_MS + draws.below(Column.ITEM_CREATED, FIRST_ORDER_MS - OPENED_MS, ids),
        draws.below(Column.ITEM_ADJECTIVE, len(ADJECTIVES), ids),
        draws.below(Column.ITEM_MODIFIER, len(MODIFIERS), ids),
        category,
        draws.below(Column.ITEM_PRODUCT, 1 << 32, ids),
        cents // 100 * 100 + ending,
    )
    for i, created, a, m, c, p, price in zip(*(col.tolist() for col in columns), strict=True):
        products = CATEGORIES[c].products
        product = products[p % len(products)]
        name = f"{ADJECTIVES[a]} {MODIFIERS[m]} {product}"
        yield Item(i, created, ADJECTIVES[a], CATEGORIES[c].name, MODIFIERS[m], name, price)
