"""Jars that are not in the package: fetched once into a cache, and checked before use.

Ivy's command line, which is among PySpark's jars, fetches them. A fetched jar gets its name in the
cache only if its SHA-256 is right. A jar that was put there by hand counts as fetched, and is
checked in the same way. An archive, such as a broker's, is fetched like a jar.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from headgate._disk import replace_file
from headgate._units import format_size
from headgate.errors import Domain, HeadgateError

FORMAT = 1
# From this number on it is faster to let Ivy resolve the dependencies of an artifact.
_MANY = 8
_FETCHED = re.compile(r"\[SUCCESSFUL \] (?P<group>[^#\s]+)#(?P<name>[^;\s]+);(?P<version>[^!\s]+)!")
_TROUBLE = re.compile(r"\S*Exception|unresolved|not found|Server access error", re.IGNORECASE)
# The pause between two lines about a download that goes on.
_LINE_EVERY_S = 5.0
# The Ivy settings file of a user with a mirror.
_SETTINGS = "HEADGATE_IVY_SETTINGS"
_IVY_FILE = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="headgate" module="fetched"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}  </dependencies>
</ivy-module>
"""
_IVY_DEPENDENCY = """\
    <dependency org="{group}" name="{name}" rev="{version}" transitive="false"
        conf="default->master">
      <artifact name="{name}" type="{extension}" ext="{extension}"{classifier}/>
    </dependency>
"""

# Called with a line and its size before a download, and with lines while it goes on, by any thread.
Progress: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Artifact:
    """A jar in the registry, and the checksum of its bytes.

    Attributes:
        classifier: Distinguishes files of the same name; empty for the plain jar.
        extension: The file's extension, which is also its type.
    """

    group: str
    name: str
    version: str
    sha256: str
    size: int
    classifier: str = ""
    extension: str = "jar"

    @property
    def file(self) -> str:
        """The file's name in the cache."""
        classifier = self.classifier and f"-{self.classifier}"
        return f"{self.name}-{self.version}{classifier}.{self.extension}"

    @property
    def coordinates(self) -> str:
        """The coordinates that other tools use."""
        if not self.classifier:
            return f"{self.group}:{self.name}:{self.version}"
        return f"{self.group}:{self.name}:{self.extension}:{self.classifier}:{self.version}"


def cache_folder() -> Path:
    """Return the cache folder: HEADGATE_CACHE, or headgate in the user's cache."""
    own = os.environ.get("HEADGATE_CACHE")
    if own:
        return Path(own).absolute()
    users = os.environ.get("XDG_CACHE_HOME")
    return (Path(users) if users else Path.home() / ".cache") / "headgate"


def jars_folder() -> Path:
    """Return the cache folder of the jars."""
    return cache_folder() / "jars"


def read_artifacts(file: Path) -> tuple[Artifact, ...]:
    """Return the artifacts listed in a file of the package."""
    content = json.loads(file.read_text(encoding="utf-8"))
    if content["format"] != FORMAT:
        raise HeadgateError(
            "ARTIFACTS_UNREADABLE",
            f"cannot read {file}: its format is {content['format']!r}, and this release reads"
            f" {FORMAT}",
            hint="pip install --force-reinstall headgate",
            domain=Domain.INTERNAL,
        )
    return tuple(Artifact(**artifact) for artifact in content["artifacts"])


def find_missing(artifacts: Iterable[Artifact]) -> list[Artifact]:
    """Return the artifacts that are missing from the cache; content is not checked."""
    folder = jars_folder()
    return [artifact for artifact in artifacts if not (folder / artifact.file).is_file()]


def resolve(
    artifacts: Sequence[Artifact],
    *,
    progress: Progress | None = None,
    root: Artifact | None = None,
) -> tuple[Path, ...]:
    """Return the files of the artifacts, in order, with checked content.

    Cached files need neither Java nor the network. Several processes may resolve the same artifacts
    at once: one fetches, and the others wait.

    Args:
        progress: Called with a line before anything is fetched, then with further ones.
        root: The artifact that needs the others: fetching it with its dependencies is faster than
            one by one if they are many.

    Raises:
        HeadgateError: ARTIFACT_CORRUPT if the content is wrong, ARTIFACT_UNAVAILABLE if a file
            cannot be fetched, JAVA_MISSING, SPARK_MISSING.
    """
    folder = jars_folder()
    if find_missing(artifacts):
        report = progress or _nobody
        with _alone(folder, report):
            # Another process may have fetched them meanwhile.
            _fetch_missing(artifacts, root, report)
    for artifact in artifacts:
        _check_published(folder / artifact.file, artifact)
    return tuple(folder / artifact.file for artifact in artifacts)


def find_java() -> str | None:
    """Return the Java that Spark would start: from JAVA_HOME, else from the path."""
    home = os.environ.get("JAVA_HOME") or None
    return shutil.which("java") if home is None else shutil.which("java", path=f"{home}/bin")


