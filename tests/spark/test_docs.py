"""The documentation holds: what it shows runs, and what it lists is what there is."""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
from doc_blocks import ROOT, Block, Shell, commands, headgate_calls, missing_lines, read_blocks

from headgate import Flow
from headgate.cli.app import app
from headgate.jobs.folder_home import FolderHome

DOCS = ROOT / "docs"
SOURCES = ROOT / "src" / "headgate"
KERNEL = ROOT / "kernel" / "src" / "main" / "java"
PAGES = sorted(
    [*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "examples").rglob("*.md")],
    key=str,
)
CODE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")
LINK = re.compile(r"\[[^\]]*\]\((?!\w+:)(?P<path>[^)#]*)(?:#(?P<anchor>[^)]*))?\)")
TEST = re.compile(r"`(test_\w+)`")
INLINE = re.compile(r"`(headgate [^`]*)`")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
# Options that every verb has.
GENERAL = {"--help", "--install-completion", "--show-completion"}


# One is followed in every run. What the commands of the others name is checked in every run, too.
FOLLOWED = "orders"


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=() if page.stem == FOLLOWED else pytest.mark.long, id=page.stem)
        for page in sorted((DOCS / "tutorial").glob("*.md"))
    ],
)
def test_a_tutorial_runs_from_an_empty_folder_as_it_is_written(tmp_path: Path, page: Path) -> None:
    shell = Shell(tmp_path)
    try:
        _follow(page, shell)
    finally:
        # A page that fails half way leaves nobody to stop them.
        for broker in (shell.folder / ".headgate" / "brokers").glob("*"):
            shell.run(f"headgate broker stop {broker.name}")


