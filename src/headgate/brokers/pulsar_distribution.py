"""Pulsar's own distribution: fetched once, and unpacked once into the cache.

CACHE/pulsar-VERSION/
  lib/          the jars of the broker, with all they need
  LICENSE, NOTICE
  made.json     the archive it came from: written last, so that without it nothing counts
"""

from __future__ import annotations

import json
import shutil
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

from headgate._artifacts import Artifact, Progress, cache_folder, find_missing, resolve
from headgate.brokers.process import alone_in

FORMAT = 1
VERSION = "4.0.8"
DISTRIBUTION = Artifact(
    group="org.apache.pulsar",
    name="pulsar-server-distribution",
    version=VERSION,
    sha256="35c7d064c9e0928edbf2e708989faba0379662f98aa84ce0d4190c59efb6765e",
    size=245_494_718,
    classifier="bin",
    extension="tar.gz",
)
_MADE = "made.json"
_TEXTS = frozenset({"LICENSE", "NOTICE"})


def distribution_folder() -> Path:
    """Return where the distribution is unpacked, or will be."""
    return cache_folder() / f"pulsar-{VERSION}"


def count_missing() -> int:
    """Return the bytes that have yet to be fetched; 0 where all is here."""
    if _is_made(distribution_folder()):
        return 0
    return sum(artifact.size for artifact in find_missing([DISTRIBUTION]))


def get_distribution(*, told: Progress) -> Path:
    """Return the folder of the unpacked distribution; the first call fetches and unpacks it.

    Several processes may ask at once: one makes it, and the others wait for it.
    """
    folder = distribution_folder()
    if _is_made(folder):
        return folder
    cache_folder().mkdir(parents=True, exist_ok=True)
    with alone_in(cache_folder() / ".unpacking"):
        # Another process may have made it while this one waited.
        if not _is_made(folder):
            (archive,) = resolve([DISTRIBUTION], progress=told)
            told("unpacking it")
            _make(archive, folder)
            # What it held is here now, and takes room enough.
            archive.unlink()
    return folder


def find_jars(folder: Path) -> list[Path]:
    """Return the jars of an unpacked distribution, always in the same order."""
    return sorted((folder / "lib").glob("*.jar"))


def unpack(archive: Path, folder: Path) -> None:
    """Write an archive's jars and licence texts into a folder; nothing else in it is looked at.

    Names are taken apart and put together anew, and only plain files are written: whatever an
    archive holds, it reaches nothing outside of the folder.
    """
    (folder / "lib").mkdir()
    with tarfile.open(archive) as packed:
        for member in packed:
            target = _target(PurePosixPath(member.name))
            content = packed.extractfile(member) if member.isreg() and target else None
            if content is not None and target is not None:
                with content, (folder / target).open("wb") as sink:
                    shutil.copyfileobj(content, sink, 1024 * 1024)


def _target(name: PurePosixPath) -> Path | None:
    """Return where a file of the archive goes; None for what a broker does not need."""
    match name.parts:
        # All of it lies in one folder of its own.
        case (_, "lib", jar) if jar.endswith(".jar"):
            return Path("lib") / jar
        case (_, text) if text in _TEXTS:
            return Path(text)
    return None


def _make(archive: Path, folder: Path) -> None:
    making = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=folder.parent))
    try:
        unpack(archive, making)
        content = {"format": FORMAT, "sha256": DISTRIBUTION.sha256}
        (making / _MADE).write_text(f"{json.dumps(content)}\n", encoding="utf-8")
        making.chmod(0o755)
        # One of another format, or one that was emptied by hand.
        shutil.rmtree(folder, ignore_errors=True)
        making.rename(folder)
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)
        raise


def _is_made(folder: Path) -> bool:
    try:
        content = json.loads((folder / _MADE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(content == {"format": FORMAT, "sha256": DISTRIBUTION.sha256})
