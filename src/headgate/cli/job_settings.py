"""Options for the settings of a job: one for each row of the table of settings."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from headgate.cli.options import ON_VARIABLE
from headgate.jobs.service import SETTINGS, Setting

_VARIABLES = {"on": ON_VARIABLE}


def takes_settings(
    verb: str, *, panels: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each setting of its verb, in place of its parameter `settings`.

    The command gets the settings by the names of headgate.toml; None is not given.

    Args:
        panels: Whether the help groups the options.
    """
    rows = [each for each in SETTINGS if verb in each.verbs]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def command(**given: Any) -> None:
            settings = {each.name: given.pop(each.field) for each in rows}
            function(settings=settings, **given)

        options = [_option(each, panels=panels) for each in rows]
        signature = inspect.signature(function, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for each in signature.parameters.values():
            parameters += options if each.name == "settings" else [each]
        # Where typer looks for a command's options.
        command.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
        )
        return command

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
