"""The settings of a job, one row each.

The options of `headgate run`, the keys of headgate.toml, the names that a request may set and the
table in docs/reference/cli.md follow from these rows. A default stands here and nowhere else.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from headgate._locations import Location, parse_location
from headgate._units import format_duration, format_size, parse_duration, parse_size
from headgate.connectors.logs import DEFAULT_LOG
from headgate.engine.settings import Delivery, LogFormat, OnDataLoss
from headgate.errors import HeadgateError
from headgate.jobs.lifecycle.restart import parse_strategy

# As RFC 3986 has it.
_SCHEME = re.compile("[A-Za-z][A-Za-z0-9+.-]*")
_SHORTEST_LEASE = timedelta(seconds=5)
_SHORTEST_TIMEOUT = timedelta(seconds=10)


class OnCancel(enum.StrEnum):
    """What happens to a job's checkpoints when it is canceled."""

    RETAIN = "retain"
    DELETE = "delete"


class LogLevel(enum.StrEnum):
    """The level of Spark's log."""

    ERROR = "error"
    WARN = "warn"
    INFO = "info"
    DEBUG = "debug"


class Panel(enum.StrEnum):
    """The groups of options in the help of `headgate run`."""

    STARTING = "How it starts and ends"
    READING = "What it reads"
    KEEPING = "Checkpoints and restarts"
    SPARK = "Spark"


@dataclass(frozen=True, slots=True)
class Kind:
    """The values that a setting takes.

    Attributes:
        parse: Turns the value of a flag, a file or a request into the setting's value, or raises
            HeadgateError or ValueError.
        show: Turns a value into JSON as a person writes it.
        needs: The valid values, for an error.
        metavar: The value in the help of the command line.
        flag: The type of the option on the command line.
    """

    parse: Callable[[Any], Any]
    show: Callable[[Any], Any]
    needs: str
    metavar: str
    flag: type = str


