"""Jars are fetched once, checked before they are used, and asked for by name where they cannot be.

No network: a Java of the test's own stands for Ivy.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import multiprocessing
import os
from pathlib import Path

import pytest

from headgate import HeadgateError, _artifacts
from headgate._artifacts import Artifact, read_artifacts, resolve, spark_jars
from headgate._kernel.connector_jars import CONNECTORS, STORES
from headgate.brokers.kafka import VERSION, broker_jars
from headgate.errors import Domain


def artifact(name: str, content: bytes | None = None) -> Artifact:
    """Return an artifact whose right bytes are its name, unless others are given."""
    right = name.encode() if content is None else content
    return Artifact("org.example", name, "1.0", hashlib.sha256(right).hexdigest(), len(right))


ONE, TWO = artifact("one"), artifact("two")

# Finds what is asked for and where it goes, and puts the name there as the jar's content.
FETCHES = """
while [ $# -gt 0 ]; do
  [ "$1" = -dependency ] && name=$3 && version=$4
  [ "$1" = -retrieve ] && folder=${2%/*}
  shift
done
echo "	[SUCCESSFUL ] org.example#$name;$version!$name.jar (1ms)"
printf %s "$name" > "$folder/$name-$version.jar"
"""
BRINGS_TWO_MORE = (
    FETCHES
    + """
for more in a b; do
  echo "	[SUCCESSFUL ] org.example#$more;$version!$more.jar(bundle) (1ms)"
  printf %s "$more" > "$folder/$more-$version.jar"
done
"""
)
OFFLINE = "echo 'WARN: java.net.UnknownHostException: registry'; exit 1"


class Stage:
    """A cache, and a Java that writes down each time it is started."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cache = tmp_path / "cache"
        self.jars = self.cache / "jars"
        self._calls = tmp_path / "calls"
        self._java = tmp_path / "jdk" / "bin" / "java"
        self._java.parent.mkdir(parents=True)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
        monkeypatch.setenv("HEADGATE_CACHE", str(self.cache))
        self.java_does(FETCHES)

    def java_does(self, script: str) -> None:
        """Replace what the Java does."""
        self._java.write_text(f'#!/bin/sh\necho "$@" >> {self._calls}\n{script}\n')
        self._java.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        """The command lines that Java was started with."""
        return self._calls.read_text().splitlines() if self._calls.exists() else []

    def names(self) -> list[str]:
        """Return what is in the cache under a name."""
        return sorted(file.name for file in self.jars.glob("[!.]*"))


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(tmp_path, monkeypatch)


def test_jars_are_fetched_once_and_progress_names_each(stage: Stage) -> None:
    told: list[str] = []
    files = resolve((ONE, TWO), progress=told.append)
    assert files == (stage.jars / "one-1.0.jar", stage.jars / "two-1.0.jar")
    assert [file.read_text() for file in files] == ["one", "two"]
    assert told == [
        f"downloading 2 files, 6B, once, into {stage.jars}",
        *("one-1.0.jar, 3B (1 of 2)", "two-1.0.jar, 3B (2 of 2)"),
    ]
    assert len(stage.calls) == 2
    assert resolve((ONE, TWO), progress=told.append) == files
    assert (len(stage.calls), len(told)) == (2, 3)


def test_a_download_is_told_with_its_size_before_it_begins_and_as_it_goes_on(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_artifacts, "_LINE_EVERY_S", 0.02)
    large = artifact("large", b"0123456789")
    part = f"{stage.cache}/ivy/org.example/large/jars"
    # The half of it, as Ivy writes it, until the test has seen that this was told.
    stage.java_does(
        f"""mkdir -p {part} && printf 01234 > {part}/large-1.0.jar.part
while [ ! -f {stage.cache}/seen ]; do sleep 0.01; done
mv {part}/large-1.0.jar.part {part}/large-1.0.jar
for last; do [ "$before" = -retrieve ] && folder=${{last%/*}}; before=$last; done
printf 0123456789 > "$folder/large-1.0.jar" """
    )
    told: list[tuple[str, int]] = []

    def tell(line: str) -> None:
        told.append((line, len(stage.calls)))
        if line.startswith("downloading, 5B"):
            (stage.cache / "seen").touch()

    resolve((large,), progress=tell)
    assert told[0] == (f"downloading large-1.0.jar, 10B, once, into {stage.jars}", 0)
    assert "downloading, 5B of 10B" in [line for line, _ in told]


def test_a_download_of_another_process_is_waited_for_and_that_is_told(stage: Stage) -> None:
    stage.jars.mkdir(parents=True)
    told: list[str] = []
    with (stage.jars / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        def tell(line: str) -> None:
            told.append(line)
            (stage.jars / "one-1.0.jar").write_text("one")
            fcntl.flock(lock, fcntl.LOCK_UN)

        resolve((ONE,), progress=tell)
    assert told == ["waiting for another process that is downloading"]


def test_ivy_is_asked_for_one_jar_and_keeps_its_files_in_the_cache(stage: Stage) -> None:
    resolve((ONE,))
    (call,) = stage.calls
    assert "org.apache.ivy.Main" in call
    assert f"-cache {stage.cache}/ivy -notransitive -dependency org.example one 1.0" in call
    assert call.endswith("-types jar bundle")


def test_a_file_with_a_classifier_is_asked_for_in_a_file(stage: Stage) -> None:
    digest = hashlib.sha256(b"packed").hexdigest()
    packed = Artifact("org.example", "big", "1.0", digest, 6, classifier="bin", extension="tar.gz")
    stage.java_does(
        """
while [ $# -gt 0 ]; do
  [ "$1" = -ivy ] && asks=$2
  [ "$1" = -retrieve ] && folder=${2%/*}
  shift
done
grep -q 'type="tar.gz" ext="tar.gz" m:classifier="bin"' "$asks" &&
  printf packed > "$folder/big-1.0-bin.tar.gz"
"""
    )
    assert resolve((packed,)) == (stage.jars / "big-1.0-bin.tar.gz",)
    assert packed.coordinates == "org.example:big:tar.gz:bin:1.0"
    (call,) = stage.calls
    assert call.endswith("/[artifact]-[revision](-[classifier]).[ext]")
    assert "-dependency" not in call


def test_a_settings_file_of_the_house_is_handed_to_ivy(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADGATE_IVY_SETTINGS", "/etc/ivysettings.xml")
    resolve((ONE,))
    assert "-settings /etc/ivysettings.xml" in stage.calls[0]


def test_many_jars_come_with_the_one_that_needs_them(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_artifacts, "_MANY", 3)
    stage.java_does(BRINGS_TWO_MORE)
    wanted = (ONE, artifact("a"), artifact("b"), TWO)
    told: list[str] = []
    assert len(resolve(wanted, root=ONE, progress=told.append)) == 4
    assert ["-notransitive" in call for call in stage.calls] == [False, True]
    assert told == [
        f"downloading 4 files, 8B, once, into {stage.jars}",
        *("one-1.0.jar, 3B (1 of 4)", "a-1.0.jar, 1B (2 of 4)"),
        *("b-1.0.jar, 1B (3 of 4)", "two-1.0.jar, 3B (4 of 4)"),
    ]


def test_many_jars_that_need_each_other_come_at_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_artifacts, "_MANY", 2)
    stage.java_does(
        """
while [ $# -gt 0 ]; do
  [ "$1" = -ivy ] && asks=$2
  [ "$1" = -retrieve ] && folder=${2%/*}
  shift
done
for name in one two; do
  grep -q '<artifact name="'$name'" type="jar" ext="jar"/>' "$asks" &&
    printf %s "$name" > "$folder/$name-1.0.jar"
done
"""
    )
    assert resolve((ONE, TWO)) == (stage.jars / "one-1.0.jar", stage.jars / "two-1.0.jar")
    assert len(stage.calls) == 1


def test_a_fetched_jar_with_other_bytes_is_refused_and_never_gets_its_name(stage: Stage) -> None:
    other = artifact("one", b"what it should be")
    ivys_copy = stage.cache / "ivy" / "org.example" / "one"
    ivys_copy.mkdir(parents=True)
    with pytest.raises(HeadgateError, match="must have") as caught:
        resolve((other,))
    assert (caught.value.code, caught.value.domain) == ("ARTIFACT_CORRUPT", Domain.EXTERNAL)
    assert other.sha256 in caught.value.message
    assert stage.names() == []
    # The next try must not be handed the same bytes out of Ivy's cache.
    assert not ivys_copy.exists()


def test_without_network_every_missing_jar_is_named_and_where_it_goes(stage: Stage) -> None:
    resolve((ONE,))
    stage.java_does(OFFLINE)
    with pytest.raises(HeadgateError) as caught:
        resolve((ONE, TWO, artifact("three")))
    error = caught.value
    assert (error.code, error.domain) == ("ARTIFACT_UNAVAILABLE", Domain.EXTERNAL)
    assert not error.retryable
    assert "two-1.0.jar (org.example:two:1.0)" in error.message
    assert "three-1.0.jar (org.example:three:1.0)" in error.message
    assert "one-1.0.jar" not in error.message
    assert str(stage.jars) in error.hint
    assert "UnknownHostException" in error.root_cause
    # One try tells; the others would only take their time.
    assert len(stage.calls) == 2


def test_a_jar_that_was_put_there_by_hand_counts_as_fetched(stage: Stage) -> None:
    stage.jars.mkdir(parents=True)
    (stage.jars / "one-1.0.jar").write_text("one")
    assert resolve((ONE,)) == (stage.jars / "one-1.0.jar",)
    assert stage.calls == []


def test_a_wrong_jar_that_was_put_there_by_hand_is_refused(stage: Stage) -> None:
    stage.jars.mkdir(parents=True)
    file = stage.jars / "one-1.0.jar"
    file.write_text("half of it")
    with pytest.raises(HeadgateError) as caught:
        resolve((ONE,))
    assert (caught.value.code, caught.value.hint) == ("ARTIFACT_CORRUPT", f"rm {file}")
    file.unlink()
    assert resolve((ONE,)) == (file,)


def test_bytes_are_read_once_and_again_only_after_a_change(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = resolve((ONE,))
    read: list[Path] = []
    right = _artifacts._sha256

    def count(path: Path) -> str:
        read.append(path)
        return right(path)

    monkeypatch.setattr(_artifacts, "_sha256", count)
    resolve((ONE,))
    assert read == []
    os.utime(file, (1, 1))
    resolve((ONE,))
    resolve((ONE,))
    assert read == [file]
    file.write_text("eno")
    os.utime(file, (2, 2))
    with pytest.raises(HeadgateError, match="ARTIFACT_CORRUPT"):
        resolve((ONE,))


def _resolve_one(_: int) -> str:
    return resolve((ONE,))[0].read_text()


def test_processes_at_once_fetch_a_jar_once(stage: Stage) -> None:
    stage.java_does(f"sleep 0.3\n{FETCHES}")
    with multiprocessing.get_context("fork").Pool(4) as pool:
        assert pool.map(_resolve_one, range(4), chunksize=1) == ["one"] * 4
    assert len(stage.calls) == 1
    assert stage.names() == ["one-1.0.jar"]


def test_without_java_the_next_step_is_told(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(stage.cache / "nothing"))
    with pytest.raises(HeadgateError, match=r"one-1\.0\.jar") as caught:
        resolve((ONE,))
    assert (caught.value.code, caught.value.exit_code) == ("JAVA_MISSING", 3)


def test_the_cache_is_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HEADGATE_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert _artifacts.cache_folder() == tmp_path / ".cache" / "headgate"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert _artifacts.cache_folder() == tmp_path / "xdg" / "headgate"
    monkeypatch.setenv("HEADGATE_CACHE", str(tmp_path / "own"))
    assert _artifacts.cache_folder() == tmp_path / "own"


def test_a_list_of_another_format_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "jars.json"
    file.write_text(json.dumps({"format": 2, "artifacts": []}))
    with pytest.raises(HeadgateError, match="its format is 2") as caught:
        read_artifacts(file)
    assert caught.value.code == "ARTIFACTS_UNREADABLE"


def test_the_broker_and_the_kernel_take_one_and_the_same_client() -> None:
    jars = broker_jars()
    assert jars[0].coordinates == f"org.apache.kafka:kafka_2.13:{VERSION}"
    assert {*CONNECTORS["kafka"]} <= {*jars}
    assert len({jar.file for jar in jars}) == len(jars)


def test_the_jars_of_a_store_are_those_of_pysparks_hadoop_without_what_pyspark_has() -> None:
    jars = STORES["s3a"]
    theirs = {file.name.rsplit("-", 1)[0] for file in spark_jars().glob("*.jar")}

    assert (spark_jars() / f"hadoop-client-api-{jars[0].version}.jar").is_file()
    assert jars[0].name == "hadoop-aws"
    assert not theirs & {jar.name for jar in jars}
    assert sum(jar.size for jar in jars) < 20_000_000
