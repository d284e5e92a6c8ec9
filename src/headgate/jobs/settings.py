"""A job's settings: from flags, from headgate.toml, or as they are by default.

A headgate.toml lies beside the flow or in the working directory; where both say something, the
one beside the flow wins, key by key, and flags win over both. A relative folder in a
headgate.toml is seen from that file.
"""

from __future__ import annotations

import enum
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from headgate._units import format_duration, format_size, parse_duration, parse_size
from headgate.connectors.logs import DEFAULT_LOG
from headgate.engine.settings import MIB, Delivery, OnDataLoss
from headgate.errors import HeadgateError
from headgate.flow.names import did_you_mean
from headgate.jobs.lifecycle.restart import DEFAULT_RESTART, RestartStrategy, parse_strategy

CONFIG_FILE = "headgate.toml"


class Origin(enum.StrEnum):
    """Where a setting came from."""

    FLAG = "flag"
    FILE = "headgate.toml"
    DEFAULT = "default"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting of a job, resolved.

    Attributes:
        batch_every: How often a batch begins; zero is as fast as possible.
        checkpoint_every: One batch in each of these is kept as a checkpoint.
        min_pause: The least time between the end of a batch and the next.
        retain: How many checkpoints are kept.
        retain_for: How long more of them are kept, thinned with age; None for no longer.
        parallelism: State partitions; None for what the run has, or the number of cores.
        checkpoints: A folder for checkpoints in place of the job's own.
        on: The log of topics that are known by name alone.
        delivery: How often a row is in an output, where its log serves both.
        on_data_loss: Whether a job ends where records are gone that it has not read.
        profile: The profile that the settings from `driver_memory` on are of, if any.
        state_memory: What state may take beside the heap, in bytes.
        origins: Where each setting came from, by its name in headgate.toml.
    """

    batch_every: timedelta
    checkpoint_every: timedelta
    min_pause: timedelta
    retain: int
    retain_for: timedelta | None
    on_cancel: OnCancel
    restart: RestartStrategy
    parallelism: int | None
    max_batch: int
    max_record: int
    checkpoints: Path | None
    on: str
    delivery: Delivery
    on_data_loss: OnDataLoss
    profile: str | None
    driver_memory: int
    executor_memory: int
    state_memory: int
    master: str
    log_level: LogLevel
    origins: Mapping[str, Origin]

    def to_json(self) -> dict[str, Any]:
        """Return each setting as a person writes it, and where it came from."""
        return {
            name: {
                "value": key.kind.show(getattr(self, _field(name))),
                "from": self.origins[name].value,
            }
            for name, key in _KEYS.items()
        }


@dataclass(frozen=True, slots=True)
class _Kind:
    """What values a setting takes.

    Attributes:
        parse: Turns what a flag or a file says into a value, or raises HeadgateError or
            ValueError.
        show: Turns a value into JSON that reads well.
        needs: What is needed, for a refusal.
    """

    parse: Callable[[Any], Any]
    show: Callable[[Any], Any]
    needs: str


@dataclass(frozen=True, slots=True)
class _Key:
    """One setting: its values, the one by default, and one to show in a hint, as TOML."""

    kind: _Kind
    default: Any
    example: str


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


def _optional_duration(value: Any) -> timedelta | None:
    return None if value == "none" else parse_duration(_text(value))


def _folder(value: Any) -> Path:
    return value if isinstance(value, Path) else Path(_text(value))


def _show_optional(show: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else show(value)


def _choice(choices: type[enum.StrEnum]) -> _Kind:
    return _Kind(lambda value: choices(_text(value)), str, f"one of {', '.join(choices)}")


_TEXT = _Kind(_text, _show_optional(str), "text")
_COUNT = _Kind(_count, _show_optional(int), "a whole number of 1 or more")
_SIZE = _Kind(_size, format_size, "a size")
_DURATION = _Kind(lambda value: parse_duration(_text(value)), format_duration, "a duration")
_OPTIONAL_DURATION = _Kind(
    _optional_duration, _show_optional(format_duration), "a duration or none"
)
_FOLDER = _Kind(_folder, _show_optional(str), "a folder")
_STRATEGY = _Kind(lambda value: parse_strategy(_text(value)), str, "a restart strategy")

_JOB: Mapping[str, _Key] = {
    "batch-every": _Key(_DURATION, timedelta(seconds=1), '"1s"'),
    "checkpoint-every": _Key(_DURATION, timedelta(seconds=5), '"5s"'),
    "min-pause": _Key(_DURATION, timedelta(0), '"500ms"'),
    "retain": _Key(_COUNT, 10, "10"),
    "retain-for": _Key(_OPTIONAL_DURATION, None, '"24h"'),
    "on-cancel": _Key(_choice(OnCancel), OnCancel.RETAIN, '"retain"'),
    "restart": _Key(_STRATEGY, parse_strategy(DEFAULT_RESTART), f'"{DEFAULT_RESTART}"'),
    "parallelism": _Key(_COUNT, None, "4"),
    "max-batch": _Key(_SIZE, 64 * MIB, '"64MiB"'),
    "max-record": _Key(_SIZE, MIB, '"1MiB"'),
    "checkpoints": _Key(_FOLDER, None, '"checkpoints"'),
    "on": _Key(_TEXT, DEFAULT_LOG, f'"{DEFAULT_LOG}"'),
    "delivery": _Key(_choice(Delivery), Delivery.EXACTLY_ONCE, '"exactly-once"'),
    "on-data-loss": _Key(_choice(OnDataLoss), OnDataLoss.FAIL, '"fail"'),
    "profile": _Key(_TEXT, None, '"large"'),
}
_PROFILE: Mapping[str, _Key] = {
    "driver-memory": _Key(_SIZE, 2048 * MIB, '"2GiB"'),
    "executor-memory": _Key(_SIZE, 1024 * MIB, '"1GiB"'),
    "state-memory": _Key(_SIZE, 512 * MIB, '"512MiB"'),
    "master": _Key(_TEXT, "local[*]", '"local[*]"'),
    "log-level": _Key(_choice(LogLevel), LogLevel.INFO, '"info"'),
}
_KEYS: Mapping[str, _Key] = {**_JOB, **_PROFILE}


@dataclass(frozen=True, slots=True)
class _Config:
    """What the files say, checked: values by key, and by profile and key."""

    job: Mapping[str, Any]
    profiles: Mapping[str, Mapping[str, Any]]


def read_settings(
    flow_folder: Path,
    *,
    flags: Mapping[str, Any] | None = None,
    working: Path | None = None,
) -> Settings:
    """Return the settings of the job whose flow lies in a folder.

    Args:
        flags: What was given on the command line, by the names of headgate.toml and in its
            terms: texts for durations and sizes, whole numbers for counts; None is not given.
        working: The working directory, unless it is the process's own.
    """
    config = _read_config(flow_folder, Path.cwd() if working is None else working)
    given = {
        name: _parse(_KEYS[name], name, value, place=f" (in --{name})", hint=_flag_hint(name))
        for name, value in (flags or {}).items()
        if value is not None
    }
    profile = given.get("profile", config.job.get("profile"))
    from_files = {**config.job, **_get_profile(config, profile)}
    values: dict[str, Any] = {}
    origins = {}
    for name, key in _KEYS.items():
        origins[name] = (
            Origin.FLAG if name in given else Origin.FILE if name in from_files else Origin.DEFAULT
        )
        values[_field(name)] = given.get(name, from_files.get(name, key.default))
    return Settings(**values, origins=origins)


def _field(name: str) -> str:
    return name.replace("-", "_")


def _get_profile(config: _Config, name: str | None) -> Mapping[str, Any]:
    if name is None:
        return {}
    if name not in config.profiles:
        found = ", ".join(config.profiles) or "none"
        raise HeadgateError(
            "PROFILE_NOT_FOUND",
            f"cannot use profile {name!r}: the profiles of {CONFIG_FILE} are {found}",
            hint=did_you_mean(name, config.profiles)
            if config.profiles
            else f"add a table [profiles.{name}] to {CONFIG_FILE}",
        )
    return config.profiles[name]


def _read_config(flow_folder: Path, working: Path) -> _Config:
    folders = [working]
    if flow_folder.resolve() != working.resolve():
        folders.append(flow_folder)
    job: dict[str, Any] = {}
    profiles: dict[str, dict[str, Any]] = {}
    for folder in folders:
        file = folder / CONFIG_FILE
        if file.is_file():
            read = _FileReader(file, working).read()
            job.update(read.job)
            for name, values in read.profiles.items():
                profiles.setdefault(name, {}).update(values)
    return _Config(job, profiles)


class _FileReader:
    """Reads one headgate.toml, and knows where in it things stand."""

    def __init__(self, file: Path, working: Path) -> None:
        self._folder = file.parent
        self._is_working = file.parent.resolve() == working.resolve()
        inside = file.resolve().is_relative_to(working.resolve())
        self._shown = str(file.resolve().relative_to(working.resolve()) if inside else file)
        self._text = ""
        self._file = file

    def read(self) -> _Config:
        try:
            self._text = self._file.read_text(encoding="utf-8")
            content = tomllib.loads(self._text)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            told = str(error)
            raise HeadgateError(
                "CONFIG_BROKEN",
                f"cannot read {self._shown}: {told[:1].lower()}{told[1:]}",
                hint='put texts in quotes: min-pause = "500ms"',
            ) from error
        for name, value in content.items():
            if name not in ("job", "profiles"):
                raise self._unknown(name, (), self._better_table(name, value))
        job = self._values(self._table(content, "job"), _JOB, ("job",))
        profiles = self._table(content, "profiles")
        tables = {name: self._table(profiles, name, "profiles") for name in profiles}
        return _Config(
            job,
            {
                name: self._values(table, _PROFILE, ("profiles", name))
                for name, table in tables.items()
            },
        )

    def _better_table(self, name: str, value: Any) -> str:
        if name in _JOB and not isinstance(value, dict):
            return f"write [job] on a line above {name}"
        return did_you_mean(name, ["job", "profiles"])

    def _table(self, content: Mapping[str, Any], name: str, *above: str) -> Mapping[str, Any]:
        table = content.get(name, {})
        if isinstance(table, dict):
            return table
        path = (*above, name)
        raise HeadgateError(
            "BAD_SETTING",
            f"cannot use {table!r} as {name}: it needs a table{self._place(above, name)}",
            hint=f"write [{'.'.join(path)}] on a line of its own, and its settings below",
        )

    def _values(
        self, table: Mapping[str, Any], keys: Mapping[str, _Key], path: tuple[str, ...]
    ) -> dict[str, Any]:
        values = {}
        for name, value in table.items():
            if name not in keys:
                raise self._unknown(name, path, self._better_place(name, keys))
            hint = f"write {name} = {keys[name].example}"
            parsed = _parse(keys[name], name, value, place=self._place(path, name), hint=hint)
            values[name] = self._seen_from_here(name, parsed)
        return values

    def _better_place(self, name: str, keys: Mapping[str, _Key]) -> str:
        if name in _KEYS:
            return f"move it to [{'job' if name in _JOB else 'profiles.NAME'}]"
        return did_you_mean(name, keys)

    def _unknown(self, name: str, path: tuple[str, ...], hint: str) -> HeadgateError:
        return HeadgateError(
            "UNKNOWN_SETTING",
            f"cannot use setting {name!r}: there is none of that name{self._place(path, name)}",
            hint=hint,
        )

    def _place(self, path: tuple[str, ...], name: str) -> str:
        table = f"[{'.'.join(path)}] of " if path else ""
        line = _find_line(self._text, path, name)
        return f" (in {table}{self._shown}{'' if line is None else f', line {line}'})"

    def _seen_from_here(self, name: str, value: Any) -> Any:
        if self._is_working:
            return value
        if isinstance(value, Path):
            return self._folder / value
        scheme, _, folder = str(value).partition(":")
        if name == "on" and scheme == "files" and folder:
            return f"files:{self._folder / folder}"
        return value


def _flag_hint(name: str) -> str:
    return f"--{name} {_KEYS[name].example.strip(chr(34))}"


def _parse(key: _Key, name: str, value: Any, *, place: str, hint: str) -> Any:
    try:
        return key.kind.parse(value)
    except HeadgateError as error:
        raise HeadgateError(error.code, f"{error.message}{place}", hint=error.hint) from error
    except ValueError as error:
        raise HeadgateError(
            "BAD_SETTING",
            f"cannot use {value!r} as {name}: it needs {key.kind.needs}{place}",
            hint=hint,
        ) from error


_HEADER = re.compile(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?")


def _find_line(text: str, path: tuple[str, ...], name: str) -> int | None:
    """Return the line a setting or table stands on; tomllib tells only of broken ones."""
    wanted = [*path, name]
    table: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.fullmatch(line)
        if header:
            table = _split(header[1])
        named = table if header else [*table, *_split(line.partition("=")[0])]
        if named[: len(wanted)] == wanted:
            return number
    return None


def _split(key: str) -> list[str]:
    return [part.strip().strip("\"'") for part in key.split(".")]
