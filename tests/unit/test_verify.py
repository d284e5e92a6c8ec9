"""Damage of every kind in every kind of file: it is named, and never a surprise."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stored_run import copy, facts, local, unpack

from headgate.checkpoints import manifest as manifests
from headgate.checkpoints import savepoint
from headgate.checkpoints.catalog import keep, list_kept
from headgate.checkpoints.problems import Problem
from headgate.checkpoints.restore import fork
from headgate.checkpoints.sparklog import files_of
from headgate.checkpoints.verify import check, find_good, verify, verify_batch
from headgate.errors import HeadgateError

BATCH = 13

# One pattern for each kind of file that a checkpoint has.
KINDS = {
    "metadata": r"metadata",
    "offsets": rf"offsets/{BATCH}",
    "offsets before": rf"offsets/{BATCH - 1}",
    "commit": rf"commits/{BATCH}",
    "commit before": rf"commits/{BATCH - 1}",
    "source": r"sources/.*",
    "operator": r"state/0/_metadata/v2/\d+",
    "schema": r"state/0/_stateSchema/.*",
    "snapshot": r"state/0/0/\d+_[^/]*\.zip",
    "snapshot's checksum": r"state/0/0/\d+_[^/]*\.zip\.crc",
    "changelog": r"state/0/0/\d+_[^/]*\.changelog",
    "changelog's checksum": r"state/0/0/\d+_[^/]*\.changelog\.crc",
    "table": r"state/0/0/SSTs/\d[^/]*\.sst",
    "table's checksum": r"state/0/0/SSTs/\.[^/]*\.sst\.crc",
}


def delete(file: Path) -> None:
    file.unlink()


def empty(file: Path) -> None:
    file.write_bytes(b"")


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0x10
    file.write_bytes(bytes(content))


def grow(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\0")


def scramble(file: Path) -> None:
    file.write_bytes(bytes((each * 7 + 13) % 256 for each in file.read_bytes()))


DAMAGE = [delete, empty, truncate, flip, grow, scramble]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Give one checkpoint three times: as Spark has it, as it is kept, and as a savepoint."""
    root = tmp_path_factory.mktemp("stored")
    spark = unpack(root)
    for log in ("offsets", "commits"):
        for file in (spark / log).iterdir():
            if int(file.name) > BATCH:
                file.unlink()
    kept = local(keep(spark, BATCH, root / "kept", facts()).folder)
    return {
        "spark": spark,
        # A copy, so that damage to one is not damage to the other.
        "kept": copy(kept, root / "copied" / kept.name),
        "savepoint": local(savepoint.create(spark, BATCH, root / "savepoint", facts()).folder),
    }


def of_kind(folder: Path, kind: str) -> str:
    names = sorted(
        (each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file()),
        key=lambda name: [
            int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)
        ],
    )
    found = [name for name in names if re.fullmatch(KINDS[kind], name)]
    needed = set(manifests.read(folder).files) if manifests.find_file(folder) else None
    return next(name for name in found if needed is None or name in needed)


def test_what_is_whole_has_no_problems(folders: dict[str, Path]) -> None:
    for folder in folders.values():
        assert verify(folder) == []
        assert verify(folder, quick=True) == []


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", ["kept", "savepoint"])
def test_damage_to_any_file_is_named_and_never_restored_from(
    folders: dict[str, Path],
    tmp_path: Path,
    place: str,
    kind: str,
    damage: Callable[[Path], None],
) -> None:
    folder = copy(folders[place], tmp_path / "damaged")
    file = of_kind(folder, kind)
    damage(folder / file)
    problems = verify(folder)
    assert [each.file for each in problems] == [file]
    assert problems[0].missing == (damage is delete)
    with pytest.raises(HeadgateError, match=re.escape(file)) as caught:
        fork(folder, tmp_path / "new")
    expected = "CHECKPOINT_INCOMPLETE" if damage is delete else "CHECKPOINT_DAMAGED"
    assert caught.value.code == expected
    assert not (tmp_path / "new").exists()


SUMMED = ("snapshot", "changelog", "table")


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("kind", KINDS)
def test_damage_in_sparks_own_folder_never_raises_and_is_named_where_it_matters(
    folders: dict[str, Path], tmp_path: Path, kind: str, damage: Callable[[Path], None]
) -> None:
    folder = copy(folders["spark"], tmp_path / "damaged")
    file = next(name for name in files_of(folder, BATCH) if re.fullmatch(KINDS[kind], name))
    damage(folder / file)
    problems = verify_batch(folder, BATCH)
    if kind in SUMMED and damage is not delete:
        assert [each.file for each in problems] == [file]
    elif damage is delete and not problems:
        # Spark falls back as well: to the snapshot before, or to no checksum. Then nothing that
        # is left may need the file.
        assert file not in files_of(folder, BATCH)
    elif damage in (empty, delete) and kind not in ("source", "schema"):
        assert problems


