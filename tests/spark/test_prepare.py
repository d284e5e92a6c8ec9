"""A JVM takes its classes from an archive that was made for it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from headgate._artifacts import get_java, spark_jars
from headgate._kernel.archive import Recording, jvm_options, make_archive
from headgate._kernel.jar import get_jars

MAIN = "org.apache.ivy.Main"


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
    assert len(options) == 2
    after = run(class_path, *options, "-Xlog:class+load")
    assert f"{MAIN} source: shared objects file" in after
    # On another class path the archive does not fit, and nothing is taken from it.
    other = run(str(ivy), *options, "-Xlog:class+load")
    assert f"{MAIN} source: shared objects file" not in other


def run(class_path: str, *options: str) -> str:
    done = subprocess.run(
        [get_java("run a test"), *options, "-cp", class_path, MAIN, "-version"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
