"""CSV as a format: one record for each row."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from headgate.errors import HeadgateError

# Numbers, dates and base64 have none of these, so only texts are ever in quotes.
_SPECIAL = re.compile(r"[!#$%&'()*,;<>?@\[\\\]^`{|}~\"\t\x01-\x08\x0b\x0c\x0e-\x1f]")
_VALUE = re.compile(r"[+-]?[0-9].*|true|false|NaN|-?Infinity")


@dataclass(frozen=True, slots=True)
class Csv:
    """The values of a row with a delimiter between them.

    Attributes:
        delimiter: The character between two values.
        quote: The character around a text that contains a delimiter, a quote or a line break; a
            quote in it is written twice.
        nulls: The text that means null. In quotes it is a text.
        columns: The names of the fields, in the order of records; by default the columns of the
            schema. A source passes over fields that its schema does not name.
    """

    delimiter: str = ","
    quote: str = '"'
    nulls: str = ""
    columns: tuple[str, ...] = ()

    tag: ClassVar[str] = "csv"
    is_binary: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, char in (("delimiter", self.delimiter), ("quote", self.quote)):
            if not _SPECIAL.fullmatch(char):
                raise _bad(
                    f"{name} must be a tab or an ASCII character that no number, date or base64 "
                    f"text contains, got {char!r}",
                    "use a comma, a semicolon, a pipe or a tab",
                )
        if self.delimiter == self.quote:
            raise _bad(
                f"delimiter and quote must differ, and both are {self.quote!r}",
                "use Csv(delimiter=',', quote='\"')",
            )
        if set(self.nulls) & {self.delimiter, self.quote, "\n", "\r"} or _VALUE.fullmatch(
            self.nulls
        ):
            raise _bad(
                "nulls must be a text without delimiters, quotes and line breaks that is not a "
                f"number, a date or a boolean, got {self.nulls!r}",
                "use nulls='' or nulls='NULL'",
            )
        columns = self.columns
        object.__setattr__(self, "columns", tuple(columns))
        if isinstance(columns, str) or len({name.lower() for name in columns}) < len(columns):
            raise _bad(
                f"columns must be a list of different names, got {columns!r}",
                "name each field once: columns=['id', 'name']",
            )

    def describe(self) -> str:
        """Return the format as `explain` shows it."""
        return "CSV" if self.delimiter == "," else f"CSV with {self.delimiter!r}"


def _bad(problem: str, hint: str) -> HeadgateError:
    return HeadgateError("BAD_FORMAT", f"cannot use CSV: {problem}", hint=hint)
