"""Options that several commands share, and options that are generated from tables."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from headgate._units import format_duration, parse_duration
from headgate.jobs.setting_table import SETTINGS, Setting

# The default log of a terminal's commands.
_ON_VARIABLE = "HEADGATE_ON"

Command = Callable[..., None]

FlowFile: TypeAlias = Annotated[
    str, typer.Argument(metavar="FLOW", help="The flow's file: flow.py, or flow.py:name.")
]
On: TypeAlias = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="LOG",
        envvar=_ON_VARIABLE,
        help="The log of the topics: files:DIR, kafka://HOST:9092, pulsar://HOST:6650.",
    ),
]
HomeFolder: TypeAlias = Annotated[
    Path, typer.Option("--home", metavar="DIR", help="Folder of the jobs.", file_okay=False)
]
Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print JSON on one line, including errors.")
]
Lines: TypeAlias = Annotated[int, typer.Option("--lines", "-n", min=0, help="Number of lines.")]
Follow: TypeAlias = Annotated[
    bool, typer.Option("--follow", "-f", help="Print new lines until Ctrl-C.")
]


@dataclass(frozen=True, slots=True)
class FieldOption:
    """The option of a dataclass field, with the field's type and default."""

    field: str
    metavar: str
    help: str
    panel: str


def takes_fields(values: type, rows: Sequence[FieldOption]) -> Callable[[Command], Command]:
    """Give a command an option for each row, in place of its parameter `options`.

    The command gets an instance of `values`, in which fields without a row have their defaults.
    Durations are text on the command line.
    """
    types = typing.get_type_hints(values)
    defaults = {field.name: field.default for field in fields(values)}

    def build(given: Mapping[str, Any]) -> Any:
        return values(
            **{
                name: parse_duration(value) if types[name] is timedelta else value
                for name, value in given.items()
            }
        )

    def decorate(function: Command) -> Command:
        parameters = [_field_option(row, types[row.field], defaults[row.field]) for row in rows]
        return replace_parameter(function, "options", parameters, build)

    return decorate


def takes_settings(verb: str, *, panels: bool = False) -> Callable[[Command], Command]:
    """Give a command an option for each setting of its verb, in place of its parameter `settings`.

    The command gets the settings by their names in headgate.toml; None if not given.

    Args:
        panels: True to group the options in the help.
    """
    rows = [setting for setting in SETTINGS if verb in setting.verbs]

    def build(given: Mapping[str, Any]) -> dict[str, Any]:
        return {setting.name: given[setting.field] for setting in rows}

    def decorate(function: Command) -> Command:
        parameters = [_setting_option(setting, panels=panels) for setting in rows]
        return replace_parameter(function, "settings", parameters, build)

    return decorate


def replace_parameter(
    function: Command,
    name: str,
    parameters: Sequence[inspect.Parameter],
    build: Callable[[Mapping[str, Any]], Any],
) -> Command:
    """Return a command with other parameters in place of one, which is built from them."""

    @functools.wraps(function)
    def command(**given: Any) -> None:
        chosen = {parameter.name: given.pop(parameter.name) for parameter in parameters}
        function(**{name: build(chosen)}, **given)

    signature = inspect.signature(function, eval_str=True)
    flat: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        flat += parameters if parameter.name == name else [parameter]
    # Typer reads a command's options from here.
    command.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in flat]
    )
    return command


def keyword(
    name: str, annotation: Any, default: Any = inspect.Parameter.empty
) -> inspect.Parameter:
    """Return a parameter of a command."""
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def _field_option(row: FieldOption, type_: Any, default: Any) -> inspect.Parameter:
    is_duration = type_ is timedelta
    option = typer.Option(
        f"--{row.field.replace('_', '-')}",
        metavar=row.metavar,
        help=row.help,
        rich_help_panel=row.panel,
    )
    return keyword(
        row.field,
        Annotated[str if is_duration else type_, option],
        format_duration(default) if is_duration else default,
    )


def _setting_option(setting: Setting, *, panels: bool) -> inspect.Parameter:
    option = typer.Option(
        f"--{setting.name}",
        *([] if setting.short is None else [setting.short]),
        envvar=_ON_VARIABLE if setting.name == "on" else None,
        metavar=setting.kind.metavar,
        help=setting.help,
        show_default=setting.shown_default,
        rich_help_panel=setting.panel.value if panels else None,
    )
    return keyword(setting.field, Annotated[setting.kind.flag | None, option], None)
