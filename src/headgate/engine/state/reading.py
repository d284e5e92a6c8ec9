"""Queries on the state of a checkpoint: one key, rows, or SQL. The session is kept warm.

A key is looked up in the state's own files, so that millions of keys do not slow it down. Rows and
SQL use Spark's own reader of state.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from headgate._kernel.bridge import CompiledFlow
from headgate._kernel.gateway import find_jvm_exit
from headgate._kernel.state import KeyLookup, ReadableState, as_json, ask
from headgate._kernel.translate import SPARK_ERRORS, root_cause
from headgate._locations import Location
from headgate.engine.plan.operator_specs import path_of
from headgate.engine.plan.plan import plan_flow
from headgate.engine.plan.spark_types import to_spark_json
from headgate.engine.session.session import open_session
from headgate.engine.session.stores import plain_place
from headgate.engine.settings import MIB, RULES, SparkSettings, held_state, state_variable
from headgate.engine.state.limits import QueryLimits
from headgate.engine.state.view import readable_rows
from headgate.engine.user_code.functions import worker_spec
from headgate.errors import Domain, HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Dedupe, Enrich, Join, Label, Process, Window, broadcast_of
from headgate.flow.schemas.schema import Schema

_MEMORY = 768 * MIB
_STATE_MEMORY = 128 * MIB
_FORMS = 64
# How many queries run at once, and the seconds that a further one waits.
_AT_ONCE = 4
_WAIT_S = 20.0
# A query has at most 16 leaves, and each of them is one task: none takes the threads of another.
_THREADS = 16 * _AT_ONCE


@dataclass(frozen=True, slots=True)
class StateShape:
    """The meaning of a checkpoint's state.

    Attributes:
        operators: Uids of the operators with state, in Spark's order.
        history: Every schema that each table has had, by source id.
        keys: The key columns of each table, by source id.
    """

    flow: Graph
    operators: tuple[str, ...]
    history: Mapping[str, tuple[Schema, ...]]
    keys: Mapping[str, tuple[str, ...]]

    def number(self, uid: str) -> int:
        """Return Spark's number of an operator, counted from the sink upwards."""
        return len(self.operators) - 1 - self.operators.index(uid)

    def fingerprint(self) -> str:
        """Return a text that is equal for equal shapes only."""
        history = {
            table: [schema.to_json() for schema in schemas]
            for table, schemas in self.history.items()
        }
        content = [self.flow.to_json(), list(self.operators), history, dict(self.keys)]
        return json.dumps(content, default=list, sort_keys=True)


@dataclass(frozen=True, slots=True)
class StatePlace:
    """A readable location of state.

    Attributes:
        folder: A checkpoint folder: the job's own, a retained one or a savepoint.
        batch: The batch after which the state is read.
        ids: The unique ids of its state, by Spark's number of the operator, then partition.
        time_ms: When the batch began, in epoch milliseconds.
    """

    folder: Location
    batch: int
    shape: StateShape
    ids: Mapping[int, tuple[str, ...]]
    time_ms: int


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Rows with their columns.

    Attributes:
        more: True if there are more rows than requested.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[list[Any]]
    more: bool


