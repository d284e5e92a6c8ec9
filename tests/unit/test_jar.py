"""The kernel's jar fits its sources, or is built anew, or says what is missing."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from headgate import HeadgateError
from headgate._kernel import jar
from headgate.errors import Domain

HELLO = "package x; public final class Hello {}\n"


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "java"
    (folder / "x").mkdir(parents=True)
    (folder / "x" / "Hello.java").write_text(HELLO)
    return folder


def make_jar(path: Path, digest: str | None) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x", "y")
        if digest is not None:
            archive.writestr("META-INF/headgate-digest", digest)


def test_the_digest_changes_with_every_change_of_the_sources(sources: Path) -> None:
    seen = [jar.digest(sources)]
    (sources / "x" / "Hello.java").write_text(HELLO + " ")
    seen.append(jar.digest(sources))
    (sources / "x" / "Hello.java").rename(sources / "x" / "Other.java")
    seen.append(jar.digest(sources))
    (sources / "Hello.java").write_text("")
    seen.append(jar.digest(sources))
    assert len(set(seen)) == len(seen)
    (sources / "notes.txt").write_text("no source")
    assert jar.digest(sources) == seen[-1]


def test_the_digest_changes_with_spark(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = jar.digest(sources)
    monkeypatch.setattr(jar, "version", lambda _: "9.9.9")
    assert jar.digest(sources) != before


def test_a_jar_tells_the_digest_it_carries(tmp_path: Path) -> None:
    file = tmp_path / "k.jar"
    assert jar.read_digest(file) is None
    file.write_bytes(b"no zip")
    assert jar.read_digest(file) is None
    make_jar(file, None)
    assert jar.read_digest(file) is None
    make_jar(file, "abc")
    assert jar.read_digest(file) == "abc"


def _stand(monkeypatch: pytest.MonkeyPatch, sources: Path | None, file: Path) -> list[Path]:
    """Put the module beside other sources and another jar, and return what it builds."""
    built: list[Path] = []

    def build(_sources: Path, target: Path) -> None:
        built.append(target)

    monkeypatch.setattr(jar, "find_sources", lambda: sources)
    monkeypatch.setattr(jar, "JAR", file)
    monkeypatch.setattr(jar, "build", build)
    return built


def test_a_jar_that_fits_is_taken_as_it_is(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "k.jar"
    make_jar(file, jar.digest(sources))
    assert (_stand(monkeypatch, sources, file), jar.get_jar()) == ([], file)


@pytest.mark.parametrize("carried", ["of older sources", None])
def test_a_stale_or_missing_jar_is_built(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, carried: str | None
) -> None:
    file = tmp_path / "k.jar"
    if carried is not None:
        make_jar(file, carried)
    built = _stand(monkeypatch, sources, file)
    jar.get_jar()
    assert built == [file]


def test_an_installed_package_takes_its_jar_whatever_it_carries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "k.jar"
    built = _stand(monkeypatch, None, file)
    with pytest.raises(HeadgateError) as caught:
        jar.get_jar()
    assert (caught.value.code, caught.value.domain) == ("KERNEL_MISSING", Domain.INTERNAL)
    make_jar(file, "anything")
    assert (jar.get_jar(), built) == (file, [])


def test_without_a_compiler_the_next_step_is_told(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert jar.find_javac() is None
    with pytest.raises(HeadgateError) as caught:
        jar.build(sources, tmp_path / "k.jar")
    assert (caught.value.code, caught.value.exit_code) == ("JDK_MISSING", 3)
    assert "make kernel" in caught.value.hint
    assert not (tmp_path / "k.jar").exists()


def test_the_compiler_of_java_home_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    javac = tmp_path / "jdk" / "bin" / "javac"
    javac.parent.mkdir(parents=True)
    javac.touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert jar.find_javac() == str(javac)


def _fake_javac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    javac = tmp_path / "jdk" / "bin" / "javac"
    javac.parent.mkdir(parents=True)
    javac.write_text(f"#!/bin/sh\n{script}\n")
    javac.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))


# Finds the folder after -d, and leaves a class there.
_COMPILES = """
while [ "$1" != "-d" ]; do shift; done
mkdir -p "$2/x" && echo code > "$2/x/Hello.class"
"""


def test_the_same_sources_give_the_same_jar(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake_javac(tmp_path, monkeypatch, _COMPILES)
    one, two = tmp_path / "one.jar", tmp_path / "two.jar"
    jar.build(sources, one)
    jar.build(sources, two)
    assert one.read_bytes() == two.read_bytes()
    assert jar.read_digest(one) == jar.digest(sources)
    with zipfile.ZipFile(one) as archive:
        assert "x/Hello.class" in archive.namelist()
    assert sorted(file.name for file in tmp_path.glob("*.jar*")) == ["one.jar", "two.jar"]


def test_sources_that_do_not_compile_leave_the_old_jar_in_place(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake_javac(tmp_path, monkeypatch, "echo 'Hello.java:1: error' >&2; exit 1")
    file = tmp_path / "k.jar"
    make_jar(file, "old")
    with pytest.raises(HeadgateError, match=r"Hello.java:1: error") as caught:
        jar.build(sources, file)
    assert caught.value.code == "KERNEL_BUILD_FAILED"
    assert jar.read_digest(file) == "old"
