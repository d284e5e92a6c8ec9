"""The table of settings: what the command line, headgate.toml, requests and the docs take of it."""

import re
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from headgate._codec import decode, encode
from headgate.engine.settings import AttemptSettings, SparkSettings
from headgate.jobs.setting_table import BY_NAME, SETTINGS, Setting, parse_typed
from headgate.jobs.settings import CONFIG_FILE, Origin, read_settings, resolve_options
from headgate.jobs.values import RunOptions
from headgate.server.security import names

DOCS = Path(__file__).parents[2] / "docs"


def by_name(setting: Setting) -> str:
    return setting.name


def test_each_name_is_there_once() -> None:
    assert len(BY_NAME) == len(SETTINGS)


@pytest.mark.parametrize("setting", SETTINGS, ids=by_name)
def test_an_example_can_be_written_to_the_file(setting: Setting, tmp_path: Path) -> None:
    table = "profiles.a" if setting.in_profile else "job"
    profile = '[job]\nprofile = "a"\n' if setting.in_profile else "[profiles.large]\n"
    text = f"{profile}[{table}]\n{setting.name} = {setting.shown_example}\n"
    (tmp_path / CONFIG_FILE).write_text(text, encoding="utf-8")
    settings = read_settings(tmp_path, working=tmp_path)
    assert settings.origins[setting.name] is Origin.FILE


def test_a_run_has_the_defaults_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    base = RunOptions(on=f"files:{tmp_path / '.headgate/topics'}")
    resolved = resolve_options("flow.py", {}, base)
    assert encode(resolved) == encode(base) | {"settings": resolved.settings}
    assert decode(RunOptions, encode(resolved)) == resolved


def test_counts_that_were_typed_as_text_are_accepted(tmp_path: Path) -> None:
    typed = parse_typed({"retain": "3", "parallelism": "2", "min-pause": "1s", "max-batch": "64"})
    settings = read_settings(tmp_path, flags=typed, working=tmp_path)
    assert (settings["retain"], settings["parallelism"], settings["max-batch"]) == (3, 2, 64)
    assert parse_typed({"retain": "often"}) == {"retain": "often"}


def test_the_engine_has_the_defaults_of_the_table() -> None:
    engine = (*fields(AttemptSettings), *fields(SparkSettings))
    defaults = {each.name: each.default for each in engine if each.default is not MISSING}
    shared = {each.field: each.default_value for each in SETTINGS if each.field in defaults}
    assert len(shared) == 28
    assert {name: defaults[name] for name in shared} == shared


# The docs.


def row(setting: Setting, key: str) -> tuple[str, str, str]:
    """Return the cells of a setting's row in the reference, without its marks."""
    metavar = setting.kind.metavar.replace("|", ", ")
    return f"{key} {metavar}", setting.shown_default, setting.help


def rows_of(heading: str) -> dict[str, tuple[str, str, str]]:
    """Return the rows of a section of the reference by their first word, without marks."""
    page = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = {}
    for line in re.findall(r"^\| `.*\|$", section, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line).replace("`", "")
        first, default, text = (cell.strip() for cell in plain.strip("|").split("|"))
        found[first.partition(" ")[0].rstrip(",")] = (first, default, text)
    return found


@pytest.mark.parametrize("verb", ["run", "setup"])
def test_the_reference_has_the_settings_of_a_verb(verb: str) -> None:
    rows = rows_of(f"headgate {verb}")
    settings = {f"--{each.name}": each for each in SETTINGS if verb in each.verbs}
    starred = {key for key, (first, _, _) in rows.items() if first.endswith("*")}
    assert starred == set(settings)
    for option, setting in settings.items():
        names_ = option if setting.short is None else f"{option}, {setting.short}"
        first, default, text = row(setting, names_)
        found = rows[option]
        assert found[:2] == (f"{first} *", default)
        # The page may add sentences.
        assert found[2].startswith(text)


def test_the_reference_has_the_settings_that_only_a_file_sets() -> None:
    rows = rows_of("headgate run")
    keys = {key: cells for key, cells in rows.items() if not key.startswith("-")}
    assert keys == {each.name: row(each, each.name) for each in SETTINGS if not each.verbs}


def test_the_guide_has_the_settings_that_a_request_may_make() -> None:
    page = (DOCS / "guide" / "server.md").read_text(encoding="utf-8")
    sentence = re.search(r"A request can set ([^.]*)\.", page)
    assert sentence is not None
    assert tuple(re.findall(r"`([a-z-]+)`", sentence[1])) == names.SETTINGS