class StateReader:
    """Reads state with a small Spark session of its own; from any thread.

    Args:
        longest_query: The time after which a query is ended.
        stores: The object stores with checkpoints, such as `s3a`.
    """

    def __init__(
        self,
        *,
        log_file: Path,
        scratch: Path,
        longest_query: timedelta,
        stores: Sequence[str] = (),
    ) -> None:
        shutil.rmtree(scratch, ignore_errors=True)
        self._scratch = scratch
        settings = SparkSettings(
            # The partitions of grouping and sorting; state has its own.
            parallelism=1,
            master=f"local[{_THREADS}]",
            driver_memory=_MEMORY,
            state_memory=_STATE_MEMORY,
            log_file=log_file,
            log_level="warn",
        )
        self._spark = open_session(settings, modules=stores)
        # Flows are compiled as for a run, and none of their functions is called.
        self._worker = worker_spec(settings, None)
        self._lock = threading.Lock()
        self._forms: OrderedDict[tuple[str, str], ReadableState] = OrderedDict()
        self._flows: OrderedDict[str, CompiledFlow] = OrderedDict()
        self._queries = itertools.count(1)
        self._places = threading.BoundedSemaphore(_AT_ONCE)
        self._longest_query = longest_query

    def is_alive(self) -> bool:
        """Return True while the JVM is alive."""
        return find_jvm_exit() is None

    def look_up(
        self, places: Sequence[StatePlace], uid: str, text: str
    ) -> tuple[str, list[tuple[bool, Any] | HeadgateError]]:
        """Return a key as state stores it, and per place whether it was deleted and its value.

        An unreadable place has its error instead, except for the last one.

        Args:
            places: All of them contain the operator.
            text: The key as the user typed it.

        Raises:
            HeadgateError: For the last place: STATE_KEY_MISMATCH; or STATE_UNREADABLE, which is
                retryable: files of a running job may be deleted.
        """
        lookups: dict[tuple[bytes, str], KeyLookup] = {}
        values: list[tuple[bool, Any] | HeadgateError] = []
        shown = text
        with self._lock:
            for number, place in enumerate(places, 1):
                try:
                    shown, value = self._find(lookups, place, uid, text)
                    values.append(value)
                except HeadgateError as error:
                    if number == len(places):
                        raise
                    values.append(error)
        return shown, values

    def _find(
        self, lookups: dict[tuple[bytes, str], KeyLookup], place: StatePlace, uid: str, text: str
    ) -> tuple[str, tuple[bool, Any]]:
        node = place.shape.flow.node(uid)
        number = place.shape.number(uid)
        operator = plain_place(place.folder / "state" / str(number))
        variable = state_variable(node)
        try:
            form = self._form(place.shape, uid)
            key = _read_key(form, uid, text)
            if (key, variable) not in lookups:
                lookups[key, variable] = form.look_up(
                    variable=variable, key=key, scratch=self._scratch
                )
            value = form.describe(
                lookups[key, variable],
                operator,
                place.batch + 1,
                place.ids[number],
                now_ms=place.time_ms,
            )
        except SPARK_ERRORS as error:
            raise _unreadable(place, error) from error
        return key.decode("utf-8", "replace"), value

    def first_rows(self, place: StatePlace, uid: str, limit: int) -> FoundRows:
        """Return the first rows of an operator's state; deleted keys are skipped.

        Args:
            place: A folder in Spark's format, such as a fork of a checkpoint.

        Raises:
            HeadgateError: STATE_UNREADABLE, STATE_SQL_TOO_LONG, STATE_ANSWER_TOO_LARGE or
                STATE_READER_BUSY.
        """
        with self._limited(self._spark) as limits:
            try:
                return _take(self.rows(self._spark, place, uid), limit)
            except SPARK_ERRORS as error:
                raise limits.find_excess(error) or _unreadable(place, error) from error

    def query(self, place: StatePlace, sql: str, *, uid: str | None, limit: int) -> FoundRows:
        """Return the result of a query over the views of state.

        The views are `state`, of the named or only operator, and one per operator by its uid, with
        underscores for dashes. That of a process's broadcast is called `UID_broadcast`.

        Raises:
            HeadgateError: STATE_SQL_REFUSED with Spark's message; STATE_UNREADABLE,
                STATE_SQL_TOO_LONG, STATE_ANSWER_TOO_LARGE or STATE_READER_BUSY.
        """
        session = self._session()
        views = {operator.replace("-", "_"): operator for operator in place.shape.operators}
        only = place.shape.operators[0] if len(place.shape.operators) == 1 else None
        if uid or only:
            views["state"] = uid or str(only)
        broadcasts = {
            f"{uid.replace('-', '_')}_broadcast": uid
            for uid in place.shape.operators
            if isinstance(node := place.shape.flow.node(uid), Process) and node.table is not None
        }
        views |= broadcasts
        with self._limited(session) as limits:
            try:
                for view, operator in views.items():
                    # Opening state takes a moment: open only the views that the query may use.
                    if re.search(rf"\b{view}\b", sql, re.IGNORECASE):
                        rows = self._broadcast if view in broadcasts else self.rows
                        rows(session, place, operator).createOrReplaceTempView(view)
            except SPARK_ERRORS as error:
                raise limits.find_excess(error) or _unreadable(place, error) from error
            try:
                return _take(ask(session, sql), limit)
            except SPARK_ERRORS as error:
                raise limits.find_excess(error) or _refused(error, sorted(views)) from error

    def rows(self, session: SparkSession, place: StatePlace, uid: str) -> DataFrame:
        """Return an operator's state as readable columns; for windows, one row per window."""
        node = place.shape.flow.node(uid)
        held = held_state(node, place.folder, place.shape.number(uid), place.batch)
        with self._lock:
            form = self._form(place.shape, uid)
            # One task: the threads of the session are shared with other queries.
            entries = readable_rows(session, held).coalesce(1)
            rows = form.rows(entries, now_ms=place.time_ms)
        if isinstance(node, Window):
            keys = [f"`{name.replace('`', '``')}`" for name in rows.columns[:-1]]
            return rows.selectExpr(*keys, "inline(windows)")
        return rows

    def _broadcast(self, session: SparkSession, place: StatePlace, uid: str) -> DataFrame:
        """Return the rows of a process's broadcast."""
        node = place.shape.flow.node(uid)
        table = broadcast_of(node)
        assert table is not None, "it has a broadcast"
        held = held_state(node, place.folder, place.shape.number(uid), place.batch)
        with self._lock:
            entries = readable_rows(session, replace(held, variable=RULES)).coalesce(1)
            form = self._table_form(place.shape, table, is_copied=True)
            return form.rows(entries, now_ms=place.time_ms)

    def _session(self) -> SparkSession:
        session = self._spark.newSession()
        # Queries must not read files as tables, or this process's environment.
        session.conf.set("spark.sql.runSQLOnFiles", "false")
        session.conf.set("spark.sql.variable.substitute", "false")
        # One task for a range or a list of values.
        session.conf.set("spark.sql.leafNodeDefaultParallelism", "1")
        return session

    @contextmanager
    def _limited(self, session: SparkSession) -> Iterator[QueryLimits]:
        """Hold one of the places for queries, and end the query after its time."""
        if not self._places.acquire(timeout=_WAIT_S):
            raise _busy()
        try:
            name = f"state-{next(self._queries)}"
            with QueryLimits(session, name, self._longest_query) as limits:
                yield limits
        finally:
            self._places.release()

    def _form(self, shape: StateShape, uid: str) -> ReadableState:
        """Return the reader of an operator's state; the lock must be held."""
        mark = shape.fingerprint()
        form = self._forms.get((mark, uid))
        if form is None:
            form = self._make_form(shape, mark, uid)
            self._forms[mark, uid] = form
        self._forms.move_to_end((mark, uid))
        while len(self._forms) > _FORMS:
            self._forms.popitem(last=False)
        return form

    def _make_form(self, shape: StateShape, mark: str, uid: str) -> ReadableState:
        node = shape.flow.node(uid)
        match node:
            case Enrich(table=table) | Label(table=table):
                return self._table_form(shape, table, is_copied=isinstance(node, Label))
            case Window():
                return ReadableState.of_windows(self._spark, self._flow(shape, mark), uid)
            case Dedupe(by=by):
                paths = [path_of(path) or [path] for path in by]
                return ReadableState.of_seen(self._spark, self._flow(shape, mark), uid, paths)
            case Join():
                return ReadableState.of_join(self._spark, self._flow(shape, mark), uid)
            case Process():
                return ReadableState.of_process(self._spark, self._flow(shape, mark), uid)
            case _:
                raise AssertionError(f"{node.id} holds no state")

    def _table_form(self, shape: StateShape, table: str, *, is_copied: bool) -> ReadableState:
        history = [to_spark_json(schema) for schema in shape.history[table]]
        key = shape.keys[table]
        return ReadableState.of_table(self._spark, history=history, key=key, copied=is_copied)

    def _flow(self, shape: StateShape, mark: str) -> CompiledFlow:
        if mark not in self._flows:
            plan = plan_flow(shape.flow, history=shape.history, max_record=MIB)
            spec = {**plan.spec, "worker": self._worker}
            self._flows[mark] = CompiledFlow.compile(self._spark, spec)
        while len(self._flows) > _FORMS:
            self._flows.popitem(last=False)
        return self._flows[mark]


