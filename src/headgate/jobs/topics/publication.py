"""Sends one's own records to a topic: JSON objects, one per line."""

from __future__ import annotations

import io
import json
import select
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, NoReturn

from headgate._clock import Clock, SystemClock
from headgate._codec import RoundedNumber, shaped
from headgate.connectors.contract.connector import Records, Sink
from headgate.connectors.contract.setup import TopicRole
from headgate.connectors.logs import DEFAULT_LOG, parse_log
from headgate.errors import HeadgateError
from headgate.jobs.topics.listing import create_topic, show_topic

STANDARD_INPUT = "-"

# The size of a batch: an embedded topic gets a file for each.
_BLOCK = 4 << 20
# How long a batch waits for more input, so that records of a slow pipe do not wait for a full one.
_PAUSE_S = 0.2
_BLANK = b" \t\r\n"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class PublishProgress:
    """The acknowledged records so far, and the bytes of input that they end at."""

    records: int
    size: int


@dataclass(frozen=True, slots=True)
class Published:
    """The acknowledged records of a topic.

    Attributes:
        created: True if the topic was created for them.
        seconds: From the first record to the last acknowledgement.
        where: The folder or the servers of the topic.
    """

    topic: str
    created: bool
    records: int
    seconds: RoundedNumber
    where: str

    __get_pydantic_core_schema__ = shaped(computed={"records_per_s": "records_per_s"})

    @property
    def records_per_s(self) -> int:
        """Records per second over the whole sending."""
        return round(self.records / self.seconds) if self.seconds else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Where records come from and go to.

    Attributes:
        on: The log, as a value of `--on`.
        file: The name of the input in messages; `-` for standard input.
        key: The field that is a record's key; None for records without a key.
        create: Create the topic if it is missing, with the defaults of its log.
    """

    topic: str
    on: str = DEFAULT_LOG
    file: str = STANDARD_INPUT
    key: str | None = None
    create: bool = False


def publish_records(
    given: Publication,
    source: BinaryIO,
    *,
    progress: Callable[[PublishProgress], None] = lambda _: None,
    clock: Clock | None = None,
) -> Published:
    """Send the lines of an input to a topic, and return their number.

    Lines are sent unchanged and in order; blank lines are skipped. They are sent as they arrive, so
    a pipe may stay open. Embedded topics have no keys, and get all records in partition 0.

    Args:
        progress: Called after each acknowledgement.

    Raises:
        HeadgateError: BAD_RECORD for the first line that is not a JSON object or has no key: the
            records before it were sent, and none after it. TOPIC_NOT_FOUND; errors of the log,
            whose message ends with the number of acknowledged records.
    """
    clock = clock or SystemClock()
    if given.create:
        topic = create_topic(given.on, given.topic)
        created, where = not topic.existed, topic.where
    else:
        created, where = False, show_topic(given.on, given.topic, last_files=0).where
    batch = _Batch()
    roles = {given.topic: TopicRole.TABLE}
    with parse_log(given.on).open_sink(roles, lambda _topic, _lines: batch.records()) as sink:
        started = clock.monotonic()
        sent = _send(given, source, batch, sink, progress)
        return Published(given.topic, created, sent, clock.monotonic() - started, where)


@dataclass(slots=True)
class _Batch:
    """The lines to send next, without newlines, and their keys."""

    lines: list[bytes] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)

    def records(self) -> Records:
        """Return the keys and values."""
        return zip(self.keys, self.lines, strict=True)

    def clear(self) -> None:
        """Forget the lines once they are sent."""
        self.lines.clear()
        self.keys.clear()


def _send(
    given: Publication,
    source: BinaryIO,
    batch: _Batch,
    sink: Sink,
    progress: Callable[[PublishProgress], None],
) -> int:
    sent, size, number = 0, 0, 0

    def flush() -> None:
        nonlocal sent
        if batch.lines:
            _send_batch(given, batch, sink, sent)
            sent += len(batch.lines)
            batch.clear()

    for block in read_blocks(source):
        for line in block.removesuffix(b"\n").split(b"\n"):
            number += 1
            record = (line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line).strip(_BLANK)
            if not record:
                continue
            try:
                key = _read_key(record, given.key)
            except ValueError as problem:
                flush()
                raise _bad_record(given, number, str(problem), sent) from problem
            batch.lines.append(record)
            batch.keys.append(key)
        flush()
        size += len(block)
        progress(PublishProgress(sent, size))
    return sent


def _send_batch(given: Publication, batch: _Batch, sink: Sink, sent: int) -> None:
    try:
        sink(given.topic, b"\n".join((*batch.lines, b"")), len(batch.lines))
    except HeadgateError as error:
        so_far = (
            f"{sent} records were sent before, and some of the next {len(batch.lines)} may have"
        )
        message = f"{error.message}; {so_far} arrived"
        raise HeadgateError.from_json({**error.to_json(), "message": message}) from error


def read_blocks(source: BinaryIO) -> Iterator[bytes]:
    """Yield whole lines, many at once: as many as arrive without a pause, up to some megabytes."""
    pending: list[bytes] = []
    size = 0
    # `read1` returns what there is, where `read` would wait for all of it.
    read = getattr(source, "read1", source.read)
    while chunk := read(_BLOCK):
        pending.append(chunk)
        size += len(chunk)
        if b"\n" not in chunk or (size < _BLOCK and _has_more(source)):
            continue
        whole, newline, rest = b"".join(pending).rpartition(b"\n")
        pending, size = [rest], len(rest)
        yield whole + newline
    last = b"".join(pending)
    if last:
        yield last


def _has_more(source: BinaryIO) -> bool:
    """Return whether more input, or its end, arrives within a short time."""
    try:
        return bool(select.select([source.fileno()], [], [], _PAUSE_S)[0])
    except io.UnsupportedOperation:
        return True


def _read_key(record: bytes, key: str | None) -> bytes | None:
    """Return the key of a record; raise ValueError if the record or its key cannot be sent."""
    try:
        row = json.loads(record.decode(), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON ({error.msg} at column {error.colno})") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(row, dict):
        raise ValueError(f"it must be a JSON object, got {_kind(row)}")
    if key is None:
        return None
    value = row.get(key)
    if value is None:
        raise ValueError(f"it has no {key!r}, which is the key")
    if isinstance(value, str):
        return value.encode()
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it is not JSON ({name} is not a number)")


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case list():
            return "an array"
        case str():
            return "a string"
        case bool():
            return "a boolean"
    return "a number"


def _bad_record(given: Publication, number: int, problem: str, sent: int) -> HeadgateError:
    of = "" if given.file == STANDARD_INPUT else f" of {given.file}"
    before = "the record before it was" if sent == 1 else f"the {sent} records before it were"
    outcome = f"{before} sent, and none after it" if sent else "no record was sent"
    return HeadgateError(
        "BAD_RECORD",
        f"cannot publish line {number}{of} to topic {given.topic!r}: {problem}; {outcome}",
        hint=_next_step(given, number, sent),
    )


def _next_step(given: Publication, number: int, sent: int) -> str:
    command = ["headgate", "publish", given.topic]
    command += [] if given.key is None else ["--key", given.key]
    command += [] if given.on == DEFAULT_LOG else ["--on", given.on]
    again = shlex.join(command)
    if given.file == STANDARD_INPUT:
        return f"send one JSON object per line, from line {number} on: {again}"
    file = shlex.quote(given.file)
    if sent:
        return f"correct line {number}, and send the rest: tail -n +{number} {file} | {again}"
    # Files of one array, and of objects over several lines, are common.
    objects = """jq -c 'if type == "array" then .[] else . end'"""
    return f"write one object per line: {objects} {file} | {again}"
