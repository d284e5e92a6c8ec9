"""PostgreSQL's programs: fetched once, and unpacked once.

CACHE/postgres-VERSION/
  bin/ lib/ share/   as PostgreSQL installs them
  made.json          the archive they came from: written last, so that without it nothing counts

Root's server runs as another user, who must be able to reach the programs: if the cache is below a
folder that only root may enter, they are in /var/cache/headgate.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from headgate._artifacts import Artifact, Progress, cache_folder, find_missing, resolve
from headgate.brokers.process import alone_in
from headgate.errors import Domain, HeadgateError

FORMAT = 1
VERSION = "17.6"
_MADE = "made.json"
_OF_ROOT = Path("/var/cache/headgate")
_OTHERS_MAY_ENTER = 0o001


def _binaries(platform_: str, sha256: str, size: int) -> Artifact:
    name = f"embedded-postgres-binaries-{platform_}"
    return Artifact("io.zonky.test.postgres", name, f"{VERSION}.0", sha256, size)


# By the names that Python gives to systems and machines.
_PROGRAMS = {
    ("linux", "x86_64"): _binaries(
        "linux-amd64",
        "23da5a044b4fb7a5a081a45008c95749c873305328d73f86aefd56922ce1d29d",
        14_894_072,
    ),
    ("linux", "aarch64"): _binaries(
        "linux-arm64v8",
        "84427ea54a5238247924ef3b0f940e7d027e58760f19d7325242e50d22fa014a",
        13_894_039,
    ),
    ("darwin", "x86_64"): _binaries(
        "darwin-amd64",
        "f1d6d39896ca48e65d6dbcb492d809df0d4952c65299de8af6e08d2208eae3e0",
        30_388_627,
    ),
    ("darwin", "arm64"): _binaries(
        "darwin-arm64v8",
        "e87ee36767dee4f00f829d7a52e4a216e2fdebe5934c5683730940aabe570721",
        30_396_882,
    ),
}


def find_programs() -> Artifact | None:
    """Return the archive for this machine; None if there is none."""
    return _PROGRAMS.get((sys.platform, platform.machine()))


def distribution_folder() -> Path:
    """Return the folder of the programs, which may not exist yet."""
    cache = cache_folder()
    is_open = os.geteuid() != 0 or all(
        parent.stat().st_mode & _OTHERS_MAY_ENTER
        for parent in (cache, *cache.parents)
        if parent.exists()
    )
    return (cache if is_open else _OF_ROOT) / f"postgres-{VERSION}"


def count_missing() -> int:
    """Return the number of bytes to fetch; 0 if nothing is missing."""
    programs = find_programs()
    if programs is None or _is_made(distribution_folder(), programs):
        return 0
    return sum(artifact.size for artifact in find_missing([programs]))


def get_distribution(*, progress: Progress) -> Path:
    """Return the folder of the programs; the first call fetches and unpacks them.

    Several processes may call this at once: one does the work, and the others wait.

    Raises:
        HeadgateError: PLATFORM_UNSUPPORTED, and the errors of `resolve`.
    """
    programs = find_programs()
    if programs is None:
        raise HeadgateError(
            "PLATFORM_UNSUPPORTED",
            f"cannot start PostgreSQL: there is no archive for {sys.platform} on "
            f"{platform.machine()}",
            hint="install PostgreSQL with the system's own packages, and give its address: "
            "Postgres('orders', url='postgresql://HOST:5432/DATABASE')",
            domain=Domain.EXTERNAL,
        )
    folder = distribution_folder()
    if _is_made(folder, programs):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with alone_in(cache_folder() / ".unpacking"):
        # Another process may have unpacked them meanwhile.
        if not _is_made(folder, programs):
            (archive,) = resolve([programs], progress=progress)
            progress("unpacking the archive")
            _make(archive, folder, programs)
            # Its content is unpacked, and it takes space.
            archive.unlink()
    return folder


def _make(archive: Path, folder: Path, programs: Artifact) -> None:
    making = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=folder.parent))
    try:
        with zipfile.ZipFile(archive) as jar:
            (name,) = (name for name in jar.namelist() if name.endswith(".txz"))
            with jar.open(name) as packed, tarfile.open(fileobj=packed, mode="r|xz") as content:
                content.extractall(making, filter="data")
        text = json.dumps({"format": FORMAT, "sha256": programs.sha256})
        (making / _MADE).write_text(f"{text}\n", encoding="utf-8")
        making.chmod(0o755)
        # It has another format, or was emptied by hand.
        shutil.rmtree(folder, ignore_errors=True)
        making.rename(folder)
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)
        raise


def _is_made(folder: Path, programs: Artifact) -> bool:
    try:
        content = json.loads((folder / _MADE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(content == {"format": FORMAT, "sha256": programs.sha256})
