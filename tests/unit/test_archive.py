"""Archives of classes: found where they fit, made whole or not at all, and only a few kept."""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from headgate import HeadgateError
from headgate._codec import encode
from headgate._kernel import archive
from headgate._kernel.archive import (
    RECORD,
    Recording,
    archive_file,
    find_recording,
    jvm_options,
    make_archive,
)
from headgate.errors import Domain
from headgate.jobs.host import preparation as preparing
from headgate.jobs.host.preparation import prepare

# Stands for java: keeps the arguments, and does as the test says.
JAVA = """#!/bin/sh
printf '%s\\n' "$@" > "{folder}/arguments"
for each in "$@"; do
  case "$each" in
    -XX:SharedArchiveFile=*) file="${{each#*=}}" ;;
    -XX:SharedClassListFile=*) cp "${{each#*=}}" "{folder}/listed" ;;
  esac
done
{act}
"""


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    path = tmp_path / "a kernel.jar"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("io/headgate/kernel/Here.class", "")
        file.writestr("io/headgate/kernel/There.class", "")
        file.writestr("org/apache/kafka/server/Other.class", "")
        file.writestr("META-INF/versions/11/io/headgate/kernel/Old.class", "")
    return path


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    folder = tmp_path / "recorded"
    folder.mkdir()
    made = Recording(folder)
    made.classes.write_text("java/lang/Object id: 0\nio/headgate/kernel/Here id: 1\n")
    made.class_path.write_text(os.pathsep.join(["core.jar", "/spark/a.jar", "/spark/b.jar"]))
    return made


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Have a script stand for java; returns the folder with what it was given."""
    monkeypatch.setenv("HEADGATE_CACHE", str(tmp_path / "the cache"))
    monkeypatch.delenv(RECORD, raising=False)
    folder = tmp_path / "jdk" / "bin"
    folder.mkdir(parents=True)
    monkeypatch.setenv("JAVA_HOME", str(folder.parent))

    def acting(act: str) -> Path:
        script = folder / "java"
        script.write_text(JAVA.format(folder=tmp_path, act=act))
        script.chmod(script.stat().st_mode | stat.S_IEXEC)
        return tmp_path

    acting("exit 1")
    return acting


@pytest.mark.usefixtures("java")
def test_without_an_archive_a_jvm_is_started_as_ever(jar: Path) -> None:
    assert jvm_options([jar]) == []


@pytest.mark.usefixtures("java")
def test_an_archive_is_used_where_it_is_and_its_path_may_hold_blanks(jar: Path) -> None:
    file = archive_file([jar])
    file.parent.mkdir(parents=True)
    file.touch()
    os.utime(file, (1, 1))
    used, shared, *in_place = jvm_options([jar])
    assert (used, shared) == (f'"-XX:SharedArchiveFile={file}"', "-Xshare:auto")
    assert "-XX:ArchiveRelocationMode=0" in in_place
    assert " " in str(file)
    assert file.stat().st_mtime > 1, "those in use are known from the others"


@pytest.mark.usefixtures("java")
def test_a_user_without_a_home_has_no_archive_and_starts_jobs_all_the_same(
    jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(archive, "cache_folder", homeless)
    assert jvm_options([jar]) == []

    class Closed(type(jar)):  # type: ignore[misc]
        def exists(self) -> bool:
            raise PermissionError(str(self))

    monkeypatch.setattr(archive, "cache_folder", lambda: Closed(tmp_path))
    assert jvm_options([jar]) == []


def test_a_jvm_that_is_to_record_uses_no_archive(
    jar: Path, tmp_path: Path, java: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    java("exit 1")
    archive_file([jar]).parent.mkdir(parents=True)
    archive_file([jar]).touch()
    monkeypatch.setenv(RECORD, str(tmp_path))
    assert find_recording() == Recording(tmp_path)
    assert jvm_options([jar]) == [f'"-XX:DumpLoadedClassList={tmp_path}/classes"']


@pytest.mark.usefixtures("java")
def test_what_an_archive_was_made_of_is_in_its_name(
    jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [archive_file([jar]).name]
    os.utime(jar, (5, 5))
    names.append(archive_file([jar]).name)
    jar.write_bytes(jar.read_bytes() + b" ")
    names.append(archive_file([jar]).name)
    names.append(archive_file([jar, jar]).name)
    (tmp_path / "jdk" / "release").write_text('JAVA_VERSION="21"')
    names.append(archive_file([jar]).name)
    monkeypatch.setattr(archive, "version", lambda _: "4.4.0")
    names.append(archive_file([jar]).name)
    assert len(set(names)) == len(names)


def test_an_archive_is_made_of_our_jars_before_sparks_and_of_our_own_classes(
    jar: Path, recording: Recording, java: Callable[[str], Path]
) -> None:
    folder = java('echo whole > "$file"')
    made = make_archive([jar, jar], recording, recorded_with=1)
    assert made == archive_file([jar, jar])
    assert made.read_text() == "whole\n"
    assert list(made.parent.iterdir()) == [made]
    arguments = (folder / "arguments").read_text().splitlines()
    class_path = arguments[arguments.index("-cp") + 1].split(os.pathsep)
    assert class_path == [str(jar), str(jar), "/spark/a.jar", "/spark/b.jar"]
    listed = (folder / "listed").read_text().splitlines()
    assert listed[:2] == ["java/lang/Object id: 0", "io/headgate/kernel/Here id: 1"]
    assert set(listed[2:]) == {"io/headgate/kernel/There"}


def test_classes_that_java_makes_for_the_archive_alone_stay_out_of_it(
    jar: Path, recording: Recording, java: Callable[[str], Path]
) -> None:
    folder = java('echo whole > "$file"')
    with recording.classes.open("a") as lines:
        lines.write("java/lang/invoke/BoundMethodHandle$Species_LI id: 2\n")
        lines.write(
            "@lambda-form-invoker [SPECIES_RESOLVE] java.lang.invoke.BoundMethodHandle$Species_LI\n"
        )
        lines.write("@lambda-form-invoker [LF_RESOLVE] java.lang.invoke.Invokers$Holder x L_V\n")
    make_archive([jar], recording, recorded_with=1)
    listed = (folder / "listed").read_text()
    assert "Species_LI" not in listed
    assert "[LF_RESOLVE]" in listed


@pytest.mark.parametrize(
    ("act", "told"),
    [
        ("echo no room >&2; exit 3", "java ended with 3: no room"),
        ("exit 0", "java ended with 0"),
        ('echo half > "$file"; kill -9 $$', "java ended with -9"),
    ],
)
def test_an_archive_that_cannot_be_made_leaves_nothing_behind(
    act: str, told: str, jar: Path, recording: Recording, java: Callable[[str], Path]
) -> None:
    java(act)
    with pytest.raises(HeadgateError) as raised:
        make_archive([jar], recording, recorded_with=1)
    assert raised.value.code == "CLASS_ARCHIVE_FAILED"
    assert raised.value.domain is Domain.EXTERNAL
    assert told in raised.value.message
    assert list(archive_file([jar]).parent.iterdir()) == []


def test_the_archives_that_were_used_last_are_kept(
    jar: Path, recording: Recording, java: Callable[[str], Path]
) -> None:
    java('echo whole > "$file"')
    folder = archive_file([jar]).parent
    folder.mkdir(parents=True)
    for age in range(6):
        (folder / f"{age}.jsa").touch()
        os.utime(folder / f"{age}.jsa", (1_000 - age, 1_000 - age))
    made = make_archive([jar], recording, recorded_with=1)
    assert sorted(each.name for each in folder.iterdir()) == sorted(
        [made.name, "0.jsa", "1.jsa", "2.jsa"]
    )


def test_a_connector_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(HeadgateError) as raised:
        prepare(["kafka+pulsa"])
    assert raised.value.code == "CONNECTOR_UNKNOWN"
    assert "'pulsa'" in raised.value.message
    assert raised.value.hint == "did you mean 'pulsar'?"


def test_what_is_prepared_is_not_prepared_again(
    jar: Path, java: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    java("exit 1")
    monkeypatch.setattr(preparing, "get_jars", lambda *_, **__: (jar,))
    archive_file([jar]).parent.mkdir(parents=True)
    archive_file([jar]).write_text("whole")
    told: list[str] = []
    made = prepare(["embedded"], progress=told.append)
    assert encode(made) == [
        {
            "log": "embedded",
            "archive": str(archive_file([jar])),
            "bytes": 5,
            "seconds": None,
        }
    ]
    assert told == []


def test_what_is_asked_for_stays_when_room_is_made_for_the_rest(
    jar: Path, recording: Recording, java: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    java('echo whole > "$file"')
    jars = {0: (jar,), 1: (jar, jar)}
    monkeypatch.setattr(preparing, "get_jars", lambda modules=(), **_: jars[len(modules)])
    monkeypatch.setattr(preparing, "_record", lambda _: recording)
    old = archive_file(jars[0])
    old.parent.mkdir(parents=True)
    old.write_text("whole")
    os.utime(old, (1, 1))
    for age in range(2, 6):
        other = old.parent / f"{age}.jsa"
        other.touch()
        # Times of files are as coarse as the kernel's clock ticks: ones of now could be equal.
        os.utime(other, (age, age))
    made = prepare(["embedded", "kafka"])
    assert [each.took is None for each in made] == [True, False]
    assert all(each.archive.exists() for each in made)


def test_a_flow_that_does_not_end_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "_LONGEST", timedelta(seconds=0.01))
    with pytest.raises(HeadgateError, match="took more than") as raised:
        preparing._record(tmp_path)
    assert raised.value.code == "CLASS_ARCHIVE_FAILED"
