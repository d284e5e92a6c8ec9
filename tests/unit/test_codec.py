"""The codec: one JSON form of every value, on disk, between processes, in REST and in `--json`."""

from __future__ import annotations

import enum
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import TypeAdapter

from headgate._codec import (
    DecodeError,
    Form,
    Moment,
    RoundedSeconds,
    Seconds,
    WholeSeconds,
    alias,
    decode,
    encode,
    left_out,
    left_out_while,
    shaped,
)
from headgate.connectors.contract.audit import Passed
from headgate.connectors.contract.topics import (
    FOREVER,
    MadeTopic,
    PublishedFile,
    TopicDetails,
    TopicSummary,
)
from headgate.engine.attempt.progress import Latency, PartitionTime, StreamTimes
from headgate.engine.settings import Delivery
from headgate.jobs.audit.report import (
    Audit,
    By,
    Example,
    Kind,
    PartitionAudit,
    SourceAudit,
)
from headgate.jobs.control.verbs import Loss, Savepoint, Stopped
from headgate.jobs.dead_letters.letter import DeadLetter
from headgate.jobs.dead_letters.listing import DeadLetters, LetterCount
from headgate.jobs.dead_letters.replay import LeftOut, Refused, Replayed
from headgate.jobs.lifecycle.failures import Failure
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.state.values import (
    HistoryEntry,
    StateHistory,
    StateOperator,
    StateOverview,
    StateRows,
    StateValue,
)
from headgate.jobs.totals import Totals
from headgate.jobs.upkeep.kept_jobs import KeptJob
from headgate.jobs.values import Consent, JobSnapshot, OpenBatch, RunOptions
from headgate.jobs.views.events import Events, JobEvent
from headgate.jobs.views.exceptions import Exceptions, JobAttempt, JobFailure
from headgate.jobs.views.graph import GraphEdge, GraphNode, GraphView, NodeFacts
from headgate.jobs.views.job import JobView
from headgate.jobs.views.logs import LogPage
from headgate.jobs.views.outputs import OutputKind, OutputRecord, OutputView
from headgate.jobs.views.samples import Samples
from headgate.server.operations import Operation
from headgate.server.security.access import Role
from headgate.server.security.audit_log import AuditLine

NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
AT_NOON = "2026-11-18T12:00:00+00:00"
TICK = timedelta(milliseconds=20)


