"""Names in requests: what may name a job, a checkpoint or an operator.

A name that passes is not a path: it has no '/' and no '..', and does not begin with a dot.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headgate.errors import HeadgateError
from headgate.jobs.setting_table import SETTINGS as JOB_SETTINGS
from headgate.jobs.setting_table import Scope

JOB = r"^[a-z0-9][a-z0-9-]{0,127}$"
UID = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$"
TOPIC = r"^[A-Za-z0-9-][A-Za-z0-9._-]{0,248}$"
CHECKPOINT = r"^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$"
# Also of an earlier run: its lineage and the checkpoint's id.
PLACE = r"^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*(/chk-[0-9]{1,18})?$"
LETTER = r"^[A-Za-z0-9-][A-Za-z0-9._:@=-]{0,400}$"
OPERATION = r"^op-[0-9a-f]{16}$"
LONGEST = 256

SETTINGS = tuple(setting.name for setting in JOB_SETTINGS if setting.scope is Scope.REQUEST)


def check_job(name: str) -> str:
    """Return a job's name, or refuse the text."""
    return _checked(name, JOB, "a job")


def check_uid(name: str) -> str:
    """Return an operator's uid, or refuse the text."""
    return _checked(name, UID, "an operator")


def check_letter(name: str) -> str:
    """Return a dead letter's id, or refuse the text."""
    return _checked(name, LETTER, "a dead letter")


def check_place(name: str | None) -> str | None:
    """Return the name of a checkpoint, or refuse a folder of the caller's choice.

    A checkpoint's id, `latest`, a savepoint's name, or `LINEAGE/chk-17` of an earlier run.
    """
    if name is None:
        return None
    _checked(name, PLACE, "a checkpoint")
    if Path(name).is_dir():
        # It would be read as a savepoint in the folder where the server was started.
        raise _bad(name, "a checkpoint")
    return name


def check_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings that a request may set.

    Raises:
        HeadgateError: SETTING_NOT_ALLOWED.
    """
    for name in settings:
        if name not in SETTINGS:
            raise HeadgateError(
                "SETTING_NOT_ALLOWED",
                f"cannot set {name[:LONGEST]!r} in a request: it may set {', '.join(SETTINGS)}",
                hint="set it in the headgate.toml beside the flow",
            )
    return dict(settings)


def _checked(name: str, pattern: str, what: str) -> str:
    if len(name) > LONGEST * 2 or not re.fullmatch(pattern, name, re.ASCII):
        raise _bad(name, what)
    return name


def _bad(name: str, what: str) -> HeadgateError:
    return HeadgateError(
        "BAD_NAME",
        f"cannot use {name[:LONGEST]!r} as the name of {what}",
        hint="use a name from this server's lists",
    )
