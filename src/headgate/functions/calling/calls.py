"""One call of a function with a batch of rows."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from headgate.functions.calling.results import BadResult, row_writer
from headgate.functions.calling.rows import row_reader
from headgate.functions.stored import Callback

# The column that ties a row of a table to the row it is made of.
ORIGIN = "__headgate"
_LONGEST = 900
# What differs between two processes.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class RowError:
    """A row of the batch on which the function failed.

    Attributes:
        attempts: How often an async function was called; 0 for the others.
    """

    row: int
    text: str
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Results:
    """What a call returned.

    Attributes:
        rows: The number of results.
        origins: The row of the batch that each result comes from; None if each row has one
            result.
        batch: The results; None for a filter.
    """

    rows: int
    origins: Sequence[int] | None
    batch: pa.RecordBatch | None
    errors: tuple[RowError, ...] = ()


class FunctionFailed(Exception):  # noqa: N818 - what happened
    """A function that failed on a row, or returned what it must not."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


Call = Callable[[pa.RecordBatch], Results]


def get_call(
    kind: str,
    callback: Callback,
    *,
    name: str,
    given: pa.Schema,
    returned: pa.Schema | None,
    dead_letters: bool,
) -> Call:
    """Return how a function of a kind is called.

    Args:
        name: The function in messages: "map 'clean'".
        returned: The columns of the results; None for a filter.
        dead_letters: True if rows that fail are returned as errors; otherwise they raise
            FunctionFailed.
    """
    if kind == "MAP_BATCHES":
        assert returned is not None
        return lambda batch: _map_batches(callback.function, batch, returned, name)
    caller = _Caller(callback, name, given, returned, dead_letters=dead_letters)
    return {"MAP": caller.map, "FLAT_MAP": caller.flat_map, "FILTER": caller.filter}[kind]


def twice(call: Call, name: str) -> Call:
    """Return a call that is made twice, and raises FunctionFailed if the results differ."""

    def checked(batch: pa.RecordBatch) -> Results:
        first, second = call(batch), call(batch)
        ours, theirs = _rows_of(first), _rows_of(second)
        if ours == theirs:
            return first
        place = next(
            (i for i, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]),
            min(len(ours), len(theirs)),
        )
        shown = [rows[place] if place < len(rows) else "no row" for rows in (ours, theirs)]
        raise FunctionFailed(
            "FUNCTION_NOT_DETERMINISTIC",
            f"{name} gave other results when it was called again: {shown[0]:.300}, then "
            f"{shown[1]:.300}",
        )

    return checked


def _rows_of(results: Results) -> list[str]:
    """Return the results as text, each with the row it comes from."""
    origins = range(results.rows) if results.origins is None else results.origins
    values = [""] * results.rows if results.batch is None else results.batch.to_pylist()
    rows = [f"{value!r} of row {origin}" for origin, value in zip(origins, values, strict=True)]
    return [*rows, *(f"{error.text} on row {error.row}" for error in results.errors)]


class _Caller:
    """Calls a function row by row."""

    def __init__(
        self,
        callback: Callback,
        name: str,
        given: pa.Schema,
        returned: pa.Schema | None,
        *,
        dead_letters: bool,
    ) -> None:
        self._function = callback.function
        self._name = name
        self._read = row_reader(given, callback.argument)
        self._write = None if returned is None else row_writer(returned)
        self._dead_letters = dead_letters

    def map(self, batch: pa.RecordBatch) -> Results:
        results, origins, errors = self._call(batch)
        return self._results(results, origins if errors else None, errors)

    def filter(self, batch: pa.RecordBatch) -> Results:
        answers, origins, errors = self._call(batch)
        kept = [origin for origin, answer in zip(origins, answers, strict=True) if answer]
        return Results(len(kept), kept, None, tuple(errors))

    def flat_map(self, batch: pa.RecordBatch) -> Results:
        lists, origins, errors = self._call(batch, list)
        results = [result for made in lists for result in made]
        spread = [
            origin for origin, made in zip(origins, lists, strict=True) for _ in range(len(made))
        ]
        return self._results(results, spread, errors)

    def _call(
        self, batch: pa.RecordBatch, take: Callable[[Any], Any] | None = None
    ) -> tuple[list[Any], Sequence[int], list[RowError]]:
        """Return the answers, the row of each, and the rows that failed.

        Args:
            take: Applied to each answer, inside the call.
        """
        function = self._function
        if take is not None:
            inner = function
            function = lambda row: take(inner(row))  # noqa: E731 - shorter than its definition
        rows = self._read(batch)
        answers: list[Any] = []
        errors: list[RowError] = []
        append = answers.append
        left = iter(rows)
        while True:
            try:
                for row in left:
                    append(function(row))
            except Exception as error:
                place = len(answers) + len(errors)
                text = error_text(error)
                if not self._dead_letters:
                    raise FunctionFailed(
                        "FUNCTION_FAILED",
                        f"{self._name} failed on {shown_row(rows[place])}: {text}",
                    ) from error
                errors.append(RowError(place, text))
            else:
                break
        failed = {error.row for error in errors}
        origins = range(len(rows))
        return answers, [row for row in origins if row not in failed] if failed else origins, errors

    def _results(
        self, results: list[Any], origins: Sequence[int] | None, errors: list[RowError]
    ) -> Results:
        assert self._write is not None
        try:
            return Results(len(results), origins, self._write(results), tuple(errors))
        except BadResult as error:
            if not self._dead_letters:
                raise FunctionFailed(
                    "FUNCTION_BAD_RESULT", f"{self._name} returned a wrong row: {error}"
                ) from error
        return self._one_by_one(results, origins, errors)

    def _one_by_one(
        self, results: list[Any], origins: Sequence[int] | None, errors: list[RowError]
    ) -> Results:
        """Separate the rows with a wrong result; a row with several gives none of them."""
        assert self._write is not None
        places = list(range(len(results))) if origins is None else origins
        wrong: dict[int, str] = {}
        for place, result in zip(places, results, strict=True):
            try:
                self._write([result])
            except BadResult as error:
                wrong.setdefault(place, f"FUNCTION_BAD_RESULT: {error}")
        good = [i for i, place in enumerate(places) if place not in wrong]
        rejected = [RowError(place, text) for place, text in wrong.items()]
        return Results(
            len(good),
            [places[i] for i in good],
            self._write([results[i] for i in good]),
            tuple(sorted((*errors, *rejected), key=lambda error: error.row)),
        )


