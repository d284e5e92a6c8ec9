"""A job's settings and options: from flags, from headgate.toml, or by default.

A headgate.toml lies beside the flow or in the working directory. The one beside the flow wins, key
by key, and flags win over both. A built-in profile is below the files: a profile of its name there
changes the keys that it has. A relative folder in a headgate.toml is relative to that file.
"""

from __future__ import annotations

import enum
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headgate.connectors.logs import anchored
from headgate.errors import HeadgateError
from headgate.flow.names import did_you_mean
from headgate.jobs.profiles import PROFILES
from headgate.jobs.setting_table import BY_NAME, DEFAULTS, SETTINGS, OnCancel, Setting
from headgate.jobs.values import RunOptions

CONFIG_FILE = "headgate.toml"
_JOB = {setting.name: setting for setting in SETTINGS if not setting.in_profile}
_PROFILE = {setting.name: setting for setting in SETTINGS if setting.in_profile}


class Origin(enum.StrEnum):
    """The origin of a setting's value."""

    FLAG = "flag"
    FILE = "headgate.toml"
    PROFILE = "built-in profile"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Settings:
    """The values and their origins of all settings of a job, by the names of headgate.toml."""

    values: Mapping[str, Any]
    origins: Mapping[str, Origin]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def to_json(self) -> dict[str, Any]:
        """Return the value of each setting as a user writes it, and its origin."""
        return {
            name: {"value": BY_NAME[name].kind.show(value), "from": self.origins[name].value}
            for name, value in self.values.items()
        }


@dataclass(frozen=True, slots=True)
class _Config:
    """The checked values of the files, by key, and by profile and key."""

    job: Mapping[str, Any]
    profiles: Mapping[str, Mapping[str, Any]]


def resolve_options(flow: str, flags: Mapping[str, Any], base: RunOptions) -> RunOptions:
    """Return the options of a run: from flags, then headgate.toml, then the defaults.

    Folders are made absolute, so that the job can be started again from any folder.

    Args:
        flow: The flow's file, as `load_flow` takes it; a headgate.toml may lie beside it.
        flags: By the names of headgate.toml and in its terms; None if not given.
        base: The options that are not settings: home, until_caught_up, fresh, and so on.
    """
    settings = read_settings(flow_folder(flow), flags=flags)
    chosen = {setting.field: settings[setting.name] for setting in SETTINGS}
    # Their effect is in the other options.
    del chosen["profile"], chosen["on_cancel"]
    chosen |= {
        name: None if path is None else path.absolute()
        for name, path in (
            ("checkpoints", settings["checkpoints"]),
            ("py_env", settings["py-env"]),
        )
    }
    chosen |= {
        "on": anchored(settings["on"]),
        "restart": str(settings["restart"]),
        "delete_on_cancel": settings["on-cancel"] is OnCancel.DELETE,
    }
    return replace(base, **chosen, settings=settings.to_json())


def flow_folder(flow: str) -> Path:
    """Return the folder of a flow's file, which need not exist."""
    path = Path(flow.partition(":")[0])
    return path if path.is_dir() else path.parent


def read_settings(
    flow_folder: Path,
    *,
    flags: Mapping[str, Any] | None = None,
    working: Path | None = None,
) -> Settings:
    """Return the settings of the job whose flow lies in a folder.

    Args:
        flags: By the names of headgate.toml and in its terms: texts for durations and sizes,
            integers for counts; None if not given.
        working: The working directory, by default the process's own.
    """
    config = _read_config(flow_folder, Path.cwd() if working is None else working)
    given = {
        name: _parse(BY_NAME[name], value, place=f" (in --{name})", hint=_flag_hint(name))
        for name, value in (flags or {}).items()
        if value is not None
    }
    profile = given.get("profile", config.job.get("profile"))
    built_in = {} if profile is None else PROFILES.get(profile, {})
    from_files = {**config.job, **_get_profile(config, profile)}
    values = {**DEFAULTS, **built_in, **from_files, **given}
    origins = (
        dict.fromkeys(values, Origin.DEFAULT)
        | dict.fromkeys(built_in, Origin.PROFILE)
        | dict.fromkeys(from_files, Origin.FILE)
        | dict.fromkeys(given, Origin.FLAG)
    )
    return Settings(values, origins)


def _get_profile(config: _Config, name: str | None) -> Mapping[str, Any]:
    if name is None:
        return {}
    known = sorted({*config.profiles, *PROFILES})
    if name not in known:
        raise HeadgateError(
            "PROFILE_NOT_FOUND",
            f"cannot use profile {name!r}: available profiles: {', '.join(known)}",
            hint=did_you_mean(name, known)
            if config.profiles
            else f"add a table [profiles.{name}] to {CONFIG_FILE}",
        )
    return config.profiles.get(name, {})


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
    """Reads one headgate.toml; its errors name the line."""

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
            problem = str(error)
            raise HeadgateError(
                "CONFIG_BROKEN",
                f"cannot read {self._shown}: {problem[:1].lower()}{problem[1:]}",
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
            f"{name} must be a table, got {table!r}{self._place(above, name)}",
            hint=f"write [{'.'.join(path)}] on a line of its own, and its settings below",
        )

    def _values(
        self, table: Mapping[str, Any], keys: Mapping[str, Setting], path: tuple[str, ...]
    ) -> dict[str, Any]:
        values = {}
        for name, value in table.items():
            if name not in keys:
                raise self._unknown(name, path, self._better_place(name, keys))
            hint = f"write {name} = {keys[name].shown_example}"
            parsed = _parse(keys[name], value, place=self._place(path, name), hint=hint)
            values[name] = self._seen_from_here(name, parsed)
        return values

    def _better_place(self, name: str, keys: Mapping[str, Setting]) -> str:
        if name in BY_NAME:
            return f"move it to [{'job' if name in _JOB else 'profiles.NAME'}]"
        return did_you_mean(name, keys)

    def _unknown(self, name: str, path: tuple[str, ...], hint: str) -> HeadgateError:
        return HeadgateError(
            "UNKNOWN_SETTING",
            f"cannot use setting {name!r}: there is no such setting{self._place(path, name)}",
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
    return f"--{name} {BY_NAME[name].shown_example.strip(chr(34))}"


def _parse(setting: Setting, value: Any, *, place: str, hint: str) -> Any:
    try:
        return setting.kind.parse(value)
    except HeadgateError as error:
        raise HeadgateError(
            error.code, f"{error.message}{place}", hint=error.hint, domain=error.domain
        ) from error
    except ValueError as error:
        raise HeadgateError(
            "BAD_SETTING",
            f"{setting.name} must be {setting.kind.needs}, got {value!r}{place}",
            hint=hint,
        ) from error


_HEADER = re.compile(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?")


def _find_line(text: str, path: tuple[str, ...], name: str) -> int | None:
    """Return the line of a setting or table, which tomllib does not report."""
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
