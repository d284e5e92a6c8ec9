"""An archive of Spark's classes that later JVMs map into memory, instead of reading jars.

A start loads some 17,000 classes: finding, reading and checking them is more than half of its
work. HotSpot can store them as they are in memory (class data sharing), for one class path and one
Java. HotSpot ignores an archive that does not fit, and the start takes as long as without.

Archives are in the cache under a name that covers the Java, Spark and our jars, so a stale archive
is never found. A JVM that runs a flow records the classes to store.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from headgate._artifacts import cache_folder, find_java, get_java, spark_jars
from headgate.errors import Domain, HeadgateError

# Names a folder in which a new JVM records the classes that it loads.
RECORD = "HEADGATE_RECORD_CLASSES"

# Part of the archives' names; change it with the content of archives.
_FORMAT = 3
# Each has some 200 MB; the least recently used ones are deleted.
_KEPT = 4
_TIMEOUT_S = 600
# Java maps an archive to a random address, and rewrites all 200 MB of it: private memory of each
# JVM, and a tenth of a second. At the address that it was made for, JVMs share one copy.
_IN_PLACE = ("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0")
# Packages of which the recorded flow loads few or no classes, and jobs load many.
_WHOLE = ("io/headgate/", "org/apache/kafka/clients/", "org/apache/kafka/common/")
_LEFT_OUT = ("module-info", "META-INF/")
# HotSpot generates these for the archive alone, without class files for an agent: Java 17 crashes
# if a recording (JFR) or a Java agent inspects them.
_MADE = ("java/lang/invoke/BoundMethodHandle$Species_", "@lambda-form-invoker [SPECIES_RESOLVE]")


@dataclass(frozen=True, slots=True)
class Recording:
    """The classes that a JVM loaded while it ran a flow."""

    folder: Path

    @property
    def classes(self) -> Path:
        """The list of classes, in HotSpot's format."""
        return self.folder / "classes"

    @property
    def class_path(self) -> Path:
        """The file with the JVM's class path."""
        return self.folder / "class-path"

    def is_complete(self) -> bool:
        """Return True if a JVM has recorded."""
        return self.classes.exists() and self.class_path.exists()


def find_recording() -> Recording | None:
    """Return the folder in which this process's JVM records, or None."""
    folder = os.environ.get(RECORD)
    return Recording(Path(folder)) if folder else None


def archive_file(jars: Sequence[Path]) -> Path:
    """Return the path of the archive for our jars and the current Java and Spark."""
    seen = hashlib.sha256(f"{_FORMAT}\n{_java()}\n{version('pyspark')}\n".encode())
    seen.update(f"{spark_jars()}\n".encode())
    for jar in jars:
        there = jar.stat()
        seen.update(f"{jar.absolute()} {there.st_size} {there.st_mtime_ns}\n".encode())
    return cache_folder() / "classes" / f"{seen.hexdigest()[:32]}.jsa"


def find_archive(jars: Sequence[Path]) -> Path | None:
    """Return the archive for our jars and the current Java and Spark, or None."""
    try:
        file = archive_file(jars)
        return file if file.exists() else None
    except (OSError, RuntimeError):
        # A user without a readable home has no archive.
        return None


def mark_used(archive: Path) -> None:
    """Mark an archive as recently used."""
    with suppress(OSError):
        os.utime(archive)


def jvm_options(jars: Sequence[Path]) -> list[str]:
    """Return the JVM options for an archive, or for recording; empty for neither."""
    recording = find_recording()
    if recording is not None:
        return [f'"-XX:DumpLoadedClassList={recording.classes.absolute()}"']
    file = find_archive(jars)
    if file is None:
        return []
    mark_used(file)
    return [f'"-XX:SharedArchiveFile={file}"', "-Xshare:auto", *_IN_PLACE]


def make_archive(jars: Sequence[Path], recording: Recording, *, recorded_with: int) -> Path:
    """Create the archive for a class path and return it; the old one stays until it is complete.

    Args:
        jars: Our jars, as returned by `get_jars`.
        recorded_with: The number of our jars at the start of the recorded class path.

    Raises:
        HeadgateError: CLASS_ARCHIVE_FAILED with HotSpot's message.
    """
    file = archive_file(jars)
    file.parent.mkdir(parents=True, exist_ok=True)
    making = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    listed = file.with_name(f"{file.stem}.{os.getpid()}.classes")
    spark = recording.class_path.read_text(encoding="utf-8").split(os.pathsep)[recorded_with:]
    try:
        listed.write_text("".join(_with_whole(jars, recording)), encoding="utf-8")
        command = [get_java("store Spark's classes"), "-Xshare:dump", "-XX:+UseParallelGC"]
        command += ["-Xmx1g", "-Xlog:cds=error", "-Xlog:class+load=off"]
        command += ["-XX:+IgnoreUnrecognizedVMOptions", "--add-modules=jdk.incubator.vector"]
        command += _IN_PLACE
        command += [f"-XX:SharedClassListFile={listed}", f"-XX:SharedArchiveFile={making}"]
        command += ["-cp", os.pathsep.join([*map(str, jars), *spark])]
        try:
            done = subprocess.run(
                command,
                # The name by which a process of a killed recording is found.
                env={**os.environ, RECORD: str(recording.folder)},
                capture_output=True,
                text=True,
                check=False,
                timeout=_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired as error:
            raise _failed(f"it took more than {_TIMEOUT_S} s") from error
        if done.returncode != 0 or not making.exists():
            lines = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
            raise _failed(f"java ended with {done.returncode}: {' | '.join(lines)}")
        making.replace(file)
    finally:
        making.unlink(missing_ok=True)
        listed.unlink(missing_ok=True)
    _prune(file.parent)
    return file


def clear_unfinished() -> None:
    """Remove the parts of archives whose process is gone."""
    for pattern in ("*.tmp", "*.classes"):
        for file in (cache_folder() / "classes").glob(pattern):
            process = file.name.split(".")[-2]
            if process.isdigit() and not _is_alive(int(process)):
                file.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # Of another user.
        return True
    return True


def _java() -> str:
    """Return a text that identifies the Java that would be started."""
    java = find_java()
    if java is None:
        return ""
    path = Path(java).resolve()
    release = path.parents[1] / "release"
    return f"{path}\n{release.read_text(encoding='utf-8') if release.exists() else ''}"


def _with_whole(jars: Sequence[Path], recording: Recording) -> Iterator[str]:
    """Yield the recorded list without generated classes, and our own classes that it lacks."""
    there = set()
    with recording.classes.open(encoding="utf-8") as lines:
        for line in lines:
            if line.startswith(_MADE):
                continue
            there.add(line.split(None, 1)[0])
            yield line
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if not name.endswith(".class") or name.startswith(_LEFT_OUT):
                    continue
                if (
                    name.startswith(_WHOLE)
                    and (class_name := name.removesuffix(".class")) not in there
                ):
                    yield f"{class_name}\n"


def _prune(folder: Path) -> None:
    for file in sorted(folder.glob("*.jsa"), key=_used_at, reverse=True)[_KEPT:]:
        # A JVM that has mapped an archive can still read it.
        file.unlink(missing_ok=True)


def _used_at(archive: Path) -> float:
    try:
        return archive.stat().st_mtime
    except FileNotFoundError:
        # Another process was faster.
        return 0.0


def _failed(why: str) -> HeadgateError:
    return HeadgateError(
        "CLASS_ARCHIVE_FAILED",
        f"cannot store Spark's classes: {why}",
        hint="continue without it: jobs start, only slower. headgate doctor checks Java",
        domain=Domain.EXTERNAL,
    )
