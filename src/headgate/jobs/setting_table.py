"""The settings of a job, one row each.

The options of `headgate run`, the keys of headgate.toml, the names that a request may set and the
table in docs/reference/cli.md follow from these rows. A default stands here and nowhere else.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from headgate._units import format_duration, format_size, parse_duration, parse_size
from headgate.connectors.logs import DEFAULT_LOG
from headgate.engine.settings import Delivery, OnDataLoss
from headgate.jobs.lifecycle.restart import parse_strategy


class OnCancel(enum.StrEnum):
    """What becomes of a job's checkpoints when it is cancelled."""

    RETAIN = "retain"
    DELETE = "delete"


class LogLevel(enum.StrEnum):
    """How much Spark says in its log."""

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
        needs: What is needed, for a refusal.
        metavar: The value in the help of the command line.
        flag: The type of the option on the command line.
        load: Turns JSON of job.json into a value.
    """

    parse: Callable[[Any], Any]
    show: Callable[[Any], Any]
    needs: str
    metavar: str
    flag: type = str
    load: Callable[[Any], Any] = lambda stored: stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting of a job. A headgate.toml may set each of them.

    Attributes:
        name: The key in headgate.toml; `--name` on the command line.
        default: As a person writes it; None if the setting has no value by default.
        unset: What holds if the setting has no value.
        example: A value for hints, if the default is not a good one.
        help: One sentence, for the command line and the reference.
        panel: The group of options that it is listed in.
        verbs: The verbs that have an option for it.
        in_requests: Whether a request may set it. What names a folder, a machine or memory is the
            server's to say.
        in_profile: Whether it is a key of [profiles.NAME] in headgate.toml, and not of [job].
        short: The option's short name.
    """

    name: str
    kind: Kind
    default: str | int | None = None
    unset: str = "none"
    example: str | int | None = None
    help: str
    panel: Panel = Panel.SPARK
    verbs: tuple[str, ...] = ("run",)
    in_requests: bool = False
    in_profile: bool = False
    short: str | None = None

    @property
    def field(self) -> str:
        """The setting's name in Python."""
        return self.name.replace("-", "_")

    @property
    def default_value(self) -> Any:
        """The default as the setting's value."""
        return None if self.default is None else self.kind.parse(self.default)

    @property
    def shown_default(self) -> str:
        """The default as help and reference show it."""
        return self.unset if self.default is None else str(self.default)

    @property
    def shown_example(self) -> str:
        """A value that is accepted, as TOML."""
        return json.dumps(self.default if self.example is None else self.example)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(value)
    return value.strip()


def _count(value: Any) -> int:
    # To Python, true is a whole number.
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(value)
    return value


def _size(value: Any) -> int:
    return _count(value if isinstance(value, int) else parse_size(_text(value)))


def _duration(value: Any) -> timedelta:
    return parse_duration(_text(value))


def _folder(value: Any) -> Path:
    return value if isinstance(value, Path) else Path(_text(value))


