"""One locale for every JVM: file names in UTF-8, and American letters and numbers.

The output of a batch must not depend on the machine that repeats it. Java takes the encoding of
file names from the environment only; language and country also come from options.
"""

from __future__ import annotations

import locale
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from headgate.errors import Domain, HeadgateError

# Java 17 uses the environment's encoding for text by default.
JVM_OPTIONS = ("-Duser.language=en", "-Duser.country=US", "-Dfile.encoding=UTF-8")
UTF8_LOCALE = "C.UTF-8"

_VARIABLE = "LC_ALL"
# Not every system has the first; with a missing locale, a JVM reads file names as ASCII.
_CANDIDATES = (UTF8_LOCALE, "C.utf8", "en_US.UTF-8", "UTF-8")
_HINT = f"export LC_ALL={UTF8_LOCALE}"


def check_python() -> None:
    """Raise LOCALE_UNSUPPORTED unless this process, and so its JVM, reads file names as UTF-8."""
    encoding = sys.getfilesystemencoding()
    if not _is_utf8(encoding):
        raise _unsupported(f"Python reads file names as {encoding}")


def check_jvm(jvm: Any) -> None:
    """Raise LOCALE_UNSUPPORTED unless a JVM reads file names as UTF-8."""
    encoding = str(jvm.java.lang.System.getProperty("sun.jnu.encoding"))
    if not _is_utf8(encoding):
        raise _unsupported(f"Java reads file names as {encoding}")


@contextmanager
def utf8_environment() -> Iterator[None]:
    """Make processes started meanwhile read file names as UTF-8."""
    name = _find_locale()
    if name is None:
        # The JVM reports the encoding that it derives from this.
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
    """Return a locale of this system with the encoding UTF-8, or None."""
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


def _unsupported(problem: str) -> HeadgateError:
    return HeadgateError(
        "LOCALE_UNSUPPORTED",
        f"cannot start Spark: {problem}, and must use UTF-8",
        hint=_HINT,
        domain=Domain.EXTERNAL,
    )