def _follow(page: Path, shell: Shell) -> None:
    """Do what a page says, and compare what is printed with what it says is printed."""
    for block in read_blocks(page):
        where = f"line {block.line}"
        if block.kind == "python":
            file = shell.save(block)
            done = shell.run(f"python {file.name}")
            assert done.returncode == 0, f"{where}: {file.name}\n{done.stdout}"
            continue
        assert block.kind == "console", f"{where}: a block of kind {block.kind} is not run"
        for command in commands(block):
            done = shell.run(command.text)
            told = f"{where}: $ {command.text}\n{done.stdout}"
            assert done.returncode == 0, told
            assert not missing_lines(command, done.stdout), (
                f"{missing_lines(command, done.stdout)} not in {told}"
            )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_on_a_page_name_verbs_and_options_that_exist(page: Path) -> None:
    verbs = _all_verbs()
    for block in read_blocks(page):
        if block.kind != "console":
            continue
        for verb, options in headgate_calls(block, set(verbs)):
            where = f"{page.name}, line {block.line}"
            assert verb != "headgate", f"{where}: a verb that does not exist"
            unknown = options - verbs[verb] - GENERAL
            assert not unknown, f"{where}: {verb} has no {unknown}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_within_a_text_name_verbs_and_options_that_exist(page: Path) -> None:
    verbs = _all_verbs()
    for command in INLINE.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        block = Block("console", f"$ {' '.join(command.split())}\n", 0)
        for verb, options in headgate_calls(block, set(verbs)):
            assert verb != "headgate" or options, f"{page.name}: {command}"
            unknown = options - verbs[verb] - GENERAL
            assert not unknown, f"{page.name}: {command}: {verb} has no {unknown}"


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            # Its jobs are those of the example notebook.
            marks=pytest.mark.long if page.stem == "notebooks" else (),
            id=str(page.relative_to(ROOT)),
        )
        for page in (
            ROOT / "README.md",
            *(
                page
                for part in ("start", "guide", "tutorial")
                for page in sorted((DOCS / part).glob("*.md"))
            ),
        )
    ],
)
def test_the_python_on_a_page_makes_flows_that_are_whole(
    page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # A page may run its flow.
    monkeypatch.chdir(tmp_path)
    # Dataclasses look their module up while they are made.
    module = ModuleType("blocks_of_a_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in read_blocks(page):
        if block.kind == "python":
            exec(compile(block.text, f"{page.name}:{block.line}", "exec"), vars(module))
    for name, value in vars(module).items():
        if isinstance(value, Flow):
            assert value.graph().outputs()
        if name.startswith("test_"):
            value()
    if (tmp_path / ".headgate").exists():
        FolderHome(tmp_path / ".headgate").state.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for match in LINK.finditer(page.read_text(encoding="utf-8")):
        target = (page.parent / match["path"]).resolve() if match["path"] else page
        assert target.exists(), f"{page.name}: {match[0]}"
        if match["anchor"]:
            assert match["anchor"] in _anchors(target), f"{page.name}: {match[0]}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_test_that_a_page_names_is_there(page: Path) -> None:
    named = set(TEST.findall(page.read_text(encoding="utf-8")))
    assert named <= _all_tests(), named - _all_tests()


@functools.cache
def _all_tests() -> frozenset[str]:
    """Return the names of all tests, and of the files that they are in."""
    files = [*(ROOT / "tests").rglob("test_*.py")]
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    names = re.findall(r"^def (test_\w+)", text, re.MULTILINE)
    return frozenset([*names, *(file.stem for file in files)])


def test_every_file_that_the_page_for_contributors_names_is_there() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = {Path(name).name for name in re.findall(r"`([\w/.-]+\.(?:py|java))`", page)}
    known = {
        file.name
        for part in ("src", "kernel", "tests")
        for file in (ROOT / part).rglob("*")
        if file.suffix in (".py", ".java")
    }
    assert named <= known, named - known


def test_every_page_is_once_in_the_navigation_of_the_site() -> None:
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"^ +- .*: (\S+\.md)$", config, re.MULTILINE)
    assert sorted(listed) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def test_the_site_loads_nothing_from_another_host() -> None:
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "font: false" in config
    assert "//" not in config
    # The plugin for offline use would add its own script unless one of this name is there.
    assert re.search(r"polyfills:\n +- assets/iframe-worker\.js$", config, re.MULTILINE)
    assert "//" not in re.sub(
        r"^\s*//.*$", "", (DOCS / "assets" / "iframe-worker.js").read_text(), flags=re.MULTILINE
    )


def test_every_guarantee_names_a_mechanism_and_a_test() -> None:
    page = (DOCS / "guide" / "guarantees.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 20
    for guarantee, mechanism, tests in rows:
        assert mechanism.strip(), guarantee
        assert TEST.search(tests), guarantee


def test_the_readme_is_short_and_shows_a_flow() -> None:
    readme = ROOT / "README.md"
    assert len(readme.read_text(encoding="utf-8").splitlines()) <= 100
    assert any(block.kind == "python" and "Flow(" in block.text for block in read_blocks(readme))


def test_the_page_of_errors_has_every_code_that_can_be_met_and_no_other() -> None:
    listed = _listed_codes("errors")
    there_are = {*_python_codes(), *_plan_codes()}
    assert listed == there_are, f"{there_are - listed} missing, {listed - there_are} too many"


def test_the_page_of_errors_has_every_reason_of_a_dead_letter_and_no_other() -> None:
    source = (KERNEL / "io/headgate/kernel/json/BadRecord.java").read_text(encoding="utf-8")
    body = re.search(r"enum Reason \{([^}]*)\}", source)
    assert body is not None
    assert _listed_codes("reasons") == {*CODE.findall(body[1])}


def test_the_page_of_the_cli_has_every_verb_with_its_options_and_no_other() -> None:
    page = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    sections = {
        section.partition("\n")[0].strip("` "): section
        for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    }
    verbs = _all_verbs()
    assert set(verbs) <= set(sections), set(verbs) - set(sections)
    for verb, options in verbs.items():
        listed = set(re.findall(r"^\| `(--?[a-z-]+)", sections[verb], re.MULTILINE))
        assert listed == options, f"{verb}: {options ^ listed}"


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).strip().replace(" ", "-") for each in headings}


