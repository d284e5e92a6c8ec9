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
    """Return the folder of the unpacked distribution, which may not exist yet."""
    return cache_folder() / f"pulsar-{VERSION}"


def count_missing() -> int:
    """Return the number of bytes to fetch; 0 if nothing is missing."""
    if _is_made(distribution_folder()):
        return 0
    return sum(artifact.size for artifact in find_missing([DISTRIBUTION]))


def get_distribution(*, progress: Progress) -> Path:
    """Return the folder of the unpacked distribution; the first call fetches and unpacks it.

    Several processes may call this at once: one does the work, and the others wait.
    """
    folder = distribution_folder()
    if _is_made(folder):
        return folder
    cache_folder().mkdir(parents=True, exist_ok=True)
    with alone_in(cache_folder() / ".unpacking"):
        # Another process may have unpacked it meanwhile.
        if not _is_made(folder):
            (archive,) = resolve([DISTRIBUTION], progress=progress)
            progress("unpacking the archive")
            _make(archive, folder)
            # Its content is unpacked, and it takes space.
            archive.unlink()
    return folder


def unpack(archive: Path, folder: Path) -> None:
    """Write an archive's jars and licence texts into a folder; everything else is ignored.

    Names are rebuilt from their parts, and only plain files are written, so an archive cannot write
    outside of the folder.
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
    """Return the path of a file of the archive; None if a broker does not need it."""
    match name.parts:
        # The archive contains a single folder.
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
        # It has another format, or was emptied by hand.
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
