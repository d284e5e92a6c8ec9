"""Records of CSV from texts and back, in plain Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headgate.flow.formats.csv import Csv


class BadCsvError(ValueError):
    """A text that is not one record of CSV; the message has the reason."""


def join_fields(form: Csv, values: Sequence[str | None]) -> str:
    """Return a record of values, of which None is null."""
    alone = len(values) == 1
    return form.delimiter.join(_written(form, value, alone=alone) for value in values)


def split_fields(form: Csv, record: str) -> list[str | None]:
    """Return the values of a record, of which None is null.

    Raises:
        BadCsvError: The text is not one record.
    """
    return list(_fields(form, record.removesuffix("\n").removesuffix("\r")))


def _written(form: Csv, value: str | None, *, alone: bool) -> str:
    if value is None:
        return form.nulls
    special = {form.delimiter, form.quote, "\n", "\r"}
    plain = value == value.strip(" \t") and special.isdisjoint(value)
    if plain and value != form.nulls and not (alone and not value):
        return value
    return form.quote + value.replace(form.quote, 2 * form.quote) + form.quote


def _fields(form: Csv, record: str) -> Iterator[str | None]:
    at, number = 0, 1
    while True:
        if record.startswith(form.quote, at):
            value, at = _quoted(form, record, at + 1, number)
            yield value
        else:
            end = record.find(form.delimiter, at)
            end = len(record) if end < 0 else end
            value, at = record[at:end], end
            if form.quote in value:
                raise BadCsvError(f"field {number}: a quote behind its beginning")
            if "\n" in value or "\r" in value:
                raise BadCsvError(f"field {number}: an end of a line outside of quotes")
            yield None if value == form.nulls else value
        if at == len(record):
            return
        if record[at] != form.delimiter:
            raise BadCsvError(f"field {number}: text behind its closing quote")
        at, number = at + 1, number + 1


def _quoted(form: Csv, record: str, at: int, number: int) -> tuple[str, int]:
    parts: list[str] = []
    while True:
        end = record.find(form.quote, at)
        if end < 0:
            raise BadCsvError(f"field {number}: its quote is not closed")
        parts.append(record[at:end])
        at = end + 1
        if not record.startswith(form.quote, at):
            return form.quote.join(parts), at
        at += 1
