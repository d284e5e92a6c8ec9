"""One locale for every JVM: names of files are UTF-8, and letters and numbers are American ones.

What a batch writes must not depend on where it is repeated. Java takes the encoding of file names
from the environment alone; language and country it takes from options, too.
"""

from __future__ import annotations

import locale
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from headgate.errors import Domain, HeadgateError

# Java 17 reads and writes text in the environment's encoding unless it is told otherwise.
JVM_OPTIONS = ("-Duser.language=en", "-Duser.country=US", "-Dfile.encoding=UTF-8")
UTF8_LOCALE = "C.UTF-8"

_VARIABLE = "LC_ALL"
# Not every system has the first; a JVM whose locale is not there takes file names for ASCII.
_CANDIDATES = (UTF8_LOCALE, "C.utf8", "en_US.UTF-8", "UTF-8")
_HINT = f"export LC_ALL={UTF8_LOCALE}"


def check_python() -> None:
    """Raise LOCALE_UNSUPPORTED unless this process takes file names for UTF-8, as its JVM will."""
    encoding = sys.getfilesystemencoding()
    if not _is_utf8(encoding):
        raise _unsupported(f"Python takes names of files for {encoding}")


def check_jvm(jvm: Any) -> None:
    """Raise LOCALE_UNSUPPORTED unless a JVM takes file names for UTF-8."""
    encoding = str(jvm.java.lang.System.getProperty("sun.jnu.encoding"))
    if not _is_utf8(encoding):
        raise _unsupported(f"Java takes names of files for {encoding}")


@contextmanager
def utf8_environment() -> Iterator[None]:
    """Have processes that are started meanwhile take file names for UTF-8."""
    name = _find_locale()
    if name is None:
        # What the JVM makes of that, it is asked.
        yield
        return
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = name
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before


def _find_locale() -> str | None:
    """Return a locale of this system whose encoding is UTF-8, or None if there is none."""
    current = locale.setlocale(locale.LC_CTYPE)
    try:
        for name in _CANDIDATES:
            with suppress(locale.Error):
                locale.setlocale(locale.LC_CTYPE, name)
                return name
    finally:
        locale.setlocale(locale.LC_CTYPE, current)
    return None


def _is_utf8(encoding: str) -> bool:
    return encoding.lower().replace("-", "") == "utf8"


def _unsupported(found: str) -> HeadgateError:
    return HeadgateError(
        "LOCALE_UNSUPPORTED",
        f"cannot start Spark: {found}, and must take them for UTF-8",
        hint=_HINT,
        domain=Domain.EXTERNAL,
    )