def _map_batches(
    function: Callable[..., Any], batch: pa.RecordBatch, returned: pa.Schema, name: str
) -> Results:
    table = pa.Table.from_batches([batch])
    marks = _numbers(1 << batch.num_rows.bit_length()).slice(0, batch.num_rows)
    try:
        made = function(table.append_column(ORIGIN, marks))
    except Exception as error:
        raise FunctionFailed("FUNCTION_FAILED", f"{name} failed: {error_text(error)}") from error
    if isinstance(made, pa.RecordBatch):
        made = pa.Table.from_batches([made])
    if not isinstance(made, pa.Table):
        raise FunctionFailed(
            "FUNCTION_BAD_RESULT",
            f"{name} must return a pyarrow.Table, got {type(made).__name__}",
        )
    origins = None
    if ORIGIN in made.column_names:
        origins = made.column(ORIGIN).to_pylist()
        made = made.drop_columns([ORIGIN])
    elif made.num_rows != batch.num_rows:
        raise FunctionFailed(
            "FUNCTION_BAD_RESULT",
            f"{name} was given {batch.num_rows} rows and returned {made.num_rows} without the "
            f"column {ORIGIN!r}, which ties a row to its record",
        )
    return Results(made.num_rows, origins, _fit(made, returned, name))


@lru_cache(maxsize=2)
def _numbers(count: int) -> pa.Array:
    """Return the numbers from 0 on; to make them takes longer than all else in a call."""
    return pa.array(range(count), type=pa.int32())


def _fit(made: pa.Table, returned: pa.Schema, name: str) -> pa.RecordBatch:
    """Return a table as one batch with exactly the declared columns."""
    missing = [column for column in returned.names if column not in made.column_names]
    if missing:
        raise FunctionFailed(
            "FUNCTION_BAD_RESULT", f"{name} returned a table without the column {missing[0]!r}"
        )
    arrays = []
    for field in returned:
        column = made.column(field.name)
        try:
            array = column.cast(field.type).combine_chunks()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise FunctionFailed(
                "FUNCTION_BAD_RESULT",
                f"{name} returned {field.name!r} as {column.type} instead of {field.type}: {error}",
            ) from error
        if array.null_count and not field.nullable:
            raise FunctionFailed(
                "FUNCTION_BAD_RESULT", f"{name} returned a null in {field.name!r}, which has none"
            )
        arrays.append(array.chunk(0) if isinstance(array, pa.ChunkedArray) else array)
    return pa.RecordBatch.from_arrays(arrays, schema=returned)


def shown_row(row: Any) -> str:
    """Return a row for a message."""
    try:
        return f"{row!r:.500}"
    except Exception:  # noqa: BLE001 - a class of the user fails when it is shown
        return f"a {type(row).__name__}"


def error_text(error: BaseException) -> str:
    """Return an exception and where the user's code raised it, the same in every attempt."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "headgate/functions/" not in frame.filename.replace("\\", "/")
    ]
    places = " < ".join(
        f"{frame.filename.rpartition('/')[2]}:{frame.lineno} in {frame.name}"
        for frame in reversed(frames[-3:])
    )
    try:
        words = _ADDRESS.sub("", f"{type(error).__name__}: {error}")
    except Exception:  # noqa: BLE001 - the user's exception fails when it is shown
        words = type(error).__name__
    return f"{words[:_LONGEST]}{f' ({places})' if places else ''}"