def _show_optional(show: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else show(value)


def _load_duration(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def _text_kind(metavar: str) -> Kind:
    return Kind(_text, _show_optional(str), "text", metavar)


def _choice(choices: type[enum.StrEnum]) -> Kind:
    return Kind(
        parse=lambda value: choices(_text(value)),
        show=str,
        needs=f"one of {', '.join(choices)}",
        metavar="|".join(choices),
        flag=choices,
        load=choices,
    )


_COUNT = Kind(_count, _show_optional(int), "a whole number of 1 or more", "N", int)
_SIZE = Kind(_size, format_size, "a size", "SIZE")
_DURATION = Kind(_duration, format_duration, "a duration", "DURATION", load=_load_duration)
_OPTIONAL_DURATION = Kind(
    lambda value: None if value == "none" else _duration(value),
    _show_optional(format_duration),
    "a duration or none",
    "DURATION",
    load=_load_duration,
)
_FOLDER = Kind(_folder, _show_optional(str), "a folder", "DIR", Path, load=Path)
# A run's options hold the strategy as text.
_STRATEGY = Kind(lambda value: parse_strategy(_text(value)), str, "a restart strategy", "STRATEGY")

SETTINGS = (
    Setting(
        name="on",
        kind=_text_kind("LOG"),
        default=DEFAULT_LOG,
        help="Location of topics without a location of their own: files:DIR, kafka://HOST:9092 or "
        "pulsar://HOST:6650.",
        panel=Panel.READING,
        verbs=("run", "setup"),
    ),
    Setting(
        name="on-data-loss",
        kind=_choice(OnDataLoss),
        default="fail",
        help="What to do when unread records have been deleted.",
        panel=Panel.READING,
        in_requests=True,
    ),
    Setting(
        name="batch-every",
        kind=_DURATION,
        default="1s",
        help="Interval of batches; 0s runs them without a pause.",
        panel=Panel.READING,
        in_requests=True,
    ),
    Setting(
        name="min-pause",
        kind=_DURATION,
        default="0s",
        example="500ms",
        help="Minimum time between the end of a batch and the next.",
        panel=Panel.READING,
        in_requests=True,
    ),
    Setting(
        name="max-batch",
        kind=_SIZE,
        default="64MiB",
        help="Maximum number of bytes that a batch reads of one topic.",
        panel=Panel.READING,
        in_requests=True,
    ),
    Setting(
        name="max-record",
        kind=_SIZE,
        default="1MiB",
        help="Maximum size of a record; a larger one is a dead letter.",
        panel=Panel.READING,
        in_requests=True,
    ),
    Setting(
        name="delivery",
        kind=_choice(Delivery),
        default="exactly-once",
        help="Delivery guarantee of the outputs on Kafka and Pulsar.",
        panel=Panel.KEEPING,
        in_requests=True,
    ),
    Setting(
        name="checkpoint-every",
        kind=_DURATION,
        default="5s",
        help="Interval in which one batch is kept as a checkpoint.",
        panel=Panel.KEEPING,
        in_requests=True,
    ),
    Setting(
        name="retain",
        kind=_COUNT,
        default=10,
        help="Number of checkpoints to keep.",
        panel=Panel.KEEPING,
        in_requests=True,
    ),
    Setting(
        name="retain-for",
        kind=_OPTIONAL_DURATION,
        example="24h",
        help="How long to keep further checkpoints, thinned with age.",
        panel=Panel.KEEPING,
        in_requests=True,
    ),
    Setting(
        name="on-cancel",
        kind=_choice(OnCancel),
        default="retain",
        help="What happens to checkpoints when the job is cancelled.",
        panel=Panel.KEEPING,
        in_requests=True,
    ),
    Setting(
        name="checkpoints",
        kind=_FOLDER,
        unset="the job's folder",
        example="checkpoints",
        help="Folder for the checkpoints of new runs.",
        panel=Panel.KEEPING,
    ),
    Setting(
        name="restart",
        kind=_STRATEGY,
        default="exponential:1s,60s,1.5",
        help="Restart strategy: exponential:FIRST,LONGEST,FACTOR, fixed-delay:RESTARTS,WAIT, "
        "failure-rate:RESTARTS,PER,WAIT or none.",
        panel=Panel.KEEPING,
        in_requests=True,
    ),
    Setting(
        name="parallelism",
        kind=_COUNT,
        unset="cores",
        example=4,
        help="Number of state partitions and of tasks per stage.",
        in_requests=True,
        short="-p",
    ),
    Setting(
        name="driver-memory",
        kind=_SIZE,
        default="2GiB",
        help="Heap of Spark's driver.",
        in_profile=True,
    ),
    Setting(
        name="profile",
        kind=_text_kind("NAME"),
        example="large",
        help="Profile of headgate.toml: memory, master, log level.",
        verbs=("run", "setup"),
        in_requests=True,
    ),
    Setting(
        name="executor-memory",
        kind=_SIZE,
        default="1GiB",
        help="Heap of each of Spark's executors, if the master starts them.",
        verbs=(),
        in_profile=True,
    ),
    Setting(
        name="state-memory",
        kind=_SIZE,
        default="512MiB",
        help="Memory of the state beside the heap.",
        verbs=(),
        in_profile=True,
    ),
    Setting(
        name="master",
        kind=_text_kind("MASTER"),
        default="local[*]",
        help="Spark's master.",
        verbs=(),
        in_profile=True,
    ),
    Setting(
        name="log-level",
        kind=_choice(LogLevel),
        default="info",
        help="Level of Spark's log.",
        verbs=(),
        in_profile=True,
    ),
)
BY_NAME: Mapping[str, Setting] = {each.name: each for each in SETTINGS}
DEFAULTS: Mapping[str, Any] = {each.name: each.default_value for each in SETTINGS}