def _listed_codes(part: str) -> set[str]:
    """Return the codes in the tables of the page's part, which begins at its mark."""
    page = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    errors, _, reasons = page.partition("## Reasons of dead letters")
    text = errors if part == "errors" else reasons
    return set(re.findall(rf"^\| `({CODE.pattern})` \|", text, re.MULTILINE))


def _python_codes() -> Iterator[str]:
    # The last ones are started by name, as processes of their own; commands are imported by name.
    started = ("jobs/attempts/worker.py", "jobs/state/reader.py")
    doors = ("__main__.py", "__init__.py", "testing.py", *started)
    commands = (SOURCES / "cli").rglob("*.py")
    for file in _reached(*(SOURCES / door for door in doors), *commands):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            match node:
                case ast.Call(
                    func=ast.Name(id="HeadgateError" | "MissingMethodError" | "StoreError"),
                    args=[ast.Constant(code), *_],
                ):
                    yield str(code)
                case ast.Call(func=ast.Attribute(attr="__init__"), args=[ast.Constant(code), *_]):
                    # A kind of HeadgateError gives its own code.
                    yield from CODE.findall(str(code))
                case ast.keyword(arg="code", value=ast.Constant(code)):
                    yield str(code)
                case ast.Call(func=ast.Name(id="HeadgateError"), args=[code, *_]):
                    # It is looked up in a table at the top of the module, or has a name there.
                    yield from _codes_of_tables(tree)
                    yield from _named_codes(tree, code)


def _named_codes(module: ast.Module, name: ast.expr) -> Iterator[str]:
    for node in module.body:
        match node, name:
            case (
                ast.Assign(targets=[ast.Name(id=assigned)], value=ast.Constant(code)),
                ast.Name(id=used),
            ) if assigned == used:
                yield str(code)


def _reached(*doors: Path) -> set[Path]:
    """Return the files that a verb or a user's import can reach, the doors among them.

    A part of the house that no door leads to yet has no errors that anybody could meet.
    """
    found: set[Path] = set()
    left = list(doors)
    while left:
        file = left.pop()
        if file not in found:
            found.add(file)
            left += _imported(ast.parse(file.read_text(encoding="utf-8")))
    return found


def _imported(module: ast.Module) -> Iterator[Path]:
    """Yield the files of the package that a module imports, those inside functions too."""
    for node in ast.walk(module):
        match node:
            case ast.ImportFrom(module=str(name), names=names):
                dotted = [name, *(f"{name}.{each.name}" for each in names)]
            case ast.Import(names=names):
                dotted = [each.name for each in names]
            case _:
                continue
        for each in dotted:
            if each.partition(".")[0] == "headgate":
                base = SOURCES.parent.joinpath(*each.split("."))
                yield from (
                    file
                    for file in (base.with_suffix(".py"), base / "__init__.py")
                    if file.exists()
                )


def _codes_of_tables(module: ast.Module) -> Iterator[str]:
    for statement in module.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Dict):
            for node in ast.walk(statement.value):
                if isinstance(node, ast.Constant) and CODE.fullmatch(str(node.value)):
                    yield str(node.value)


def _plan_codes() -> Iterator[str]:
    for file in KERNEL.rglob("*.java"):
        yield from re.findall(r'PlanException\(\s*"([A-Z_]+)"', file.read_text(encoding="utf-8"))


@functools.cache
def _all_verbs() -> dict[str, set[str]]:
    """Return the options of each verb."""
    return dict(_verbs(typer.main.get_command(app), "headgate"))


def _verbs(command: Any, path: str) -> Iterator[tuple[str, set[str]]]:
    """Yield each verb with the options that are its own."""
    options = {
        max(parameter.opts, key=len)
        for parameter in command.params
        if parameter.param_type_name == "option"
    }
    yield path, options - GENERAL
    for name, child in getattr(command, "commands", {}).items():
        yield from _verbs(child, f"{path} {name}")