def _take(rows: DataFrame, limit: int) -> FoundRows:
    values = as_json(rows.limit(limit + 1))
    return FoundRows(
        tuple(rows.columns),
        tuple(field.dataType.simpleString().upper() for field in rows.schema.fields),
        values[:limit],
        len(values) > limit,
    )


def _read_key(form: ReadableState, uid: str, text: str) -> bytes:
    try:
        return form.key(text)
    except ValueError as error:
        columns = form.key_columns()
        types = ", ".join(f"{name} {kind.upper()}" for name, kind in columns)
        kind = columns[0][1].upper()
        example = json.dumps({name: "..." for name, _ in columns})
        raise HeadgateError(
            "STATE_KEY_MISMATCH",
            f"cannot look up key {text!r} in operator {uid!r}: its key is {types}; {error}",
            hint=f"write it as --key '{example}'"
            if len(columns) > 1
            else f"the value of {columns[0][0]!r} must be of type {kind}",
        ) from error


def _unreadable(place: StatePlace, error: BaseException) -> HeadgateError:
    return HeadgateError(
        "STATE_UNREADABLE",
        f"cannot read the state after batch {place.batch} in {place.folder}: {root_cause(error)}",
        hint=f"headgate verify {place.folder}",
        domain=Domain.EXTERNAL,
        retryable=True,
        root_cause=root_cause(error),
    )


def _refused(error: BaseException, views: Sequence[str]) -> HeadgateError:
    return HeadgateError(
        "STATE_SQL_REFUSED",
        f"cannot answer the query: {root_cause(error)}",
        hint=f"the views are {', '.join(views)}",
        root_cause=root_cause(error),
    )


def _busy() -> HeadgateError:
    return HeadgateError(
        "STATE_READER_BUSY",
        f"cannot answer the query now: {_AT_ONCE} others are running",
        hint="try again in a moment",
        domain=Domain.EXTERNAL,
        retryable=True,
    )