def break_link(file: Path) -> None:
    """Give a file a content of its own."""
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content)


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("place", ["kept", "savepoint"])
def test_a_damaged_manifest_is_named(
    folders: dict[str, Path], tmp_path: Path, place: str, damage: Callable[[Path], None]
) -> None:
    folder = copy(folders[place], tmp_path / "damaged")
    file = manifests.find_file(folder)
    assert file is not None
    damage(local(file))
    if damage is delete:
        # Then it is a plain folder of Spark's, and whole as such.
        assert verify(folder) == []
    elif damage is not flip:
        assert [each.file for each in verify(folder)] == [file.name]
    with_any_error(lambda: fork(folder, tmp_path / "new"))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(at=st.integers(0, 1 << 20), bits=st.integers(1, 255), cut=st.booleans())
def test_whatever_a_manifest_says_nothing_but_our_errors_come_out(
    folders: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
    at: int,
    bits: int,
    cut: bool,
) -> None:
    folder = folders["kept"]
    content = bytearray((folder / "checkpoint.json").read_bytes())
    at %= len(content)
    content[at] ^= bits
    stand = tmp_path_factory.mktemp("stand")
    for each in folder.iterdir():
        if each.name != "checkpoint.json":
            (stand / each.name).symlink_to(each)
    (stand / "checkpoint.json").write_bytes(bytes(content[:at] if cut else content))
    verify(stand, quick=True)
    with_any_error(lambda: manifests.read(stand))
    list_kept(stand.parent)


def with_any_error(act: Callable[[], object]) -> None:
    try:
        act()
    except HeadgateError as error:
        told = error
    else:
        return
    assert told.code.startswith("CHECKPOINT_")
    assert told.hint


def test_a_folder_in_place_of_a_file_is_named(folders: dict[str, Path], tmp_path: Path) -> None:
    for place in ("kept", "spark"):
        folder = copy(folders[place], tmp_path / place)
        (folder / f"commits/{BATCH}").unlink()
        (folder / f"commits/{BATCH}").mkdir()
        assert f"commits/{BATCH}" in [each.file for each in verify(folder)]


def test_a_manifest_that_leaves_out_a_file_is_noticed(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = copy(folders["kept"], tmp_path / "kept")
    content = json.loads((folder / "checkpoint.json").read_text())
    gone = next(each for each in content["files"] if each.endswith(".changelog"))
    del content["files"][gone]
    (folder / "checkpoint.json").write_text(json.dumps(content))
    assert verify(folder) == [Problem(gone, "the manifest does not name it")]


def test_a_quick_look_sees_what_is_missing_or_cut_short(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    for damage in (delete, truncate, grow):
        folder = copy(folders["kept"], tmp_path / damage.__name__)
        file = of_kind(folder, "table")
        damage(folder / file)
        assert [each.file for each in verify(folder, quick=True)] == [file]


def test_what_is_no_checkpoint_is_said_to_be_none(tmp_path: Path) -> None:
    assert verify(tmp_path)[0].what == "no batch has committed"
    assert verify(tmp_path / "nowhere")[0].missing
    (tmp_path / "file").touch()
    assert verify(tmp_path / "file")[0].missing


def test_the_newest_whole_checkpoint_is_found_and_each_newer_one_is_reported(
    tmp_path: Path,
) -> None:
    spark = unpack(tmp_path)
    for batch in (11, 12, 13):
        keep(spark, batch, tmp_path / "kept", facts())
    (tmp_path / "kept/chk-13/commits/13").unlink()
    bad = next((tmp_path / "kept/chk-12/state/0/0").glob("13_*.zip"))
    break_link(bad)
    flip(bad)
    good, problems = find_good(list_kept(tmp_path / "kept"))
    assert good is not None
    assert good.id == "chk-11"
    assert list(problems) == ["chk-13", "chk-12"]
    assert problems["chk-13"][0].file == "commits/13"
    assert find_good([])[0] is None


def test_checking_refuses_with_the_words_of_the_caller(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = copy(folders["savepoint"], tmp_path / "sp")
    check(folder, what="cannot do it", hint="do this")
    (folder / "metadata").unlink()
    with pytest.raises(HeadgateError, match="cannot do it: metadata is missing") as caught:
        check(folder, what="cannot do it", hint="do this")
    assert caught.value.hint == "do this"