class Scope(enum.Enum):
    """Where a setting may be set: in headgate.toml only, also by a flag, or also by a request.

    A request must not set a folder, a machine or the memory of the server.
    """

    FILE = enum.auto()
    FLAG = enum.auto()
    REQUEST = enum.auto()


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a job.

    Attributes:
        name: The key in headgate.toml; `--name` on the command line.
        default: As a user writes it; None if the setting has no value by default.
        panel: The group of options in the help.
        help: One sentence, for the command line and the reference.
        unset: The effect if the setting has no value.
        example: A value for hints, if the default is not a good one.
        more_verbs: The verbs besides `run` that have an option for it.
        in_profile: Whether it is a key of [profiles.NAME] in headgate.toml, and not of [job].
        short: The option's short name.
    """

    name: str
    kind: Kind
    default: str | int | None
    panel: Panel
    scope: Scope
    _: KW_ONLY
    help: str
    unset: str = "none"
    example: str | int | None = None
    more_verbs: tuple[str, ...] = ()
    in_profile: bool = False
    short: str | None = None

    @property
    def verbs(self) -> tuple[str, ...]:
        """The verbs that have an option for the setting."""
        return () if self.scope is Scope.FILE else ("run", *self.more_verbs)

    @property
    def field(self) -> str:
        return self.name.replace("-", "_")

    @property
    def default_value(self) -> Any:
        return None if self.default is None else self.kind.parse(self.default)

    @property
    def shown_default(self) -> str:
        """The default as help and reference show it."""
        return self.unset if self.default is None else str(self.default)

    @property
    def shown_example(self) -> str:
        """A value that is accepted, as TOML."""
        return json.dumps(self.default if self.example is None else self.example)


def parse_typed(settings: Mapping[str, str]) -> dict[str, str | int]:
    """Return settings that a user typed as texts in the terms of headgate.toml.

    A text that is not a number stays a text, which `read_settings` refuses.
    """
    return {
        name: int(text) if BY_NAME[name].kind.flag is int and text.isdecimal() else text
        for name, text in settings.items()
    }


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(value)
    return value.strip()


def _count(value: Any) -> int:
    # In Python, True is an int.
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(value)
    return value


def _size(value: Any) -> int:
    return _count(value if isinstance(value, int) else parse_size(_text(value)))


def _duration(value: Any) -> timedelta:
    return parse_duration(_text(value))


def _lease(value: Any) -> timedelta:
    # It is renewed three times in this time, by requests to the store.
    return _bounded(value, least=_SHORTEST_LEASE)


def _timeout(value: Any) -> timedelta:
    # Eight reports must be missing in this time.
    return _bounded(value, least=_SHORTEST_TIMEOUT)


def _bounded(value: Any, *, least: timedelta) -> timedelta:
    duration = _duration(value)
    if duration < least:
        raise ValueError(value)
    return duration


def _place(value: Any) -> Location:
    text = str(value) if isinstance(value, Path) else _text(value)
    scheme, colon, rest = text.partition(":")
    if colon and scheme.lower() == "file":
        return _parse_file_url(text, rest)
    # Other names with a colon are those of folders.
    if colon and rest.startswith("/") and _SCHEME.fullmatch(scheme):
        return parse_location(text)
    return Path(text)


def _path(value: Any) -> Path:
    return value if isinstance(value, Path) else Path(_text(value))


def _parse_file_url(url: str, rest: str) -> Path:
    host = ""
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        rest = slash + path
    if host not in ("", "localhost") or not rest.startswith("/"):
        raise HeadgateError(
            "BAD_SETTING",
            f"cannot keep checkpoints in {url!r}: a file: URL must have an absolute path on this "
            "machine",
            hint="write it as file:///mnt/checkpoints",
        )
    return Path(unquote(rest))


def _show_optional(show: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else show(value)


def _text_kind(metavar: str) -> Kind:
    return Kind(_text, _show_optional(str), "text", metavar)


def _choice(choices: type[enum.StrEnum]) -> Kind:
    return Kind(
        parse=lambda value: choices(_text(value)),
        show=str,
        needs=f"one of {', '.join(choices)}",
        metavar="|".join(choices),
        flag=choices,
    )


_COUNT = Kind(_count, _show_optional(int), "a positive integer", "N", int)
_SIZE = Kind(_size, format_size, "a size", "SIZE")
_OPTIONAL_SIZE = Kind(_size, _show_optional(format_size), "a size", "SIZE")
_DURATION = Kind(_duration, format_duration, "a duration", "DURATION")
_OPTIONAL_DURATION = Kind(
    lambda value: None if value == "none" else _duration(value),
    _show_optional(format_duration),
    "a duration or none",
    "DURATION",
)
# The flag is text: a Path would turn file:///DIR into file:/DIR.
_PLACE = Kind(_place, _show_optional(str), "a folder or an address", "DIR|URL")
_LEASE = Kind(_lease, format_duration, "a duration of 5s or more", "DURATION")
_TIMEOUT = Kind(_timeout, format_duration, "a duration of 10s or more", "DURATION")
_FILE = Kind(_path, _show_optional(str), "a file", "FILE")
# A run's options hold the strategy as text.
_STRATEGY = Kind(lambda value: parse_strategy(_text(value)), str, "a restart strategy", "STRATEGY")

_READING, _KEEPING, _SPARK = Panel.READING, Panel.KEEPING, Panel.SPARK
_IN_FILE, _FLAG, _REQUEST = Scope.FILE, Scope.FLAG, Scope.REQUEST
SETTINGS = (
    Setting("on", _text_kind("LOG"), DEFAULT_LOG, _READING, _FLAG, more_verbs=("setup",),
            help="Location of topics without a location of their own: files:DIR, "
            "kafka://HOST:9092 or pulsar://HOST:6650."),
    Setting("on-data-loss", _choice(OnDataLoss), "fail", _READING, _REQUEST,
            help="What to do when unread records have been deleted."),
    Setting("batch-every", _DURATION, "1s", _READING, _REQUEST,
            help="Interval of batches; 0s runs them without a pause."),
    Setting("min-pause", _DURATION, "0s", _READING, _REQUEST, example="500ms",
            help="Minimum time between the end of a batch and the next."),
    Setting("max-batch", _SIZE, "64MiB", _READING, _REQUEST,
            help="Maximum number of bytes that a batch reads of one topic."),
    Setting("max-record", _SIZE, "1MiB", _READING, _REQUEST,
            help="Maximum size of a record; a larger one is a dead letter."),
    Setting("delivery", _choice(Delivery), "exactly-once", _KEEPING, _REQUEST,
            help="Delivery guarantee of the outputs on Kafka and Pulsar."),
    Setting("checkpoint-every", _DURATION, "5s", _KEEPING, _REQUEST,
            help="Interval in which one batch is kept as a checkpoint."),
    Setting("retain", _COUNT, 10, _KEEPING, _REQUEST,
            help="Number of checkpoints to keep."),
    Setting("retain-for", _OPTIONAL_DURATION, None, _KEEPING, _REQUEST, example="24h",
            help="How long to keep further checkpoints, thinned with age."),
    Setting("on-cancel", _choice(OnCancel), "retain", _KEEPING, _REQUEST,
            help="What happens to checkpoints when the job is canceled."),
    Setting("checkpoints", _PLACE, None, _KEEPING, _FLAG, unset="the job's folder",
            example="checkpoints",
            help="Folder for the checkpoints of new runs, or an address: s3a://BUCKET/FOLDER, or "
            "shared:///FOLDER for a folder that all hosts share."),
    Setting("restart", _STRATEGY, "exponential:1s,60s,1.5", _KEEPING, _REQUEST,
            help="Restart strategy: exponential:FIRST,LONGEST,FACTOR, "
            "fixed-delay:RESTARTS,WAIT, failure-rate:RESTARTS,PER,WAIT or none."),
    Setting("parallelism", _COUNT, None, _SPARK, _REQUEST, unset="cores", example=4, short="-p",
            help="Number of state partitions and of tasks per stage."),
    Setting("driver-memory", _SIZE, "2GiB", _SPARK, _FLAG, in_profile=True,
            help="Heap of Spark's driver."),
    Setting("master", _text_kind("MASTER"), "local[*]", _SPARK, _FLAG, in_profile=True,
            help="Spark's master: local[N], spark://HOST:7077, yarn or k8s://URL."),
    Setting("executors", _COUNT, None, _SPARK, _FLAG, in_profile=True, example=2,
            unset="as many as the cluster gives",
            help="Number of executors on a cluster."),
    Setting("executor-cores", _COUNT, None, _SPARK, _FLAG, in_profile=True, example=1,
            unset="1 with executors, else all of a worker",
            help="Number of tasks that an executor runs at a time."),
    Setting("executor-memory", _SIZE, "1GiB", _SPARK, _FLAG, in_profile=True,
            help="Heap of each executor on a cluster."),
    Setting("driver-host", _text_kind("HOST"), None, _SPARK, _FLAG, in_profile=True,
            unset="the address that reaches the master", example="10.0.0.5",
            help="Name or address at which executors reach the driver."),
    Setting("py-env", _FILE, None, _SPARK, _FLAG, in_profile=True, example="env.tar.gz",
            help="Archive with the Python environment of executors, of venv-pack or conda-pack."),
    Setting("log-format", _choice(LogFormat), "text", _SPARK, _FLAG, in_profile=True,
            example="json",
            help="Form of the lines of Spark's log."),
    Setting("profile", _text_kind("NAME"), None, _SPARK, _REQUEST, example="large",
            more_verbs=("setup",),
            help="Profile of headgate.toml, or the built-in small: memory, master, log level."),
    Setting("state-memory", _SIZE, "512MiB", _SPARK, _IN_FILE, in_profile=True,
            help="Memory of the state beside the heap."),
    Setting("worker-memory", _SIZE, "1GiB", _SPARK, _IN_FILE, in_profile=True,
            help="Memory of each process that calls Python functions; one for each task at work."),
    Setting("metaspace", _OPTIONAL_SIZE, None, _SPARK, _IN_FILE, in_profile=True,
            unset="no limit", example="256MiB",
            help="Limit of the classes in the driver and in each executor."),
    Setting("code-cache", _SIZE, "512MiB", _SPARK, _IN_FILE, in_profile=True,
            help="Limit of the compiled code in the driver and in each executor."),
    Setting("direct-memory", _OPTIONAL_SIZE, None, _SPARK, _IN_FILE, in_profile=True,
            unset="as the heap", example="256MiB",
            help="Limit of the buffers beside the heap, such as those of the network, in the "
            "driver and in each executor."),
    Setting("off-heap-memory", _OPTIONAL_SIZE, None, _SPARK, _IN_FILE, in_profile=True,
            unset="none", example="256MiB",
            help="Memory beside the heap of the driver and of each executor, in which Spark sorts "
            "rows instead of in the heap."),
    Setting("executor-overhead", _OPTIONAL_SIZE, None, _SPARK, _IN_FILE, in_profile=True,
            unset="a tenth of the heap, at least 384MiB, and state-memory", example="1GiB",
            help="Memory of an executor's container beside its heap, on YARN and Kubernetes."),
    Setting("call-timeout", _DURATION, "10m", _SPARK, _IN_FILE, in_profile=True,
            help="Maximum time of one call of a Python function with a batch of rows."),
    Setting("driver-bind", _text_kind("ADDRESS"), None, _SPARK, _IN_FILE, in_profile=True,
            unset="driver-host", example="0.0.0.0",
            help="Address at which the driver listens for executors."),
    Setting("executor-wait", _DURATION, "2m", _SPARK, _IN_FILE, in_profile=True,
            help="Maximum time that a job waits without any executor before it restarts."),
    Setting("executor-timeout", _TIMEOUT, "40s", _SPARK, _IN_FILE, in_profile=True,
            help="Time after which an executor that reports nothing counts as lost; at least 10s."),
    Setting("python", _text_kind("PATH"), None, _SPARK, _IN_FILE, in_profile=True,
            unset="this Python", example="/usr/bin/python3",
            help="Python of the executors, by its path there."),
    Setting("log-level", _choice(LogLevel), "info", _SPARK, _IN_FILE, in_profile=True,
            help="Level of Spark's log."),
    Setting("lease-expires", _LEASE, "30s", _SPARK, _IN_FILE, in_profile=True,
            help="Time after which another host may take over a job with checkpoints on a store, "
            "if its driver has died; at least 5s."),
)  # fmt: skip
BY_NAME: Mapping[str, Setting] = {setting.name: setting for setting in SETTINGS}
DEFAULTS: Mapping[str, Any] = {setting.name: setting.default_value for setting in SETTINGS}
