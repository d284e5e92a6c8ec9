"""`headgate explain`: the documentation of an error code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files as package_files
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from headgate.cli.parts.options import Json
from headgate.cli.parts.output import print_table, say, show
from headgate.errors import Domain, HeadgateError

# The page of the documentation: in a checkout, or in the installed package.
_PAGE = "docs/reference/errors.md"
_ROW = re.compile(r"\| `(?P<code>[A-Z][A-Z0-9_]+)` \| (?P<when>.*?) \|(?: (?P<todo>.*?) \|)?$")
_LINK = re.compile(r"\[([^]]+)\]\(([^)]+)\)")


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the documentation says about one code.

    Attributes:
        topic: The section of the page.
        when: When the error occurs.
        todo: What to do; empty if the page has no advice.
    """

    code: str
    topic: str
    when: str
    todo: str


def explain(
    code: Annotated[
        str | None,
        typer.Argument(help="An error code, or a reason of dead letters; all by default."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the documentation of an error code: when it occurs and what to do.

    [bold]Examples[/bold]

      headgate explain BAD_DURATION
      headgate explain
    """
    explanations = read_explanations()
    if code is None:
        show(explanations, _print_all, as_json=as_json)
    else:
        show(_get(explanations, code), _print_one, as_json=as_json)


def _print_all(explanations: list[Explanation]) -> None:
    print_table(
        ["code", "when"],
        [[explanation.code, _plain(explanation.when)] for explanation in explanations],
    )


def _print_one(explanation: Explanation) -> None:
    say(Text.assemble((explanation.code, "bold"), f"  ({explanation.topic})"))
    say(_plain(explanation.when))
    if explanation.todo:
        say(Text.assemble(("what to do", "bold cyan"), f": {_plain(explanation.todo)}"))


def _get(explanations: list[Explanation], code: str) -> Explanation:
    wanted = code.upper().replace("-", "_")
    for explanation in explanations:
        if explanation.code == wanted:
            return explanation
    near = get_close_matches(wanted, [known.code for known in explanations], n=1)
    raise HeadgateError(
        "CODE_UNKNOWN",
        f"cannot explain {code!r}: there is no such error code",
        hint=f"headgate explain {near[0]}" if near else "headgate explain",
    )


def read_explanations() -> list[Explanation]:
    """Return the explanation of every code, in the order of the page."""
    explanations = []
    topic = ""
    for line in _find_page().read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            topic = line.removeprefix("## ")
        elif row := _ROW.match(line):
            explanations.append(Explanation(row["code"], topic, row["when"], row["todo"] or ""))
    return explanations


def _find_page() -> Path:
    inside = Path(str(package_files("headgate")))
    for root in (inside.parents[1], inside):
        if (root / _PAGE).is_file():
            return root / _PAGE
    raise HeadgateError(
        "DOCS_MISSING",
        "cannot explain error codes: the package does not contain their page",
        hint="pip install --force-reinstall headgate",
        domain=Domain.INTERNAL,
    )


def _plain(text: str) -> str:
    """Return a cell of the page without Markdown; a link becomes its text."""
    return _LINK.sub(r"\1", text).replace("`", "").replace(r"\|", "|")
