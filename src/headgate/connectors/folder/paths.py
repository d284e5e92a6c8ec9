"""Where folders of data files are: on this machine, or on an object store."""

from __future__ import annotations

import re

from headgate.errors import HeadgateError
from headgate.flow.names import check_path, is_topic_name

# Two characters at least, unlike a drive of Windows.
_ADDRESS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?P<rest>//.*)", re.DOTALL)
_S3 = ("s3", "s3n", "s3a")
_SCHEMES = ("s3a", "hdfs", "gs")


def check_folder(text: str) -> str:
    """Return a folder, or an address, in its usual form.

    Raises:
        HeadgateError: BAD_TOPIC, PATH_NOT_UTF8.
    """
    address = _ADDRESS.fullmatch(text)
    if address is None:
        if not text:
            raise _bad("''", "the path is empty", "Folder('data/orders')")
        return check_path(text)
    scheme, rest = address["scheme"].lower(), address["rest"].rstrip("/")
    if scheme == "file":
        path = rest.removeprefix("//")
        if not path.startswith("/"):
            raise _bad(repr(text), "it names no folder", "Folder('/data/orders')")
        return check_path(path)
    scheme = "s3a" if scheme in _S3 else scheme
    if scheme not in _SCHEMES:
        problem = f"its scheme must be one of {', '.join(_SCHEMES)}, got {scheme!r}"
        raise _bad(f"{scheme}://…", problem, "Folder('s3a://bucket/orders')")
    host, _, folder = rest.removeprefix("//").partition("/")
    if "@" in host:
        # Not shown: it would be in logs.
        raise _bad(
            f"{scheme}://…",
            "it contains credentials",
            "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )
    parts = folder.split("/") if folder else []
    if not host and scheme != "hdfs":
        raise _bad(repr(text), "it names no bucket", "Folder('s3a://bucket/orders')")
    # Hadoop resolves these, and object stores take them for names.
    if not {"", ".", ".."}.isdisjoint(parts):
        raise _bad(repr(text), "a part is empty, '.' or '..'", "Folder('s3a://bucket/orders')")
    return check_path(f"{scheme}:{rest}")


def is_address(path: str) -> bool:
    """Return True for a checked path that is not on this machine."""
    return _ADDRESS.fullmatch(path) is not None


def name_of(path: str) -> str:
    """Return the name of a topic by the last part of its path.

    Raises:
        HeadgateError: BAD_NAME.
    """
    last = path.rstrip("/").rpartition("/")[2]
    if not is_topic_name(last):
        raise HeadgateError(
            "BAD_NAME",
            f"cannot name a topic by the last part of {path!r}: a name must have letters, digits, "
            "'.', '_' and '-', no '.' or '_' first",
            hint=f"name it: Folder({path!r}, name='orders')",
        )
    return last


def _bad(path: str, problem: str, hint: str) -> HeadgateError:
    return HeadgateError("BAD_TOPIC", f"cannot use folder {path}: {problem}", hint=hint)