def get_java(purpose: str) -> str:
    """Return the Java to start, or raise JAVA_MISSING.

    Args:
        purpose: What it is needed for, as in "cannot PURPOSE".
    """
    java = find_java()
    if java is None:
        home = os.environ.get("JAVA_HOME")
        problem = f"JAVA_HOME is {home}, which has no bin/java" if home else "it is not on the PATH"
        raise HeadgateError(
            "JAVA_MISSING",
            f"cannot {purpose}: Java was not found ({problem})",
            hint="install a JDK 17 or newer (apt install openjdk-17-jdk), or set JAVA_HOME to one",
            domain=Domain.EXTERNAL,
        )
    return java


def spark_jars() -> Path:
    """Return the folder of PySpark's own jars."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise HeadgateError(
            "SPARK_MISSING",
            "cannot find Spark: the package pyspark is not installed",
            hint="pip install pyspark==4.3.0",
            domain=Domain.EXTERNAL,
        )
    return Path(spec.origin).parent / "jars"


def _fetch_missing(
    artifacts: Sequence[Artifact], root: Artifact | None, progress: Progress
) -> None:
    folder = jars_folder()
    missing = find_missing(artifacts)
    if not missing:
        return
    what = missing[0].file if len(missing) == 1 else f"{len(missing)} files"
    size = format_size(sum(artifact.size for artifact in missing))
    progress(f"downloading {what}, {size}, once, into {folder}")
    with (
        tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder) as trial,
        _reporting(missing, Path(trial), progress),
    ):
        fetched = _Fetched(Path(trial), progress, len(missing))
        if len(missing) >= _MANY:
            if root is not None:
                fetched.run(root, missing, with_needed=True)
            else:
                fetched.run_list(missing)
            _publish(missing, Path(trial), folder)
        for artifact in find_missing(missing):
            fetched.run(artifact, [artifact], with_needed=False)
            _publish([artifact], Path(trial), folder)
            if find_missing([artifact]):
                # Without network none of the others would arrive either.
                raise _unavailable(find_missing(artifacts), folder, fetched.trouble)


@contextlib.contextmanager
def _reporting(artifacts: Sequence[Artifact], trial: Path, progress: Progress) -> Iterator[None]:
    """Report now and then how much has arrived: a large file takes minutes."""
    ended = threading.Event()
    total = format_size(sum(artifact.size for artifact in artifacts))

    def report() -> None:
        while not ended.wait(_LINE_EVERY_S):
            size = sum(_size_so_far(artifact, trial) for artifact in artifacts)
            progress(f"downloading, {format_size(size)} of {total}")

    thread = threading.Thread(target=report, name="headgate-download", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _size_so_far(artifact: Artifact, trial: Path) -> int:
    """Return how many bytes of a file have arrived, wherever Ivy keeps them."""
    # Ivy writes into a file that ends in .part, and copies it to the folder at its end.
    of_ivy = (cache_folder() / "ivy" / artifact.group / artifact.name).glob(
        f"*/*{artifact.version}*.{artifact.extension}*"
    )
    sizes = [0]
    for file in (jars_folder() / artifact.file, trial / artifact.file, *of_ivy):
        with contextlib.suppress(FileNotFoundError):
            sizes.append(file.stat().st_size)
    return min(artifact.size, max(sizes))


class _Fetched:
    """Runs Ivy into a folder, and reports each file."""

    def __init__(self, folder: Path, progress: Progress, total: int) -> None:
        self.trouble = ""
        self._folder = folder
        self._progress = progress
        self._total = total
        self._reported: set[str] = set()

    def run(self, root: Artifact, wanted: Sequence[Artifact], *, with_needed: bool) -> None:
        """Fetch an artifact; missing files are skipped, and `trouble` holds the reason."""
        if not with_needed:
            self._report(root)
        self._run(ivy_command(root, self._folder, with_needed=with_needed), wanted)

    def run_list(self, wanted: Sequence[Artifact]) -> None:
        """Fetch several artifacts without their dependencies; missing files are skipped."""
        self._run([*_ivy(wanted[0].file), *_ivy_file(wanted, self._folder)], wanted)

    def _run(self, command: Sequence[str], wanted: Sequence[Artifact]) -> None:
        files = {artifact.file: artifact for artifact in wanted}
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                match = _FETCHED.search(line)
                if match:
                    came = files.get(f"{match['name']}-{match['version']}.jar")
                    if came is not None:
                        self._report(came)
                elif not self.trouble and _TROUBLE.search(line):
                    self.trouble = line.strip()

    def _report(self, artifact: Artifact) -> None:
        # A single file was named before.
        if artifact.file not in self._reported and self._total > 1:
            self._reported.add(artifact.file)
            number = f"{len(self._reported)} of {self._total}"
            self._progress(f"{artifact.file}, {format_size(artifact.size)} ({number})")


def ivy_command(root: Artifact, folder: Path, *, with_needed: bool) -> list[str]:
    """Return the command that fetches an artifact, or an artifact with its dependencies."""
    command = _ivy(root.file)
    if root.classifier:
        return [*command, *_ivy_file([root], folder)]
    command += ["-confs", "default"] if with_needed else ["-notransitive"]
    command += ["-dependency", root.group, root.name, root.version]
    command += ["-retrieve", f"{folder}/[artifact]-[revision].[ext]"]
    # Some jars are packaged as bundles, such as snappy-java.
    return [*command, "-types", "jar", "bundle"]


def _ivy(file: str) -> list[str]:
    """Return the beginning of Ivy's command line; `file` is what it fetches."""
    jars = spark_jars()
    ivy = next(iter(sorted(jars.glob("ivy-*.jar"))), jars / "ivy.jar")
    settings = os.environ.get(_SETTINGS)
    command = [get_java(f"fetch {file}"), "-cp", str(ivy), "org.apache.ivy.Main"]
    command += ["-settings", settings] if settings else []
    return [*command, "-cache", str(cache_folder() / "ivy")]


