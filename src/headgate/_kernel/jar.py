"""The kernel's jars: where they are, whether they fit the sources, and how they are built.

Core is compiled against PySpark's jars alone. A module, such as kafka, is compiled against core and
its connector's jars, and becomes a jar of its own: code that does not use it needs neither. A
store, such as s3a, is reached through Hadoop's interface: it has jars, and no module.

A jar contains a digest of its sources and dependencies. In a checkout a stale jar is rebuilt; an
installed package has no sources, and its jars are used unchanged.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

from headgate._artifacts import Progress, resolve, spark_jars
from headgate._kernel.connector_jars import CONNECTORS, STORES
from headgate.errors import Domain, HeadgateError

JAR = Path(__file__).with_name("headgate-kernel.jar")
_KERNEL = Path(__file__).resolve().parents[3] / "kernel" / "src"
_DIGEST = "META-INF/headgate-digest"
# Entries of a jar have a time; a fixed time makes builds reproducible.
_EPOCH = (1980, 1, 1, 0, 0, 0)
_JAVA_RELEASE = "17"


def find_sources() -> Path | None:
    """Return the folder of core's Java sources, or None outside a checkout."""
    folder = _KERNEL / "main" / "java"
    return folder if folder.is_dir() else None


def find_module_sources(module: str) -> Path | None:
    """Return the folder of a module's Java sources, or None if it has none."""
    folder = _KERNEL / module / "java"
    return folder if any(_java_files(folder)) else None


def module_jar(module: str) -> Path:
    """Return the path of a module's jar, which may not exist yet."""
    return JAR.with_name(f"{JAR.stem}-{module}.jar")


def digest(sources: Path, needs: Sequence[str] = ()) -> str:
    """Return the digest that a jar of these sources and the installed Spark must have.

    Args:
        needs: Its other dependencies, as text that changes with them.
    """
    against = "".join(f"{need}\n" for need in needs)
    spark = f"spark {version('pyspark')} release {_JAVA_RELEASE}\n"
    seen = hashlib.sha256(f"{spark}{against}".encode())
    for file in _java_files(sources):
        seen.update(f"{file.relative_to(sources).as_posix()}\n".encode())
        seen.update(file.read_bytes())
    return seen.hexdigest()


def module_needs(module: str) -> list[str]:
    """Return the dependencies of a module besides Spark: core, and its connector's jars."""
    core = find_sources()
    connectors = [f"{artifact.coordinates} {artifact.sha256}" for artifact in CONNECTORS[module]]
    return [*([] if core is None else [f"core {digest(core)}"]), *connectors]


def read_digest(jar: Path) -> str | None:
    """Return the digest in a jar, or None if there is no jar or it is not one of ours."""
    try:
        with zipfile.ZipFile(jar) as archive:
            return archive.read(_DIGEST).decode()
    except (FileNotFoundError, KeyError, zipfile.BadZipFile):
        return None


def get_jar() -> Path:
    """Return core's jar, rebuilt if its sources have changed."""
    sources = find_sources()
    if sources is None:
        return _get_packed(JAR)
    if read_digest(JAR) != digest(sources):
        build(sources, JAR)
    return JAR


def get_jars(modules: Sequence[str] = (), *, progress: Progress | None = None) -> tuple[Path, ...]:
    """Return the class path of these modules: core, each module's jar, its connector's jars.

    Args:
        modules: Connectors and stores.
        progress: Called with a line for each jar that is fetched first.

    Raises:
        HeadgateError: The errors of `resolve` for a fetched jar; KERNEL_MISSING if the package
            lacks a module.
    """
    jars = [get_jar()]
    for module in modules:
        if module in STORES:
            jars += resolve(STORES[module], progress=progress)
            continue
        connectors = resolve(CONNECTORS[module], progress=progress)
        jars += [_get_module(module, connectors), *connectors]
    return tuple(jars)


def build_jars(*, progress: Progress | None = None) -> tuple[Path, ...]:
    """Return core's jar and those of all modules, rebuilt if their sources have changed."""
    modules = [module for module in CONNECTORS if find_module_sources(module)]
    get_jars(modules, progress=progress)
    return (JAR, *(module_jar(module) for module in modules))


def _get_module(module: str, connectors: Sequence[Path]) -> Path:
    """Return a module's jar, rebuilt if its sources or core's have changed."""
    sources, jar = find_module_sources(module), module_jar(module)
    if sources is None:
        return _get_packed(jar)
    needs = module_needs(module)
    if read_digest(jar) != digest(sources, needs):
        build(sources, jar, needs=needs, against=[JAR, *connectors])
    return jar


def _get_packed(jar: Path) -> Path:
    if not jar.exists():
        raise HeadgateError(
            "KERNEL_MISSING",
            f"cannot start Spark: the package has no {jar.name}",
            hint="pip install --force-reinstall headgate",
            domain=Domain.INTERNAL,
        )
    return jar


def build(
    sources: Path, jar: Path, *, needs: Sequence[str] = (), against: Sequence[Path] = ()
) -> None:
    """Compile the sources into a jar; the old one stays until the new one is complete.

    Args:
        needs: Further content of the jar's digest.
        against: Jars on the class path besides Spark's.
    """
    javac = find_javac()
    if javac is None:
        raise HeadgateError(
            "JDK_MISSING",
            f"cannot build {jar.name}: javac is missing, and the jar does not match its sources",
            hint="install a JDK 17 or newer (or set JAVA_HOME to one), then run: make kernel",
            domain=Domain.EXTERNAL,
        )
    # Computed before the compiler runs: a change meanwhile makes the jar stale, not wrong.
    fits = digest(sources, needs)
    with tempfile.TemporaryDirectory(prefix="headgate-kernel-") as folder:
        classes = Path(folder)
        class_path = os.pathsep.join((*map(str, against), f"{spark_jars()}{os.sep}*"))
        command = [javac, "-nowarn", "-Xlint:none", "--release", _JAVA_RELEASE, "-g"]
        command += ["-encoding", "UTF-8", "-d", folder, "-cp", class_path]
        command += [str(file) for file in _java_files(sources)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise HeadgateError(
                "KERNEL_BUILD_FAILED",
                f"cannot build {jar.name}: javac reports\n{done.stderr.strip()}",
                hint="make kernel",
                domain=Domain.INTERNAL,
            )
        _write_jar(classes, jar, fits)


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
