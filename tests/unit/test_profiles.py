"""The built-in profile: its place among files and flags, and its page in the guide."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from headgate._codec import decode, encode
from headgate.engine.settings import MIB
from headgate.jobs.profiles import PROFILES
from headgate.jobs.setting_table import BY_NAME, SETTINGS
from headgate.jobs.settings import CONFIG_FILE, Origin, Settings, read_settings, resolve_options
from headgate.jobs.values import RunOptions

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
SMALL = PROFILES["small"]


def read(folder: Path, text: str = "", **flags: str) -> Settings:
    (folder / CONFIG_FILE).write_text(text, encoding="utf-8")
    given = {name.replace("_", "-"): value for name, value in flags.items()}
    return read_settings(folder, flags=given, working=folder)


def test_a_built_in_profile_needs_no_file(tmp_path: Path) -> None:
    settings = read_settings(tmp_path, flags={"profile": "small"}, working=tmp_path)
    assert {name: settings[name] for name in SMALL} == SMALL
    assert {settings.origins[name] for name in SMALL} == {Origin.PROFILE}
    assert settings.to_json()["driver-memory"]["from"] == "built-in profile"
    others = {setting.name for setting in SETTINGS} - set(SMALL) - {"profile"}
    assert {settings.origins[name] for name in others} == {Origin.DEFAULT}


def test_a_file_may_choose_a_built_in_profile(tmp_path: Path) -> None:
    settings = read(tmp_path, '[job]\nprofile = "small"\n')
    assert settings["driver-memory"] == SMALL["driver-memory"]


def test_a_profile_of_the_same_name_changes_the_keys_that_it_has(tmp_path: Path) -> None:
    settings = read(tmp_path, '[profiles.small]\nmetaspace = "1GiB"\n', profile="small")
    assert settings["metaspace"] == 1024 * MIB
    assert settings.origins["metaspace"] is Origin.FILE
    assert settings["driver-memory"] == SMALL["driver-memory"]


def test_files_and_flags_win_over_a_built_in_profile(tmp_path: Path) -> None:
    text = '[job]\nmax-batch = "2MiB"\n'
    settings = read(tmp_path, text, profile="small", driver_memory="3GiB")
    assert (settings["max-batch"], settings["driver-memory"]) == (2 * MIB, 3072 * MIB)
    assert settings.origins["max-batch"] is Origin.FILE
    assert settings.origins["driver-memory"] is Origin.FLAG


def test_another_profile_takes_nothing_from_a_built_in_one(tmp_path: Path) -> None:
    settings = read(tmp_path, '[profiles.mine]\nlog-level = "warn"\n', profile="mine")
    assert settings["driver-memory"] == BY_NAME["driver-memory"].default_value


def test_a_job_keeps_the_profile_it_was_run_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = resolve_options("flow.py", {"profile": "small"}, RunOptions())
    # As it is stored for restarts and later starts, and sent to supervisors.
    again = decode(RunOptions, encode(options))
    assert {name: getattr(again, BY_NAME[name].field) for name in SMALL} == SMALL


def test_the_guide_has_the_values_of_the_built_in_profile() -> None:
    page = (GUIDE / "memory.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    shown = tomllib.loads(block)
    for table, in_profile in ((shown["profiles"]["small"], True), (shown["job"], False)):
        values = {name: SMALL[name] for name in SMALL if BY_NAME[name].in_profile is in_profile}
        assert table == {name: BY_NAME[name].kind.show(value) for name, value in values.items()}


def test_the_guide_has_every_setting_of_memory() -> None:
    page = (GUIDE / "memory.md").read_text(encoding="utf-8")
    memory = {
        each.name
        for each in SETTINGS
        if each.kind.metavar == "SIZE" and (each.in_profile or each.name.startswith("max-"))
    }
    assert len(memory) == 11
    for name in memory:
        assert f"`{name}`" in page, name
