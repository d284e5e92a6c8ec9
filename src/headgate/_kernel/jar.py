"""The kernel's jar: where it is, whether it fits the sources, and how it is built.

The jar carries a digest of the sources and of the Spark version it was compiled against. In a
checkout a stale jar is rebuilt; an installed package has no sources, and its jar is taken as it is.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from headgate.errors import Domain, HeadgateError

JAR = Path(__file__).with_name("headgate-kernel.jar")
_DIGEST = "META-INF/headgate-digest"
# A jar's entries carry a time; a fixed one makes the same sources give the same bytes.
_EPOCH = (1980, 1, 1, 0, 0, 0)
_JAVA_RELEASE = "17"


def find_sources() -> Path | None:
    """Return the folder of the kernel's Java sources, or None outside a checkout."""
    folder = Path(__file__).resolve().parents[3] / "kernel" / "src" / "main" / "java"
    return folder if folder.is_dir() else None


def spark_jars() -> Path:
    """Return the folder of PySpark's own jars, which the kernel is compiled against."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise HeadgateError(
            "SPARK_MISSING",
            "cannot find Spark: the package pyspark is not installed",
            hint="pip install pyspark==4.3.0",
            domain=Domain.EXTERNAL,
        )
    return Path(spec.origin).parent / "jars"


def digest(sources: Path) -> str:
    """Return what the jar must carry to fit these sources and the installed Spark."""
    seen = hashlib.sha256(f"spark {version('pyspark')} release {_JAVA_RELEASE}\n".encode())
    for file in _java_files(sources):
        seen.update(f"{file.relative_to(sources).as_posix()}\n".encode())
        seen.update(file.read_bytes())
    return seen.hexdigest()


def read_digest(jar: Path) -> str | None:
    """Return the digest a jar carries, or None if there is no jar or it is not one of ours."""
    try:
        with zipfile.ZipFile(jar) as archive:
            return archive.read(_DIGEST).decode()
    except (FileNotFoundError, KeyError, zipfile.BadZipFile):
        return None


def get_jar() -> Path:
    """Return the jar, built anew where the sources beside it have changed."""
    sources = find_sources()
    if sources is None:
        if not JAR.exists():
            raise HeadgateError(
                "KERNEL_MISSING",
                f"cannot start Spark: the package has no {JAR.name}",
                hint="pip install --force-reinstall headgate",
                domain=Domain.INTERNAL,
            )
        return JAR
    if read_digest(JAR) != digest(sources):
        build(sources, JAR)
    return JAR


def build(sources: Path, jar: Path) -> None:
    """Compile the sources into a jar; the old one stays in place until the new one is whole."""
    javac = find_javac()
    if javac is None:
        raise HeadgateError(
            "JDK_MISSING",
            "cannot build the kernel: there is no javac, and the jar does not fit the sources",
            hint="install a JDK 17 or newer (or set JAVA_HOME to one), then run: make kernel",
            domain=Domain.EXTERNAL,
        )
    with tempfile.TemporaryDirectory(prefix="headgate-kernel-") as folder:
        classes = Path(folder)
        command = [javac, "-nowarn", "-Xlint:none", "--release", _JAVA_RELEASE, "-g"]
        command += ["-encoding", "UTF-8", "-d", folder, "-cp", f"{spark_jars()}{os.sep}*"]
        command += [str(file) for file in _java_files(sources)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise HeadgateError(
                "KERNEL_BUILD_FAILED",
                f"cannot build the kernel: javac says\n{done.stderr.strip()}",
                hint="make kernel",
                domain=Domain.INTERNAL,
            )
        _write_jar(classes, jar, digest(sources))


def find_javac() -> str | None:
    """Return the compiler of JAVA_HOME, else the one on the path."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "javac").exists():
        return str(Path(home) / "bin" / "javac")
    return shutil.which("javac")


def _java_files(sources: Path) -> Iterable[Path]:
    return sorted(sources.rglob("*.java"))


def _write_jar(classes: Path, jar: Path, fits: str) -> None:
    making = jar.with_name(f"{jar.name}.{os.getpid()}.tmp")
    with zipfile.ZipFile(making, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_entry("META-INF/MANIFEST.MF"), "Manifest-Version: 1.0\r\n\r\n")
        archive.writestr(_entry(_DIGEST), fits)
        for file in sorted(classes.rglob("*.class")):
            archive.writestr(_entry(file.relative_to(classes).as_posix()), file.read_bytes())
    making.replace(jar)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry
