"""Bad order lines: every kind that a strict reader must refuse, in rotation."""

import re
from collections.abc import Callable


def damage(line: str, ordinal: int) -> str:
    """Return a good order line made bad; the kinds rotate by ordinal.

    A character that stands for a byte outside UTF-8 is escaped as in Python's `surrogateescape`.
    The result has no newline and is never blank.
    """
    return KINDS[ordinal % len(KINDS)](line)


def _break_json(line: str) -> str:
    return line[: len(line) * 2 // 3]


def _price_as_text(line: str) -> str:
    return re.sub(r'"price":([0-9.]+)', r'"price":"\1"', line)


def _name_as_number(line: str) -> str:
    return re.sub(r'"itemName":"[^"]*"', '"itemName":1234', line)


def _user_as_fraction(line: str) -> str:
    return re.sub(r'"userId":([0-9]+)', r'"userId":\1.5', line)


def _without_user(line: str) -> str:
    return re.sub(r'"userId":[0-9]+,', "", line)


def _null_item(line: str) -> str:
    return re.sub(r'"itemId":[0-9]+', '"itemId":null', line)


def _in_array(line: str) -> str:
    return f"[{line}]"


def _number(line: str) -> str:
    return str(len(line))


def _outside_utf8(line: str) -> str:
    return line.replace('"itemName":"', '"itemName":"\udcff\udcfe', 1)


KINDS: tuple[Callable[[str], str], ...] = (
    _break_json,
    _price_as_text,
    _name_as_number,
    _user_as_fraction,
    _without_user,
    _null_item,
    _in_array,
    _number,
    _outside_utf8,
)
