"""Names in requests: what may stand where a job, a checkpoint or an operator is named.

What is let through here is no path: no '/', no '..', nothing that begins with a dot.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from headgate.errors import HeadgateError
from headgate.jobs.setting_table import SETTINGS as JOB_SETTINGS
from headgate.jobs.setting_table import Scope

JOB = r"^[a-z0-9][a-z0-9-]{0,127}$"
UID = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$"
TOPIC = r"^[A-Za-z0-9-][A-Za-z0-9._-]{0,248}$"
CHECKPOINT = r"^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$"
# Of an earlier run: its lineage and the checkpoint's id.
PLACE = r"^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*(/chk-[0-9]{1,18})?$"
LETTER = r"^[A-Za-z0-9-][A-Za-z0-9._:@=-]{0,400}$"
OPERATION = r"^op-[0-9a-f]{16}$"
LONGEST = 256

SETTINGS = tuple(each.name for each in JOB_SETTINGS if each.scope is Scope.REQUEST)


def check_job(name: str) -> str:
    """Return a job's name, or refuse what cannot be one."""
    return _checked(name, JOB, "a job")


def check_uid(name: str) -> str:
    """Return an operator's uid, or refuse what cannot be one."""
    return _checked(name, UID, "an operator")


def check_topic(name: str) -> str:
    """Return a topic's name, or refuse what cannot be one."""
    return _checked(name, TOPIC, "a topic")


def check_letter(name: str) -> str:
    """Return a dead letter's id, or refuse what cannot be one."""
    return _checked(name, LETTER, "a dead letter")


def check_checkpoint(name: str) -> str:
    """Return the id of a checkpoint or savepoint, or refuse what cannot be one."""
    return _checked(name, CHECKPOINT, "a checkpoint")


def check_place(name: str | None) -> str | None:
    """Return where a restore may go back to, or refuse a folder of the caller's choice.

    A checkpoint's id, `latest`, a savepoint's name, or `LINEAGE/chk-17` of an earlier run.
    """
    if name is None:
        return None
    _checked(name, PLACE, "a checkpoint")
    if Path(name).is_dir():
        # It would be taken for a savepoint that lies where the server was started.
        raise _bad(name, "a checkpoint")
    return name


def check_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings that a request may make.

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


def without_none(values: Mapping[str, Any], *, names: Collection[str] = ()) -> dict[str, Any]:
    """Return what was given of some values."""
    return {
        key: value
        for key, value in values.items()
        if value is not None and (not names or key in names)
    }
