"""The app: its commands, and the only place that turns an error into an exit code."""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from headgate.cli.parts import failures, output
from headgate.cli.parts.help import lay_out
from headgate.cli.parts.place import expand_options
from headgate.errors import HeadgateError

# The commands, in the order of the help, as `MODULE.FUNCTION` in this room. A group is its own help
# and its commands. A module is imported when a command line names its command: all of them together
# take longer than most commands.
_COMMANDS: dict[str, str | tuple[str, dict[str, str]]] = {
    "run": "lifecycle.run.run",
    "plan": "lifecycle.plan.plan",
    "demo": "sandbox.demo.demo",
    "serve": "lifecycle.serve.serve",
    "jobs": "views.jobs.jobs",
    "show": "views.jobs.show",
    "graph": "views.watching.graph",
    "processes": "views.processes.processes",
    "events": "views.watching.events",
    "exceptions": "views.watching.exceptions",
    "logs": "views.logs.logs",
    "lag": "views.jobs.lag",
    "start": "lifecycle.control.start",
    "stop": "lifecycle.control.stop",
    "cancel": "lifecycle.control.cancel",
    "restart": "lifecycle.control.restart",
    "pause": "lifecycle.control.pause",
    "resume": "lifecycle.control.resume",
    "delete": "lifecycle.deletion.delete",
    "prune": "lifecycle.deletion.prune",
    "checkpoints": "views.checkpoints.checkpoints",
    "savepoint": "views.checkpoints.savepoint",
    "restore": "lifecycle.restore.restore",
    "state": "views.state.state",
    "verify": "views.checkpoints.verify",
    "audit": "views.audit.audit",
    "dead-letters": "views.dead_letters.dead_letters",
    "setup": "topics.setup.setup",
    "produce": (
        "sandbox.produce.produce",
        {"store": "sandbox.produce.store", "visits": "sandbox.produce.visits"},
    ),
    "publish": "topics.publish.publish",
    "topics": (
        "topics.topics.topics",
        {
            "list": "topics.topics.list_all",
            "show": "topics.topics.show_one",
            "create": "topics.topics.create",
            "peek": "topics.formats.peek",
        },
    ),
    "tail": "topics.topics.tail",
    "formats": "topics.formats.formats",
    "broker": (
        "sandbox.broker.broker",
        {
            "start": "sandbox.broker.start",
            "stop": "sandbox.broker.stop",
            "status": "sandbox.broker.status",
            "url": "sandbox.broker.url",
            "logs": "sandbox.broker.logs",
        },
    ),
    "cluster": (
        "sandbox.cluster.cluster",
        {
            "start": "sandbox.cluster.start",
            "stop": "sandbox.cluster.stop",
            "status": "sandbox.cluster.status",
            "url": "sandbox.cluster.url",
        },
    ),
    "prepare": "host.machine.prepare",
    "doctor": "host.machine.doctor",
    "explain": "host.explain.explain",
}

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
        """Return the commands in the order of the help; groups are not last."""
        known = super().list_commands(ctx)
        return [name for name in _COMMANDS if name in known]

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
    explained = _explain(error, args)
    failures.show(explained, as_json=_wants_json(args))
    return explained.exit_code


def _explain(error: BaseException, args: Sequence[str]) -> HeadgateError:
    if isinstance(error, _BadCommandLine):
        usage: Any = error
        command = usage.ctx.command_path if getattr(usage, "ctx", None) else "headgate"
        return failures.usage_error(usage.format_message(), command)
    return failures.explain(error, " ".join(("headgate", *_verb(args))))


def _verb(args: Sequence[str]) -> Sequence[str]:
    """Return the words before the first option: the command and its subject."""
    first = next((place for place, arg in enumerate(args) if arg.startswith("-")), len(args))
    return args[:first]


def _wants_json(args: Sequence[str]) -> bool:
    # Read from the words, since a command line that cannot be parsed has no options yet.
    return "--json" in (args[: args.index("--")] if "--" in args else args)


def _show_version(wanted: bool) -> None:
    if wanted:
        # The package itself is loaded before any of its modules.
        output.say(f"headgate {sys.modules['headgate'].__version__}")
        raise typer.Exit


def _headgate(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


def _make_app(names: Iterable[str]) -> typer.Typer:
    """Return the app with some of its commands."""
    made = typer.Typer(
        name="headgate",
        cls=_Door,
        help="Long-lived stateful streaming jobs on Apache Spark.",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(_headgate)
    for name in names:
        _register(made, name)
    lay_out(made)
    return made


def _register(app: typer.Typer, name: str) -> None:
    command = _COMMANDS[name]
    if not isinstance(command, tuple):
        app.command(name, cls=_load("lifecycle.control.StopCommand") if name == "stop" else None)(
            expand_options(_load(command))
        )
        return
    callback, members = command
    # `headgate topics` alone lists the topics.
    works_alone = name == "topics"
    group = typer.Typer(rich_markup_mode="rich", no_args_is_help=not works_alone)
    group.callback(invoke_without_command=works_alone)(expand_options(_load(callback)))
    for verb, member in members.items():
        group.command(verb)(expand_options(_load(member)))
    app.add_typer(group, name=name)


def _load(place: str) -> Any:
    module, _, name = place.rpartition(".")
    return getattr(importlib.import_module(f"headgate.cli.{module}"), name)


def __getattr__(name: str) -> typer.Typer:
    """Make `app`, which has every command, when it is first asked for."""
    if name != "app":
        raise AttributeError(name)
    app = globals()["app"] = _make_app(_COMMANDS)
    return app


def main() -> NoReturn:
    """Run the command line of this process and end it."""
    named = sys.argv[1:2]
    try:
        # Everything else is about all commands: the help, a misspelt name, a shell's completion.
        _make_app(named if named and named[0] in _COMMANDS else _COMMANDS)()
    except KeyboardInterrupt:
        sys.exit(failures.INTERRUPTED)
    finally:
        # An interrupt while the interpreter ends would replace the exit code by a signal.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise AssertionError("the app ends the process")
