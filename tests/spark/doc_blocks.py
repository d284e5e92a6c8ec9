"""The fenced blocks of a page, and what a console block claims."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Stands for anything within a line of expected output.
GAP = "…"

_FENCE = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)

# Up to what ends a command within a line of the shell.
_CALL = re.compile(r"(?<![./\w])headgate(?: [^|;&)]*)?(?!\w)")

_EXPORT = re.compile(r"export (?P<name>\w+)=")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its kind, its text and the line it begins on."""

    kind: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a console block, and lines that its output must have."""

    text: str
    expected: tuple[str, ...]


def read_blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page that have a kind, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(match["kind"], match["text"], text.count("\n", 0, match.start()) + 1)
        for match in _FENCE.finditer(text)
    ]


def commands(block: Block) -> Iterator[Command]:
    """Yield the commands of a console block: lines that begin with `$ `."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, *output = part.splitlines()
        yield Command(command, tuple(line for line in output if line.strip()))


def headgate_calls(block: Block, verbs: Collection[str]) -> Iterator[tuple[str, set[str]]]:
    """Yield each call of `headgate` in a console block: its verb, and the long options it has.

    A call without a known verb has the verb `headgate`.

    Args:
        verbs: Every verb with `headgate` in front, such as `headgate topics list`.
    """
    for command in commands(block):
        for call in _CALL.findall(command.text):
            words = [word for word in call.split() if not word.startswith("-")]
            prefixes = (" ".join(words[:count]) for count in range(len(words), 0, -1))
            verb = next(each for each in prefixes if each in verbs)
            yield (
                verb,
                {word.partition("=")[0] for word in re.findall(r"(?<=\s)--[a-z][\w=-]*", call)},
            )


def missing_lines(command: Command, output: str) -> list[str]:
    """Return the expected lines that no line of the output fits; the number of blanks is free."""
    lines = [_flat(line) for line in output.splitlines()]
    return [
        wanted
        for wanted in command.expected
        if not any(_pattern(wanted).fullmatch(line) for line in lines)
    ]


def _pattern(wanted: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, _flat(wanted).split(GAP))))


def _flat(line: str) -> str:
    return " ".join(line.split())


class Shell:
    """Runs the blocks of a page in one folder, with `headgate` and `python` on the path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        tools = folder / "tools"
        tools.mkdir()
        for name, command in {"python": "", "headgate": " -m headgate"}.items():
            tool = tools / name
            tool.write_text(f'#!/bin/sh\nexec "{sys.executable}"{command} "$@"\n')
            tool.chmod(0o755)
        self._environment = {
            **os.environ,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "src"),
        }

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command; standard error is part of its output, as on a terminal.

        A variable that is exported is there for the commands that follow.
        """
        exported = _EXPORT.match(command)
        if exported is None:
            return self._run(command)
        name = exported["name"]
        done = self._run(f'{command}; printf "%s" "${name}"')
        self._environment[name] = done.stdout
        return done

    def _run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=600,
        )

    def save(self, block: Block) -> Path:
        """Write a Python block to the file that its first line names, as `# flow.py`."""
        name = block.text.partition("\n")[0].removeprefix("# ")
        file = self.folder / name
        file.write_text(block.text, encoding="utf-8")
        return file