def _ivy_file(artifacts: Sequence[Artifact], folder: Path) -> list[str]:
    """Return the arguments that fetch several files, or one with a classifier.

    Ivy needs a file for that.
    """
    asks = folder / f"{artifacts[0].name}.xml"
    dependencies = (
        _IVY_DEPENDENCY.format(
            group=artifact.group,
            name=artifact.name,
            version=artifact.version,
            classifier=artifact.classifier and f' m:classifier="{artifact.classifier}"',
            extension=artifact.extension,
        )
        for artifact in artifacts
    )
    asks.write_text(_IVY_FILE.format(dependencies="".join(dependencies)))
    types = sorted({artifact.extension for artifact in artifacts})
    words = ["-ivy", str(asks), "-types", *types]
    return [*words, "-retrieve", f"{folder}/[artifact]-[revision](-[classifier]).[ext]"]


def _publish(artifacts: Iterable[Artifact], trial: Path, folder: Path) -> None:
    for artifact in artifacts:
        file = trial / artifact.file
        if not file.is_file():
            continue
        actual = _sha256(file)
        # Delete Ivy's copy: a right one takes space, a wrong one would be reused.
        shutil.rmtree(cache_folder() / "ivy" / artifact.group / artifact.name, ignore_errors=True)
        if actual != artifact.sha256:
            raise _corrupt(
                artifact, actual, "fetch", f"the registry's copy of {artifact.coordinates}"
            )
        _write_stamp(file, folder / artifact.file, artifact)
        file.replace(folder / artifact.file)


def _check_published(file: Path, artifact: Artifact) -> None:
    """Refuse a file with wrong content; it is read again only if the file changed."""
    if _has_stamp(file, artifact):
        return
    actual = _sha256(file)
    if actual != artifact.sha256:
        raise _corrupt(artifact, actual, "use", str(file), hint=f"rm {file}")
    with contextlib.suppress(OSError):
        # A read-only cache, as in an image, is checked at every start.
        _write_stamp(file, file, artifact)


def _stamp_file(published: Path) -> Path:
    return published.with_name(f".{published.name}.checked")


def _stamp(file: Path, artifact: Artifact) -> str:
    facts = file.stat()
    return f"{FORMAT} {artifact.sha256} {facts.st_size} {facts.st_mtime_ns}\n"


def _has_stamp(file: Path, artifact: Artifact) -> bool:
    try:
        return _stamp_file(file).read_text() == _stamp(file, artifact)
    except FileNotFoundError:
        return False


def _write_stamp(file: Path, published: Path, artifact: Artifact) -> None:
    replace_file(_stamp_file(published), _stamp(file, artifact))


def _sha256(file: Path) -> str:
    with file.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


@contextlib.contextmanager
def _alone(folder: Path, progress: Progress) -> Iterator[None]:
    """Lock the cache, so that processes never fetch at once; Ivy's own cache has no lock."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for another process that is downloading")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _nobody(line: str) -> None:
    pass


def _corrupt(
    artifact: Artifact, actual: str, verb: str, what: str, *, hint: str = ""
) -> HeadgateError:
    return HeadgateError(
        "ARTIFACT_CORRUPT",
        f"cannot {verb} {artifact.file}: {what} must have SHA-256 {artifact.sha256}, got {actual}",
        hint=hint or f"put the right file into {jars_folder()}, and run this again",
        domain=Domain.EXTERNAL,
    )


def _unavailable(missing: Sequence[Artifact], folder: Path, trouble: str) -> HeadgateError:
    count = "a file" if len(missing) == 1 else f"{len(missing)} files"
    lines = [f"  {artifact.file} ({artifact.coordinates})" for artifact in missing]
    return HeadgateError(
        "ARTIFACT_UNAVAILABLE",
        f"cannot fetch {count}: the registry cannot be reached, or does not have"
        f" {'it' if len(missing) == 1 else 'them'}{f' ({trouble})' if trouble else ''}\n"
        + "\n".join(lines),
        hint=f"run this again with network access, or put the files named above into {folder}",
        domain=Domain.EXTERNAL,
        root_cause=trouble,
    )
