"""Options for the settings of a job: one for each row of the settings table."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from headgate.cli.option_tables import Command, replace_parameter
from headgate.cli.options import ON_VARIABLE
from headgate.jobs.setting_table import SETTINGS, Setting

_VARIABLES = {"on": ON_VARIABLE}


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
        parameters = [_option(setting, panels=panels) for setting in rows]
        return replace_parameter(function, "settings", parameters, build)

    return decorate


def _option(setting: Setting, *, panels: bool) -> inspect.Parameter:
    option = typer.Option(
        f"--{setting.name}",
        *([] if setting.short is None else [setting.short]),
        envvar=_VARIABLES.get(setting.name),
        metavar=setting.kind.metavar,
        help=setting.help,
        show_default=setting.shown_default,
        rich_help_panel=setting.panel.value if panels else None,
    )
    return inspect.Parameter(
        setting.field,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[setting.kind.flag | None, option],
    )
