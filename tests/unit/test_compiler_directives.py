"""What the second compiler leaves alone: directives the JVM takes, of classes that exist."""

from __future__ import annotations

import re
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path
from zipfile import ZipFile

import pytest

from headgate._artifacts import get_java, spark_jars
from headgate._kernel.gateway import DIRECTIVES

KERNEL = Path(__file__).parents[2] / "kernel" / "src"
# The JDK's classes are in no jar, and Kafka's come on first use.
ELSEWHERE = ("java/", "jdk/", "sun/", "org/apache/kafka/")


@pytest.fixture(scope="module")
def classes() -> list[str]:
    """Give the names of all classes of Spark's jars and of the kernel."""
    found = [
        entry.removesuffix(".class")
        for jar in sorted(spark_jars().glob("*.jar"))
        for entry in ZipFile(jar).namelist()
        if entry.endswith(".class")
    ]
    ours = (re.sub(r".*/java/", "", file.as_posix()) for file in KERNEL.rglob("*.java"))
    return [*found, *(each.removesuffix(".java") for each in ours)]


def patterns() -> list[str]:
    """Return the classes that the directives name, without the methods."""
    matches = re.findall(r'"([^"]+)"', DIRECTIVES.read_text(encoding="utf-8"))
    return [each.rpartition(".")[0] for each in matches]


def test_the_jvm_takes_the_directives() -> None:
    done = subprocess.run(
        [
            get_java("test its directives"),
            "-XX:+UnlockDiagnosticVMOptions",
            f"-XX:CompilerDirectivesFile={DIRECTIVES}",
            "-XX:+CompilerDirectivesPrint",
            "-version",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    said = done.stdout + done.stderr
    assert "1 compiler directives added" in said
    taken = said[said.index("Directive:") : said.index("Directive: (default)")]
    assert set(re.findall(r"[\w/*$]+(?=\.)", taken.split("c1 directives")[0])) == set(patterns())
    assert "Exclude:false" in taken.split("c1 directives")[1].split("c2 directives")[0]
    assert "Exclude:true" in taken.split("c2 directives")[1]


def test_every_class_they_name_is_there(classes: list[str]) -> None:
    named = [each for each in patterns() if not each.startswith(ELSEWHERE)]
    assert len(named) > 30
    assert [each for each in named if not any(fnmatchcase(name, each) for name in classes)] == []
