"""The store's orders: the line items of invoices, by their position in the round."""

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headgate.producers._catalogue import FIRST_ORDER_MS, items
from headgate.producers._damage import damage
from headgate.producers._draws import Column, Draws, Ints

if TYPE_CHECKING:
    from headgate.producers.store import StoreShape

# Orders come in groups of 20 line items that form 9 invoices of 1 to 5 line items each, in one of a
# few arrangements. So the invoice of any line is known without counting the lines before it.
_GROUP_LINES = 20
_GROUP_INVOICES = 9
_INVOICE_SIZES = (
    (1, 1, 1, 1, 2, 2, 3, 4, 5),
    (1, 1, 1, 2, 2, 2, 3, 3, 5),
    (1, 1, 1, 1, 2, 3, 3, 4, 4),
    (1, 1, 2, 2, 2, 2, 3, 3, 4),
)
_ARRANGEMENTS = 64

INVOICE_EVERY_MS = 1000
_JITTER_MS = 3000
_PAID_AFTER_MS = (5_000, 1_200_000)
_UNKNOWN_IDS = 1000


@dataclass(frozen=True, slots=True)
class OrderBook:
    """The orders of one round."""

    shape: "StoreShape"

    @property
    def draws(self) -> Draws:
        """The draws of the store's seed."""
        return Draws(self.shape.seed)

    @property
    def start_ms(self) -> int:
        """The time of the round's first invoice: after the last one of the round before."""
        return FIRST_ORDER_MS + self.shape.round * self._invoices() * INVOICE_EVERY_MS

    def lines(self, first: int, last: int) -> tuple[list[str], int]:
        """Return the order lines from first up to last of the round, and the number of bad ones.

        Lines have their newline, and may hold escaped bytes: encode with `surrogateescape`.
        """
        line = np.arange(first, last, dtype=np.int64)
        invoice, number = self._invoice_of(line)
        per_round = self._invoices()
        invoice += self.shape.round * per_round
        created = FIRST_ORDER_MS + invoice * INVOICE_EVERY_MS
        created += self.draws.below(Column.ORDER_JITTER, _JITTER_MS, invoice)
        # Invoices overtake each other a little, but stay in their round.
        np.minimum(created, self.start_ms + per_round * INVOICE_EVERY_MS - 1, out=created)
        soonest, latest = _PAID_AFTER_MS
        paid = created + soonest
        paid += self.draws.below(Column.ORDER_PAID, latest - soonest, invoice)
        user, item = self._whom_and_what(first, last, invoice)
        different, which = np.unique(item, return_inverse=True)
        fields = [row.order_fields() for row in items(self.draws, different)]
        columns = (invoice + 1, number, user, which, created, paid)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        lines = [
            f'{{"invoiceId":{i},"lineItemId":{n},"userId":{u},{fields[w]},'
            f'"createdAt":{c},"paidAt":{p}}}\n'
            for i, n, u, w, c, p in rows
        ]
        return lines, self._spoil(lines, first, last)

    def _invoices(self) -> int:
        if self.shape.orders == 0:
            return 0
        invoice, _ = self._invoice_of(np.array([self.shape.orders - 1], dtype=np.int64))
        return int(invoice[0]) + 1

    def _invoice_of(self, line: Ints) -> tuple[Ints, Ints]:
        group, place = np.divmod(line, _GROUP_LINES)
        # Rounds share their arrangements, so that all have the same number of invoices.
        arrangement = self.draws.below(Column.INVOICE_SHAPE, _ARRANGEMENTS, group)
        invoices, numbers = _arrangements()
        invoice = group * _GROUP_INVOICES + invoices[arrangement, place]
        return invoice, numbers[arrangement, place]

    def _whom_and_what(self, first: int, last: int, invoice: Ints) -> tuple[Ints, Ints]:
        start = self.shape.round * self.shape.orders
        line = np.arange(start + first, start + last, dtype=np.int64)
        # Low numbers are drawn more often: old customers and old favourites.
        whom = self.draws.unit(Column.ORDER_USER, invoice)
        what = self.draws.unit(Column.ORDER_ITEM, line)
        user = 1 + (whom * np.sqrt(whom) * self.shape.users).astype(np.int64)
        item = 1 + (what * np.sqrt(what) * self.shape.items).astype(np.int64)
        places, ordinals = self.draws.picks(
            Column.ORDER_UNKNOWN, self.shape.unknown, start + first, start + last
        )
        beyond = 1 + self.draws.below(Column.ORDER_UNKNOWN_ID, _UNKNOWN_IDS, ordinals)
        places -= start + first
        of_user = ordinals % 2 == 0
        user[places[of_user]] = self.shape.users + beyond[of_user]
        item[places[~of_user]] = self.shape.items + beyond[~of_user]
        return user, item

    def _spoil(self, lines: list[str], first: int, last: int) -> int:
        start = self.shape.round * self.shape.orders
        places, ordinals = self.draws.picks(
            Column.ORDER_BAD, self.shape.bad, start + first, start + last
        )
        places -= start + first
        for place, ordinal in zip(places.tolist(), ordinals.tolist(), strict=True):
            lines[place] = damage(lines[place].removesuffix("\n"), ordinal) + "\n"
        return len(places)


@functools.cache
def _arrangements() -> tuple[Ints, Ints]:
    """Return invoice in the group and number in the invoice, by arrangement and place."""
    draws = Draws(0)
    invoices = np.empty((_ARRANGEMENTS, _GROUP_LINES), dtype=np.int64)
    numbers = np.empty((_ARRANGEMENTS, _GROUP_LINES), dtype=np.int64)
    for arrangement in range(_ARRANGEMENTS):
        sizes = np.array(_INVOICE_SIZES[arrangement % len(_INVOICE_SIZES)], dtype=np.int64)
        places = np.arange(len(sizes), dtype=np.int64) + arrangement * len(sizes)
        shuffled = sizes[np.argsort(draws.unit(Column.INVOICE_SHAPE, places), kind="stable")]
        invoices[arrangement] = np.repeat(np.arange(len(sizes)), shuffled)
        numbers[arrangement] = np.concatenate([np.arange(1, size + 1) for size in shuffled])
    return invoices, numbers
