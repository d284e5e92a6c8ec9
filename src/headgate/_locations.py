"""Where checkpoints lie: a folder of this machine, or a place on a store.

Both have the methods of `pathlib`. The packages of object stores are imported by the first address,
so that a command without one starts without them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeGuard, runtime_checkable

from headgate._codec import Form
from headgate.errors import Domain, HeadgateError

if TYPE_CHECKING:
    from typing import TypeAlias

    from upath import UPath

# As users write it: a scheme has at least two characters, unlike a drive of Windows.
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?P<rest>.*)", re.DOTALL)
_BUCKET = re.compile(r"//[A-Za-z0-9][A-Za-z0-9._-]*(/.*)?", re.DOTALL)
# How many requests are under way at a time.
_CONNECTIONS = 32
_S3 = ("s3a", "s3", "s3n")
# A folder of this machine that is a store, since other hosts have it, too.
_SHARED = "shared"


def parse_location(text: str) -> Location:
    """Return the place that a text names: an address such as `s3a://bucket/folder`, or a folder.

    Raises:
        HeadgateError: BAD_STORE for addresses that checkpoints cannot be at, PACKAGE_MISSING if the
            packages of the store are not installed.
    """
    url = _URL.fullmatch(text)
    if url is None:
        return Path(text)
    scheme, rest = url["scheme"].lower(), url["rest"]
    if scheme == "file":
        return Path(_local_path(text, rest))
    if scheme not in _S3 and not rest.startswith("/"):
        # A folder with a colon in its name.
        return Path(text)
    if scheme == _SHARED:
        return _open_shared(_local_path(text, rest))
    if scheme not in _S3:
        raise HeadgateError(
            "BAD_STORE",
            f"cannot use {text}: checkpoints must be in a folder, in a shared folder or on S3, got "
            f"{scheme}:",
            hint="use a folder; shared:///FOLDER, if all hosts have it under that path; or "
            "s3a://BUCKET/FOLDER",
        )
    if "@" in rest.removeprefix("//").partition("/")[0]:
        # Not shown: it would be in logs.
        raise HeadgateError(
            "BAD_STORE",
            f"cannot use an address of {scheme}: that contains credentials",
            hint="set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and use "
            "s3a://BUCKET/FOLDER",
        )
    if not _BUCKET.fullmatch(rest):
        raise HeadgateError(
            "BAD_STORE", f"cannot use {text}: it names no bucket", hint="use s3a://BUCKET/FOLDER"
        )
    rest = rest.rstrip("/")
    # Hadoop resolves these, and S3 takes them for names: Spark's files would be elsewhere.
    if not {"", ".", ".."}.isdisjoint(rest.removeprefix("//").split("/")):
        raise HeadgateError(
            "BAD_STORE",
            f"cannot use {text}: a part of the folder is empty, '.' or '..'",
            hint="use s3a://BUCKET/FOLDER",
        )
    return _open_s3(f"s3a:{rest}")


def url_of(location: Location) -> str:
    """Return a place for Hadoop: `s3a://bucket/folder`, `shared:/folder` or `file:/folder`."""
    if isinstance(location, Path):
        return f"file:{location.absolute()}"
    return f"{_SHARED}:{location.path}" if location.protocol == _SHARED else str(location)


def find_folder(location: Location) -> Path | None:
    """Return the folder of this machine that a place is, shared or not; None on an object store."""
    if isinstance(location, Path):
        return location.absolute()
    return Path(location.path) if location.protocol == _SHARED else None


def shell_command(location: Location | str, s3: str, disk: str) -> str:
    """Return the command of a shell for a place, as hints have it.

    Args:
        s3: The verb of AWS's command line for S3, such as `ls`.
        disk: The command for a folder.
    """
    scheme, _, path = str(location).partition("://")
    return f"{disk} {path}" if scheme == _SHARED else f"aws s3 {s3} s3://{path}"


def check_mounted(location: Location) -> None:
    """Refuse a shared folder that does not exist on this host.

    Raises:
        StoreError: STORE_UNAVAILABLE.
    """
    if not isinstance(location, Path) and location.protocol == _SHARED:
        from headgate import _shared

        _shared.check_mounted(location.path)


def is_local(location: Location) -> TypeGuard[Path]:
    """Return True for a folder or file of this machine."""
    return isinstance(location, Path)


def seen_from(folder: Path, location: Location) -> Location:
    """Return a location as seen from a folder, in which it lies if it is relative."""
    return folder / location if isinstance(location, Path) else location


def _local_path(text: str, rest: str) -> str:
    path = rest.removeprefix("//") if rest.startswith("///") else rest
    if not path.startswith("/") or path.startswith("//"):
        raise HeadgateError(
            "BAD_STORE",
            f"cannot use {text}: it names no folder",
            hint=f"use {text.partition(':')[0]}:///FOLDER",
        )
    return path


def _open_shared(folder: str) -> UPath:
    url = f"{_SHARED}://{os.path.normpath(folder)}"
    try:
        from upath import UPath

        from headgate import _shared
    except ModuleNotFoundError as error:
        raise _not_installed(url, error) from error
    _shared.register()
    return UPath(url, protocol=_SHARED)


def _open_s3(url: str) -> UPath:
    try:
        from upath import UPath

        from headgate import _s3
    except ModuleNotFoundError as error:
        raise _not_installed(url, error) from error
    _s3.register()
    return UPath(
        url,
        protocol="s3a",
        # Other processes write there, too: a listing that was read before says nothing.
        use_listings_cache=False,
        config_kwargs={
            "max_pool_connections": _CONNECTIONS,
            # s3fs repeats what fails to connect, and these what the store failed to do.
            "retries": {"total_max_attempts": 2, "mode": "standard"},
        },
    )


def _not_installed(url: str, error: ModuleNotFoundError) -> HeadgateError:
    return HeadgateError(
        "PACKAGE_MISSING",
        f"cannot use {url}: the Python package {error.name} is not installed",
        hint="pip install 'headgate[s3]'",
        domain=Domain.EXTERNAL,
    )


@runtime_checkable
class _Place(Protocol):
    """What both kinds of places have, and texts do not."""

    def iterdir(self) -> Any: ...

    def with_name(self, name: str) -> Any: ...


if TYPE_CHECKING:
    Location: TypeAlias = Path | UPath
else:
    # In JSON a place is text, as users write it.
    Location = Annotated[_Place, Form(str, parse_location, {"type": "string", "format": "path"})]