class Colour(enum.StrEnum):
    """A closed set."""

    RED = "red"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    """A value within another."""

    name: str
    size: int = field(metadata=alias("bytes"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A value with every kind of field."""

    at: Moment
    ended: Moment | None = None
    exact: Seconds = field(metadata=alias("exact_s"))
    rounded: RoundedSeconds = field(metadata=alias("rounded_s"))
    whole: WholeSeconds | None = field(metadata=alias("whole_s"))
    colour: Colour
    folder: Path
    parts: tuple[Inner, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    cache: str = field(default="", metadata=left_out())


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A value whose JSON has the JSON of another one in itself."""

    id: int
    inner: Inner
    last: bool = False

    __get_pydantic_core_schema__ = shaped(flatten="inner")


@dataclass(frozen=True, slots=True)
class Several:
    """Such values within another."""

    named: tuple[Named, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two such values, each described on its own."""

    first: Named
    second: Named


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """A value with properties in its JSON."""

    parts: Mapping[str, int]

    __get_pydantic_core_schema__ = shaped(computed={"total": "total", "greatest": "most"})

    @property
    def total(self) -> int:
        """The sum."""
        return sum(self.parts.values())

    @property
    def most(self) -> str:
        """The name of the greatest part."""
        return max(self.parts, key=lambda name: self.parts[name])


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparse:
    """A value that leaves out what is empty."""

    note: str | None = field(default=None, metadata=left_out_while(None))
    parts: tuple[str, ...] = field(default=(), metadata=left_out_while((), **alias("pieces")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaped:
    """A value with another one in its JSON, a property, and a name that is not always there."""

    id: int = 0
    inner: Inner

    __get_pydantic_core_schema__ = shaped(
        flatten="inner",
        computed={"label": "label"},
        absent=lambda value: () if value.id else ("id", "bytes"),
    )

    @property
    def label(self) -> str:
        """The name and the number."""
        return f"{self.inner.name}-{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A value with a field of a type that has a form of its own."""

    numbers: Annotated[
        frozenset[int],
        Form(
            lambda numbers: " ".join(str(number) for number in sorted(numbers)),
            lambda text: frozenset(int(word) for word in text.split()),
        ),
    ]


SAMPLE = Sample(
    at=NOON + timedelta(microseconds=123_456),
    exact=timedelta(seconds=2.123456),
    rounded=timedelta(seconds=2.123456),
    whole=timedelta(seconds=2.6),
    colour=Colour.RED,
    folder=Path("/a/b"),
    parts=(Inner(name="x", size=3),),
    facts={"keys": ("a", 1), "none": None},
    cache="kept in memory",
)
SAMPLE_JSON = {
    "at": "2026-11-18T12:00:00.123456+00:00",
    "ended": None,
    "exact_s": 2.123456,
    "rounded_s": 2.123,
    "whole_s": 3,
    "colour": "red",
    "folder": "/a/b",
    "parts": [{"name": "x", "bytes": 3}],
    "facts": {"keys": ["a", 1], "none": None},
}


def test_a_value_is_encoded_by_the_names_and_forms_of_its_fields() -> None:
    encoded = encode(SAMPLE)
    assert json.loads(json.dumps(encoded)) == encoded == SAMPLE_JSON
    assert list(encoded) == list(SAMPLE_JSON)


def test_a_decoded_value_has_the_types_of_its_fields() -> None:
    decoded = decode(Sample, SAMPLE_JSON)
    assert decoded.at == SAMPLE.at
    assert decoded.at.tzinfo is UTC
    assert decoded.exact == SAMPLE.exact
    assert decoded.whole == timedelta(seconds=3)
    assert decoded.colour is Colour.RED
    assert decoded.folder == Path("/a/b")
    assert decoded.parts == SAMPLE.parts
    assert decoded.cache == ""


def test_collections_of_values_and_plain_json_values_are_encoded_too() -> None:
    part = Inner(name="x", size=3)
    told = {"parts": (part,), "more": {"a": [part]}, "count": 1, "none": None}
    one = {"name": "x", "bytes": 3}
    assert encode(told) == {"parts": [one], "more": {"a": [one]}, "count": 1, "none": None}
    assert decode(list[Inner], [one]) == [part]
    assert decode(dict[str, Inner], {"a": one}) == {"a": part}


def test_unknown_names_are_ignored_and_missing_ones_take_their_defaults() -> None:
    required = ("at", "exact_s", "rounded_s", "whole_s", "colour", "folder")
    few = {name: SAMPLE_JSON[name] for name in required}
    decoded = decode(Sample, {**few, "of_a_newer_release": 1})
    assert decoded.ended is None
    assert decoded.parts == ()
    assert decoded.facts == {}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"at": "noon"}, "at: "),
        ({"at": 12}, "at: "),
        ({"exact_s": "2s"}, "exact_s: "),
        ({"exact_s": 1e300}, "exact_s: "),
        ({"colour": "blue"}, "colour: "),
        ({"parts": [{"name": "x"}]}, "parts.0.bytes: Field required"),
    ],
)
def test_a_wrong_field_is_named(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(Sample, {**SAMPLE_JSON, **changes})
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize("content", [None, 5, "text", []])
def test_content_that_is_not_an_object_is_refused(content: Any) -> None:
    for kind in (Sample, Named):
        with pytest.raises(DecodeError):
            decode(kind, content)


def test_a_flattened_field_stands_beside_the_others() -> None:
    named = Named(id=1, inner=Inner(name="x", size=3), last=True)
    told = {"id": 1, "name": "x", "bytes": 3, "last": True}
    assert encode(named) == told
    assert list(encode(named)) == list(told)
    assert decode(Named, told) == named
    assert encode(Several((named,))) == {"named": [told]}
    assert decode(Several, {"named": [told]}) == Several((named,))


def test_computed_properties_are_written_and_not_read() -> None:
    sums = Sums(parts={"a": 1, "b": 2})
    assert encode(sums) == {"parts": {"a": 1, "b": 2}, "total": 3, "greatest": "b"}
    assert decode(Sums, {"parts": {"a": 1}, "total": 99}) == Sums(parts={"a": 1})


def test_empty_fields_are_left_out_where_the_value_says_so() -> None:
    assert encode(Sparse()) == {}
    assert encode(Sparse(note="x", parts=("y",))) == {"note": "x", "pieces": ["y"]}
    assert decode(Sparse, {"pieces": ["y"]}) == Sparse(parts=("y",))
    assert decode(Sparse, {}) == Sparse()


def test_the_parts_of_a_shape_go_together() -> None:
    inner = Inner(name="x", size=3)
    assert encode(Shaped(inner=inner)) == {"name": "x", "label": "x-0"}
    whole = {"id": 1, "name": "x", "bytes": 3, "label": "x-1"}
    assert encode(Shaped(id=1, inner=inner)) == whole
    assert decode(Shaped, whole) == Shaped(id=1, inner=inner)


def test_a_form_writes_and_reads_a_type_that_is_not_a_value() -> None:
    holder = Holder(numbers=frozenset({2, 1}))
    assert encode(holder) == {"numbers": "1 2"}
    assert decode(Holder, {"numbers": "2 1"}) == holder
    with pytest.raises(DecodeError, match="numbers: "):
        decode(Holder, {"numbers": "x"})


def test_schemas_describe_the_json() -> None:
    schema = TypeAdapter(Sample).json_schema(mode="serialization")["properties"]
    assert schema["at"]["format"] == "date-time"
    assert schema["exact_s"]["type"] == "number"
    assert "cache" not in schema
    named = TypeAdapter(Named).json_schema(mode="serialization")
    assert set(named["properties"]) == {"id", "name", "bytes", "last"}
    assert set(named["required"]) == {"id", "name", "bytes"}
    twice = TypeAdapter(Pair).json_schema(mode="serialization")["$defs"]["Named"]
    assert set(twice["properties"]) == set(named["properties"])
    sums = TypeAdapter(Sums).json_schema(mode="serialization")["properties"]
    assert sums["total"]["type"] == "integer"


def test_a_value_with_a_to_json_of_its_own_is_refused() -> None:
    @dataclass(frozen=True)
    class Odd:
        def to_json(self) -> dict[str, Any]:
            return {}

    for use in (lambda: encode(Odd()), lambda: decode(Odd, {})):
        with pytest.raises(TypeError, match="Odd"):
            use()


def test_modules_with_values_do_not_import_pydantic() -> None:
    code = "import sys, headgate.jobs.views.job, headgate._codec; print('pydantic' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


VIEW = JobView(
    name="orders",
    state="RUNNING",
    is_alive=True,
    attempt=2,
    since=NOON,
    uptime=timedelta(seconds=61.7),
    records_per_s=100,
    lag_bytes=None,
    lag_records=7,
    lag=timedelta(seconds=1.5),
    checkpoint="chk-3",
    checkpoint_at=NOON,
)
VIEW_JSON = {
    "job": "orders",
    "state": "RUNNING",
    "alive": True,
    "attempt": 2,
    "since": AT_NOON,
    "uptime_s": 62,
    "failures": 0,
    "failing": False,
    "records_per_s": 100,
    "lag_bytes": None,
    "lag_records": 7,
    "lag_s": 1.5,
    "checkpoint": "chk-3",
    "checkpoint_at": AT_NOON,
    "reason": "",
    "todo": "",
}
LETTER = DeadLetter(
    id="0:5",
    job="orders",
    source="orders",
    of_row=False,
    topic="orders",
    partition=0,
    offset=7,
    reason="BAD_JSON",
    detail="not an object",
    at=NOON,
    record_at=None,
    size=9,
    raw=b"\xffx",
)
LETTER_JSON = {
    "id": "0:5",
    "job": "orders",
    "source": "orders",
    "of_row": False,
    "topic": "orders",
    "partition": 0,
    "offset": 7,
    "reason": "BAD_JSON",
    "detail": "not an object",
    "expression": "",
    "at": AT_NOON,
    "record_at": None,
    "bytes": 9,
    "cut": True,
    "is_text": False,
    "text": "\\xffx",
    "replayed_at": None,
    "replayed_by": "",
    "in_doubt": False,
}
NO_SERIES: dict[str, Any] = dict.fromkeys(
    (
        *("out_per_s", "lag_records", "lag_bytes", "lag_s", "batch_ms", "latency_p50_ms"),
        *("latency_p95_ms", "latency_p99_ms", "state_rows", "state_bytes"),
    ),
    (None,),
)
# The JSON of values as releases write it to disk, to REST and to `--json`: it must not change.
GOLDEN: list[tuple[Any, dict[str, Any]]] = [
    (VIEW, VIEW_JSON),
    (
        Savepoint("sp-1", Path("/s"), 4, 99),
        {"savepoint": "sp-1", "folder": "/s", "batch": 4, "bytes": 99},
    ),
    (
        Stopped(VIEW, Savepoint("sp-1", Path("/s"), 4, 99)),
        {
            **VIEW_JSON,
            "savepoint": {"savepoint": "sp-1", "folder": "/s", "batch": 4, "bytes": 99},
        },
    ),
    (
        Loss(VIEW, deletes_state=True, checkpoints=("chk-1",), bytes=9),
        {**VIEW_JSON, "dry_run": True, "deletes": ["chk-1"], "deletes_state": True, "bytes": 9},
    ),
    (
        Events("orders", (JobEvent(1, NOON, "CHECKPOINT", {"id": "chk-1"}),), 1, 0, 1),
        {
            "job": "orders",
            "events": [
                {"number": 1, "at": AT_NOON, "event": "CHECKPOINT", "facts": {"id": "chk-1"}}
            ],
            "total": 1,
            "skipped": 0,
            "next": "1",
            "more": False,
        },
    ),
    (
        Exceptions(
            "orders",
            (
                JobFailure(
                    attempt=1,
                    at=NOON,
                    code="DRIVER_DIED",
                    message="killed",
                    root_cause="SIGKILL",
                    where="driver",
                    hint="",
                    retryable=True,
                ),
            ),
            (JobAttempt(1, NOON, NOON, "RESTARTING", timedelta(seconds=1.23456), "killed"),),
            1,
        ),
        {
            "job": "orders",
            "failures": [
                {
                    "root_cause": "SIGKILL",
                    "attempt": 1,
                    "at": AT_NOON,
                    "code": "DRIVER_DIED",
                    "message": "killed",
                    "where": "driver",
                    "hint": "",
                    "retryable": True,
                    "trace": "",
                }
            ],
            "attempts": [
                {
                    "number": 1,
                    "started": AT_NOON,
                    "ended": AT_NOON,
                    "state": "RESTARTING",
                    "lasted_s": 1.235,
                    "reason": "killed",
                }
            ],
            "total": 1,
        },
    ),
    (
        GraphView(
            "orders",
            (
                GraphNode(
                    id="orders",
                    kind="source",
                    title="orders",
                    detail="a stream",
                    facts=NodeFacts(records_in=3, in_per_s=1.5),
                ),
            ),
            (
                GraphEdge(
                    source="orders", target="x", label="", exchange="", records=None, per_s=0.5
                ),
            ),
        ),
        {
            "job": "orders",
            "nodes": [
                {
                    "id": "orders",
                    "kind": "source",
                    "operator": "",
                    "title": "orders",
                    "detail": "a stream",
                    "side": False,
                    "facts": {
                        "records_in": 3,
                        "records_out": None,
                        "in_per_s": 1.5,
                        "out_per_s": None,
                        "state_rows": None,
                        "state_bytes": None,
                        "watermark": None,
                        "busy": None,
                        "lag_records": None,
                        "lag_bytes": None,
                        "lag_s": None,
                    },
                }
            ],
            "edges": [
                {
                    "source": "orders",
                    "target": "x",
                    "label": "",
                    "exchange": "",
                    "records": None,
                    "per_s": 0.5,
                }
            ],
        },
    ),
    (LogPage(("a", "b"), "1:2"), {"lines": ["a", "b"], "next": "1:2", "more": False}),
    (
        OutputView(
            id="late",
            topic="late-visits",
            kind=OutputKind.SIDE,
            fed_by="visits.late",
            log="files",
            can_tail=True,
            rows=2,
        ),
        {
            "id": "late",
            "topic": "late-visits",
            "kind": "side",
            "fed_by": "visits.late",
            "log": "files",
            "can_tail": True,
            "rows": 2,
        },
    ),
    (
        OutputRecord(
            place="0:5",
            partition=0,
            position="5",
            timestamp=NOON,
            key=None,
            value="{}",
            size=2,
            cut=False,
        ),
        {
            "place": "0:5",
            "partition": 0,
            "position": "5",
            "timestamp": AT_NOON,
            "key": None,
            "value": "{}",
            "bytes": 2,
            "cut": False,
        },
    ),
    (
        Samples(
            job="orders",
            every=timedelta(seconds=5),
            at=(NOON,),
            in_per_s=(1.5,),
            inputs={"orders": (1.5,)},
            outputs={},
            phases={"planning": (None,)},
            watermark=(NOON,),
            **NO_SERIES,
        ),
        {
            "job": "orders",
            "every_s": 5.0,
            "at": [AT_NOON],
            "in_per_s": [1.5],
            "inputs": {"orders": [1.5]},
            "outputs": {},
            "phases": {"planning": [None]},
            "watermark": [AT_NOON],
            **{name: [None] for name in NO_SERIES},
        },
    ),
    (
        StateOverview(
            job="orders",
            checkpoint="now",
            batch=None,
            moment=None,
            operators=(
                StateOperator(
                    uid="with-user",
                    kind="enrich",
                    variables=("rows",),
                    keys=("id",),
                    key_types=("BIGINT",),
                    rows=3,
                    bytes=99,
                ),
            ),
        ),
        {
            "job": "orders",
            "checkpoint": "now",
            "batch": None,
            "moment": None,
            "operators": [
                {
                    "uid": "with-user",
                    "kind": "enrich",
                    "variables": ["rows"],
                    "keys": ["id"],
                    "key_types": ["BIGINT"],
                    "rows": 3,
                    "bytes": 99,
                }
            ],
        },
    ),
    (
        StateValue(
            job="orders",
            uid="with-user",
            key="42",
            checkpoint="now",
            moment=NOON,
            found=True,
            deleted=False,
            value={"name": "Ada"},
        ),
        {
            "job": "orders",
            "uid": "with-user",
            "key": "42",
            "checkpoint": "now",
            "moment": AT_NOON,
            "found": True,
            "deleted": False,
            "value": {"name": "Ada"},
        },
    ),
    (
        StateHistory(
            job="orders",
            uid="with-user",
            key="42",
            entries=(
                HistoryEntry(
                    checkpoint="chk-1",
                    moment=NOON,
                    value=2,
                    change="changed",
                    differences={"value": (1, 2)},
                ),
            ),
        ),
        {
            "job": "orders",
            "uid": "with-user",
            "key": "42",
            "entries": [
                {
                    "checkpoint": "chk-1",
                    "moment": AT_NOON,
                    "value": 2,
                    "change": "changed",
                    "differences": {"value": [1, 2]},
                    "problem": "",
                }
            ],
            "left_off": 0,
        },
    ),
    (
        StateRows(
            job="orders",
            checkpoint="now",
            moment=NOON,
            columns=("id",),
            types=("BIGINT",),
            rows=((1,), (None,)),
        ),
        {
            "job": "orders",
            "checkpoint": "now",
            "moment": AT_NOON,
            "columns": ["id"],
            "types": ["BIGINT"],
            "rows": [[1], [None]],
            "cut": False,
        },
    ),
    (
        RunOptions(consent=Consent(open_batch=OpenBatch.SKIP), retain_for=timedelta(hours=1)),
        {
            "on": "files:.headgate/topics",
            "home": ".headgate",
            "until_caught_up": False,
            "drain": False,
            "parallelism": None,
            "batch_every": 1.0,
            "max_batch": 67108864,
            "max_record": 1048576,
            "driver_memory": 2147483648,
            "checkpoints": None,
            "fresh": False,
            "print_rows": 0,
            "verbose": False,
            "restart": "exponential:1s,1m,1.5",
            "checkpoint_every": 5.0,
            "min_pause": 0.0,
            "retain": 10,
            "retain_for": 3600.0,
            "delete_on_cancel": False,
            "strict": False,
            "check_determinism": False,
            "restore_from": None,
            "restore_at": None,
            "drop_state": [],
            "consent": {"open_batch": "skip"},
            "master": "local[*]",
            "executors": None,
            "executor_cores": None,
            "executor_memory": 1073741824,
            "executor_wait": 120.0,
            "executor_timeout": 40.0,
            "lease_expires": 30.0,
            "driver_host": None,
            "driver_bind": None,
            "python": None,
            "py_env": None,
            "state_memory": 536870912,
            "worker_memory": 1073741824,
            "metaspace": None,
            "code_cache": 536870912,
            "direct_memory": None,
            "off_heap_memory": None,
            "executor_overhead": None,
            "call_timeout": 600.0,
            "log_level": "info",
            "log_format": "text",
            "delivery": "exactly-once",
            "on_data_loss": "fail",
            "start": [],
            "settings": {},
        },
    ),
    (
        JobSnapshot(
            job="orders",
            state=JobState.RUNNING,
            lineage="L1",
            resumed_from=17,
            loading=False,
            elapsed=timedelta(seconds=1.23456),
            totals=Totals(
                inputs={"orders": 5},
                lag_s={"orders": 0.5},
                batch=18,
                batches=1,
                committed=NOON,
                recent=((100, 1.0),),
                latency=Latency(TICK, TICK, TICK, rows=0),
            ),
            folder=Path("/j"),
        ),
        {
            "job": "orders",
            "state": "RUNNING",
            "lineage": "L1",
            "resumed_from": "chk-17",
            "loading_tables": False,
            "elapsed_s": 1.235,
            "folder": "/j",
            "attempt": 1,
            "reason": "",
            "checkpoint": None,
            "notice": "",
            "inputs": {"orders": 5},
            **{name: {} for name in ("outputs", "lag_bytes", "lag_records", "state_rows")},
            "lag_estimated": [],
            "lag_s": {"orders": 0.5},
            "state_bytes": {},
            "batch": 18,
            "batches": 1,
            "records_per_s": 100,
            "watermark": None,
            "held_back_by": None,
            "event_times": {},
            "ports": {},
            "ports_per_s": {},
            "busy": {},
            "latency_ms": {"p50": 20, "p95": 20, "p99": 20},
            "committed_at": AT_NOON,
        },
    ),
    (
        Failure(NOON, "DRIVER_DIED", "killed", "SIGKILL", "driver", True),
        {
            "attempt": 0,
            "at": AT_NOON,
            "code": "DRIVER_DIED",
            "message": "killed",
            "root_cause": "SIGKILL",
            "where": "driver",
            "retryable": True,
            "healthy_s": 0.0,
            "hint": "",
            "domain": "",
        },
    ),
    (
        StreamTimes(NOON, "orders-0", {"orders-0": PartitionTime(None, True)}),
        {
            "watermark": AT_NOON,
            "held_back_by": "orders-0",
            "partitions": {"orders-0": {"time": None, "idle": True}},
        },
    ),
    (
        Replayed(
            job="orders",
            dry_run=False,
            sent={"orders": 2},
            without_key=0,
            skipped=1,
            in_doubt=1,
            doubts=("0:1",),
            refused={"cut": 1},
            named=(Refused("0:2", LeftOut.CUT, "cut"),),
        ),
        {
            "job": "orders",
            "dry_run": False,
            "sent": 2,
            "sent_to": {"orders": 2},
            "without_key": 0,
            "skipped": 1,
            "in_doubt": 1,
            "in_doubt_ids": ["0:1"],
            "refused": 1,
            "refused_for": {"cut": 1},
            "refused_letters": [{"id": "0:2", "why": "cut", "words": "cut"}],
        },
    ),
    (
        TopicSummary("orders", 1, files=2, size=0, newest=None),
        {"name": "orders", "partitions": 1, "files": 2, "size": 0, "newest": None},
    ),
    (
        TopicSummary("orders", 3, at_most=7, newest=NOON, replication=1, retention="7d"),
        {
            "name": "orders",
            "partitions": 3,
            "records_at_most": 7,
            "replication": 1,
            "retention": "7d",
            "compacted": False,
            "newest": AT_NOON,
        },
    ),
    (
        MadeTopic("orders", 4, "h:6650", False, retention=FOREVER, deduplicated=True),
        {
            "name": "orders",
            "partitions": 4,
            "retention": "infinite",
            "compacted": False,
            "deduplicated": True,
            "schema": None,
            "where": "h:6650",
            "existed": False,
        },
    ),
    (LETTER, {**LETTER_JSON, "raw": "/3g="}),
    (
        DeadLetters(
            job="orders",
            topic="dead",
            log="files",
            total=1,
            at_least=False,
            counts=(LetterCount("orders", "BAD_JSON", 1),),
            letters=(LETTER.shorten(),),
            foreign=0,
        ),
        {
            "job": "orders",
            "topic": "dead",
            "log": "files",
            "total": 1,
            "at_least": False,
            "counts": [{"topic": "orders", "reason": "BAD_JSON", "count": 1}],
            "letters": [LETTER_JSON],
            "foreign": 0,
            "others": 0,
        },
    ),
    (
        AuditLine(
            at=NOON,
            who="me",
            role=Role.OPERATE,
            address="::1",
            what="stop",
            job="orders",
            operation=None,
            outcome="DONE",
        ),
        {
            "format": 1,
            "at": AT_NOON,
            "who": "me",
            "role": "operate",
            "address": "::1",
            "what": "stop",
            "job": "orders",
            "operation": None,
            "outcome": "DONE",
            "details": {},
        },
    ),
    (
        Operation(id="op-1", kind="stop", job="orders", by="me", started_at=NOON, result={"a": 1}),
        {
            "id": "op-1",
            "kind": "stop",
            "job": "orders",
            "by": "me",
            "state": "RUNNING",
            "started_at": AT_NOON,
            "ended_at": None,
            "progress": "",
            "result": {"a": 1},
            "error": None,
        },
    ),
]
# Values that are only written: what a reader would need is not in their JSON.
WRITTEN: list[tuple[Any, dict[str, Any]]] = [
    (
        KeptJob("orders", NOON, "me", {"do": "start"}),
        {"since": AT_NOON, "by": "me", "order": {"do": "start"}},
    ),
    (
        TopicDetails(
            TopicSummary("orders", 1, files=1, size=9, newest=NOON),
            where="/t",
            id=None,
            ledger=1,
            last_files=(PublishedFile("a", 9, NOON, None),),
        ),
        {
            "name": "orders",
            "partitions": 1,
            "files": 1,
            "size": 9,
            "newest": AT_NOON,
            "where": "/t",
            "id": None,
            "created": None,
            "ledger": 1,
            "last_files": [{"path": "a", "size": 9, "published": AT_NOON, "number": None}],
        },
    ),
    (
        Audit(
            job="orders",
            lineage="L1",
            checkpoint="chk-1",
            by=By.POSITION,
            delivery=Delivery.EXACTLY_ONCE,
            sources={
                "orders": SourceAudit(
                    topic="orders",
                    partitions={"0": PartitionAudit(records=2, written=1, lost=1, doubled=0)},
                )
            },
            outputs={"out": Passed(rows=1, foreign=2)},
            examples=(Example(Kind.LOST, "orders", "/orders/0/1"),),
        ),
        {
            "ok": False,
            "job": "orders",
            "lineage": "L1",
            "checkpoint": "chk-1",
            "by": "position",
            "key": [],
            "delivery": "exactly-once",
            "sources": {
                "orders": {
                    "topic": "orders",
                    "partitions": {
                        "0": {
                            "records": 2,
                            "written": 1,
                            "lost": 1,
                            "doubled": 0,
                            "ahead": 0,
                            "unknown": 0,
                        }
                    },
                    "lost": 1,
                    "doubled": 0,
                    "unknown": 0,
                    "ahead": 0,
                    "keyless": 0,
                    "unjudged": [],
                }
            },
            "outputs": {"out": 1},
            "lost": 1,
            "doubled": 0,
            "unknown": 0,
            "ahead": 0,
            "other_runs": 0,
            "foreign": 2,
            "examples": [{"kind": "lost", "source": "orders", "place": "/orders/0/1"}],
            "notes": [],
            "verdict": "1 record is lost.",
        },
    ),
]


def test_a_dead_letter_of_a_list_equals_the_letter_itself() -> None:
    assert LETTER.shorten() == LETTER


@pytest.mark.parametrize(("value", "told"), WRITTEN, ids=lambda case: type(case).__name__)
def test_the_json_of_a_value_that_is_only_written_stays_as_it_is(
    value: Any, told: dict[str, Any]
) -> None:
    assert json.loads(json.dumps(encode(value))) == told


@pytest.mark.parametrize(("value", "told"), GOLDEN, ids=lambda case: type(case).__name__)
def test_the_json_of_a_value_stays_as_it_is(value: Any, told: dict[str, Any]) -> None:
    assert json.loads(json.dumps(encode(value))) == told
    assert encode(decode(type(value), told)) == told
