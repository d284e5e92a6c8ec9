"""From the error of a command to a code, a message, a hint and an exit code."""

from __future__ import annotations

import os
import select
import sys
import tempfile
import traceback

from rich.text import Text

from headgate.cli.parts.output import note, print_json_note
from headgate.errors import Domain, HeadgateError, find_refusal

INTERRUPTED = 130
# The exit code of a program that a closed pipe ended.
PIPE_CLOSED = 141


def explain(error: BaseException, command: str) -> HeadgateError:
    """Return the error as a HeadgateError; the traceback of any other error goes to a file.

    Args:
        error: The error that ended the command.
        command: The command, for the message.
    """
    if isinstance(error, HeadgateError):
        return error
    # An error that no other place has translated.
    if isinstance(error, OSError):
        refused = find_refusal(error, f"cannot finish '{command}'")
        if refused is not None:
            return refused
    return _internal(error, command)


def usage_error(message: str, command: str) -> HeadgateError:
    """Return a command line that cannot be parsed as a HeadgateError."""
    problem = message.strip().removesuffix(".")
    problem = problem[:1].lower() + problem[1:]
    return HeadgateError(
        "BAD_USAGE", f"cannot run '{command}': {problem}", hint=f"{command} --help"
    )


def show(error: HeadgateError, *, as_json: bool) -> None:
    """Print an error on standard error: its code, its message and its hint."""
    if as_json:
        print_json_note(error.as_dict())
        return
    note(Text.assemble(("error", "bold red"), " ", (error.code, "bold"), f": {error.message}"))
    if error.hint:
        note(Text.assemble(("hint", "bold cyan"), f": {error.hint}"))
    # The help of a command explains more than the page of errors does.
    if error.code != "BAD_USAGE":
        note(Text(f"more: headgate explain {error.code}", "dim"))


def is_stdout_closed() -> bool:
    """Return True if the reader of standard output has gone; another pipe may have broken."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    except (OSError, ValueError):
        return True


def drop_stdout() -> None:
    """Discard the buffers, so that the interpreter exits silently."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _internal(error: BaseException, command: str) -> HeadgateError:
    story = "".join(traceback.format_exception(error))
    first_line = str(error).partition("\n")[0]
    name = type(error).__name__
    what = f"{name}: {first_line}" if first_line else name
    if os.environ.get("HEADGATE_TRACEBACK") == "1":
        sys.stderr.write(story)
        message, hint = f"cannot finish '{command}': {what}", "report it with the traceback above"
    else:
        path = _write(story)
        message = f"cannot finish '{command}': {what} (traceback: {path})"
        hint = f"report it with {path}, or run it again with HEADGATE_TRACEBACK=1 to see it here"
    return HeadgateError("INTERNAL", message, hint=hint, domain=Domain.INTERNAL)


def _write(story: str) -> str:
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="headgate-traceback-", suffix=".txt", delete=False, encoding="utf-8"
        ) as file:
            file.write(story)
            return file.name
    except OSError:
        return "nowhere, since no temporary file can be written"
