"""A JVM takes its classes from an archive that was made for it."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from headgate._artifacts import get_java, spark_jars
from headgate._kernel.archive import Recording, jvm_options, make_archive
from headgate._kernel.jar import find_javac, get_jars

MAIN = "org.apache.ivy.Main"

# Binds arguments, for which Java makes a class that is in no jar.
BINDING = """
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

public class Binding {
  static String join(Object a, int b, long c, double d, Object e, int f) {
    return "" + a + b + c + d + e + f;
  }

  public static void main(String[] args) throws Throwable {
    var type = MethodType.methodType(
        String.class, Object.class, int.class, long.class, double.class, Object.class, int.class);
    var join = MethodHandles.lookup().findStatic(Binding.class, "join", type);
    System.out.println(MethodHandles.insertArguments(join, 0, "a", 1, 2L, 3.0, "b", 4).invoke());
  }
}
"""


def test_classes_come_out_of_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_CACHE", str(tmp_path / "cache"))
    recording = Recording(tmp_path)
    jars = get_jars()
    ivy = next(spark_jars().glob("ivy-*.jar"))
    class_path = os.pathsep.join(map(str, [*jars, ivy]))
    recording.class_path.write_text(class_path)
    run(class_path, f"-XX:DumpLoadedClassList={recording.classes}")
    before = run(class_path, "-Xlog:class+load")
    assert f"{MAIN} source: jar:" in before or f"{MAIN} source: file:" in before

    make_archive(jars, recording, recorded_with=len(jars))

    options = [each.strip('"') for each in jvm_options(jars)]
    after = run(class_path, *options, "-Xlog:class+load", "-Xlog:gc+metaspace")
    assert f"{MAIN} source: shared objects file" in after
    # It lies where it was made for, so that JVMs share its pages.
    assert "SharedBaseAddress: 0x0000000800000000" in after
    # On another class path the archive does not fit, and nothing is taken from it.
    other = run(str(ivy), *options, "-Xlog:class+load")
    assert f"{MAIN} source: shared objects file" not in other


def test_a_jvm_with_an_archive_can_be_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADGATE_CACHE", str(tmp_path / "cache"))
    recording = Recording(tmp_path)
    jars = [*get_jars(), _compile(tmp_path, "Binding", BINDING)]
    class_path = os.pathsep.join(map(str, jars))
    recording.class_path.write_text(class_path)
    run(class_path, f"-XX:DumpLoadedClassList={recording.classes}", main="Binding")
    assert "SPECIES_RESOLVE" in recording.classes.read_text()
    make_archive(jars, recording, recorded_with=len(jars))

    options = [each.strip('"') for each in jvm_options(jars)]
    assert "Binding source: shared objects file" in run(
        class_path, *options, "-Xlog:class+load", main="Binding"
    )
    recorded = tmp_path / "recorded.jfr"
    flight = f"-XX:StartFlightRecording:filename={recorded},dumponexit=true"
    assert "a123.0b4" in run(class_path, *options, flight, main="Binding")
    assert recorded.stat().st_size > 0


def _compile(folder: Path, name: str, source: str) -> Path:
    """Return a jar with one class."""
    file = folder / f"{name}.java"
    file.write_text(source)
    javac = find_javac()
    assert javac is not None
    subprocess.run([javac, "-d", str(folder), str(file)], check=True)
    jar = folder / f"{name}.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.write(folder / f"{name}.class", f"{name}.class")
    return jar


def run(class_path: str, *options: str, main: str = MAIN) -> str:
    done = subprocess.run(
        [get_java("run a test"), *options, "-cp", class_path, main, "-version"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
