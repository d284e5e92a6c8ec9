"""Commands whose options come from a table, in place of one of their parameters."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Annotated, Any

import typer

from headgate._units import format_duration, parse_duration

Command = Callable[..., None]


@dataclass(frozen=True, slots=True)
class FieldOption:
    """The option of a dataclass field, whose type and default it has."""

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
        parameters = [_parameter(row, types[row.field], defaults[row.field]) for row in rows]
        return replace_parameter(function, "options", parameters, build)

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


def _parameter(row: FieldOption, type_: Any, default: Any) -> inspect.Parameter:
    is_duration = type_ is timedelta
    option = typer.Option(
        f"--{row.field.replace('_', '-')}",
        metavar=row.metavar,
        help=row.help,
        rich_help_panel=row.panel,
    )
    return inspect.Parameter(
        row.field,
        inspect.Parameter.KEYWORD_ONLY,
        default=format_duration(default) if is_duration else default,
        annotation=Annotated[str if is_duration else type_, option],
    )
