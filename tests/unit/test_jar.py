"""The kernel's jars fit their sources, or are built anew, or say what is missing."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from headgate import HeadgateError
from headgate._artifacts import Artifact
from headgate._kernel import jar
from headgate._kernel.connector_jars import CONNECTORS
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


class Modules:
    """A checkout with core and a module, and a compiler that writes down what it is asked."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kernel = tmp_path / "kernel"
        self.core = self.add("main", "Core")
        self.jar = tmp_path / "k.jar"
        self.module_jar = tmp_path / "k-kafka.jar"
        self._calls = tmp_path / "calls"
        _fake_javac(tmp_path, monkeypatch, f'echo "$@" >> {self._calls}\n{_COMPILES}')
        monkeypatch.setattr(jar, "_KERNEL", self.kernel)
        monkeypatch.setattr(jar, "JAR", self.jar)
        cache = tmp_path / "cache" / "jars"
        cache.mkdir(parents=True)
        monkeypatch.setenv("HEADGATE_CACHE", str(tmp_path / "cache"))
        client = Artifact("org.example", "client", "1", hashlib.sha256(b"client").hexdigest(), 6)
        monkeypatch.setitem(CONNECTORS, "kafka", (client,))
        self.client = cache / client.file
        self.client.write_bytes(b"client")

    def add(self, folder: str, name: str) -> Path:
        """Add a source file, and return it."""
        file = self.kernel / folder / "java" / "x" / f"{name}.java"
        file.parent.mkdir(parents=True)
        file.write_text(HELLO.replace("Hello", name))
        return file

    @property
    def compiled(self) -> list[str]:
        """The names of the sources that were compiled, one line for each call."""
        calls = self._calls.read_text().splitlines() if self._calls.exists() else []
        return [Path(call.split()[-1]).name for call in calls]

    @property
    def last_class_path(self) -> str:
        words = self._calls.read_text().splitlines()[-1].split()
        return words[words.index("-cp") + 1]


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Modules:
    return Modules(tmp_path, monkeypatch)


def test_a_module_is_built_against_core_and_its_connector(modules: Modules) -> None:
    modules.add("kafka", "Kafka")
    assert jar.get_jars(("kafka",)) == (modules.jar, modules.module_jar, modules.client)
    assert modules.compiled == ["Core.java", "Kafka.java"]
    first, second, _ = modules.last_class_path.split(":")
    assert (first, second) == (str(modules.jar), str(modules.client))
    assert jar.get_jars(("kafka",))
    assert len(modules.compiled) == 2


def test_a_module_is_stale_after_a_change_of_its_own_of_core_or_of_its_connector(
    modules: Modules, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = modules.add("kafka", "Kafka")
    jar.get_jars(("kafka",))
    module.write_text(module.read_text() + " ")
    jar.get_jars(("kafka",))
    assert modules.compiled[2:] == ["Kafka.java"]
    modules.core.write_text(modules.core.read_text() + " ")
    jar.get_jars(("kafka",))
    assert modules.compiled[3:] == ["Core.java", "Kafka.java"]
    newer = Artifact("org.example", "client", "2", hashlib.sha256(b"2").hexdigest(), 1)
    modules.client.with_name(newer.file).write_bytes(b"2")
    monkeypatch.setitem(CONNECTORS, "kafka", (newer,))
    jar.get_jars(("kafka",))
    assert modules.compiled[5:] == ["Kafka.java"]


def test_core_alone_needs_neither_the_module_nor_its_connector(modules: Modules) -> None:
    modules.add("kafka", "Kafka")
    modules.client.unlink()
    assert jar.get_jars() == (jar.get_jar(),) == (modules.jar,)
    assert modules.compiled == ["Core.java"]


def test_every_module_with_sources_is_built_and_one_without_is_left_out(modules: Modules) -> None:
    assert jar.build_jars() == (modules.jar,)
    modules.add("kafka", "Kafka")
    assert jar.build_jars() == (modules.jar, modules.module_jar)


def test_a_module_of_an_installed_package_is_taken_as_it_is(
    modules: Modules, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jar, "_KERNEL", modules.kernel / "elsewhere")
    make_jar(modules.jar, "anything")
    with pytest.raises(HeadgateError, match=r"k-kafka\.jar") as caught:
        jar.get_jars(("kafka",))
    assert caught.value.code == "KERNEL_MISSING"
    make_jar(modules.module_jar, "anything")
    assert jar.get_jars(("kafka",)) == (modules.jar, modules.module_jar, modules.client)
    assert modules.compiled == []
