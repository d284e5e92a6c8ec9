"""The app: its commands, and the only place that turns an error into an exit code."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from headgate.cli import (
    audit,
    broker,
    checkpoints,
    control,
    dead_letters,
    demo,
    doctor,
    failures,
    jobs,
    logs,
    output,
    plan,
    prepare,
    produce,
    restore,
    run,
    savepoint,
    serve,
    setup,
    state,
    topics,
    watching,
)
from headgate.cli.help import lay_out
from headgate.errors import HeadgateError

# The modules of commands; each has a function `register`.
GROUPS = (
    *(demo, run, plan, serve),
    *(jobs, watching, logs, control),
    *(checkpoints, savepoint, restore, state, audit, dead_letters),
    *(setup, produce, topics, broker, prepare, doctor),
)
# The commands in the order of the help; others follow.
ORDER = (
    *("run", "plan", "demo", "serve"),
    *("jobs", "show", "graph", "events", "exceptions", "logs", "lag"),
    *("start", "stop", "cancel", "restart", "pause", "resume"),
    *("checkpoints", "savepoint", "restore", "state", "verify", "audit", "dead-letters"),
    *("setup", "produce", "topics", "tail", "broker", "prepare", "doctor"),
)

# The base class of typer's errors about a command line; typer exports only this one.
_BadCommandLine: type[Exception] = typer.BadParameter.__mro__[2]
_HELP_WAS_SHOWN = "NoArgsIsHelpError"


class _SystemError(Exception):
    """Carries an OSError past typer, which mistakes every broken pipe for standard output."""


class _Door(TyperGroup):
    """Runs a command and exits: 0, or the exit code of its error."""

    def main(self, args: Sequence[str] | None = None, *_: Any, **extra: Any) -> NoReturn:
        given = list(sys.argv[1:] if args is None else args)
        extra |= {"prog_name": "headgate", "standalone_mode": False}
        try:
            code = super().main(given, **extra)
            sys.stdout.flush()
        except (KeyboardInterrupt, typer.Abort):
            code = failures.INTERRUPTED
        except Exception as error:  # noqa: BLE001 - the last net before the user
            code = _end(error, given)
        sys.exit(code if isinstance(code, int) else 0)

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """Return the commands in the order of the help."""
        verbs = super().list_commands(ctx)
        return sorted(verbs, key=lambda verb: ORDER.index(verb) if verb in ORDER else len(ORDER))

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        try:
            return super().invoke(ctx)
        except OSError as error:
            raise _SystemError from error


def _end(raised: Exception, args: Sequence[str]) -> int:
    error = raised.__cause__ if isinstance(raised, _SystemError) and raised.__cause__ else raised
    if isinstance(error, BrokenPipeError) and failures.is_stdout_closed():
        failures.drop_stdout()
        return failures.PIPE_CLOSED
    if type(error).__name__ == _HELP_WAS_SHOWN:
        return 2
    told = _explain(error, args)
    failures.show(told, as_json=_wants_json(args))
    return told.exit_code


def _explain(error: BaseException, args: Sequence[str]) -> HeadgateError:
    if isinstance(error, _BadCommandLine):
        told: Any = error
        command = told.ctx.command_path if getattr(told, "ctx", None) else "headgate"
        return failures.usage_error(told.format_message(), command)
    return failures.explain(error, " ".join(("headgate", *_verb(args))))


def _verb(args: Sequence[str]) -> Sequence[str]:
    """Return the words before the first option: the command and its subject."""
    first = next((place for place, arg in enumerate(args) if arg.startswith("-")), len(args))
    return args[:first]


def _wants_json(args: Sequence[str]) -> bool:
    # Read from the words, since a command line that cannot be parsed has no options yet.
    return "--json" in (args[: args.index("--")] if "--" in args else args)


app = typer.Typer(
    name="headgate",
    cls=_Door,
    help="Long-lived stateful streaming jobs on Apache Spark.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        # The package itself is loaded before any of its modules.
        output.say(f"headgate {sys.modules['headgate'].__version__}")
        raise typer.Exit


@app.callback()
def _headgate(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


for group in GROUPS:
    group.register(app)
lay_out(app)


def main() -> NoReturn:
    """Run the command line of this process and end it."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(failures.INTERRUPTED)
    finally:
        # An interrupt while the interpreter ends would replace the exit code by a signal.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise AssertionError("the app ends the process")
