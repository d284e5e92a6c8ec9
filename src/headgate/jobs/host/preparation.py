"""Preparing a machine, or an image of one: what jobs need fetched, and Spark's classes archived."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from headgate._artifacts import Progress, find_missing, jars_folder
from headgate._codec import Form, alias
from headgate._kernel.archive import (
    RECORD,
    Recording,
    archive_file,
    find_archive,
    make_archive,
    mark_used,
)
from headgate._kernel.connector_jars import CONNECTORS, STORES
from headgate._kernel.jar import JAR, get_jars, module_jar
from headgate.errors import Domain, HeadgateError
from headgate.flow.names import did_you_mean
from headgate.jobs.host.recording_folder import open_recording_folder

# Enough for the flow's every step; more would only take longer.
_ORDERS = 2_000
_LONGEST = timedelta(minutes=5)
EMBEDDED = "embedded"


# A duration in seconds, to a tenth.
_Tenths = Annotated[
    timedelta,
    Form(lambda took: round(took.total_seconds(), 1), lambda seconds: timedelta(seconds=seconds)),
]


@dataclass(frozen=True, slots=True)
class Prepared:
    """What jobs on one kind of log have now.

    Attributes:
        log: `embedded`, a connector, or several joined by `+`.
        took: None where the archive was there.
    """

    log: str
    archive: Path
    size: int = field(metadata=alias("bytes"))
    took: _Tenths | None = field(metadata=alias("seconds"))


def prepare(
    logs: Sequence[str], *, again: bool = False, progress: Progress | None = None
) -> list[Prepared]:
    """Fetch the connectors' jars and make an archive of classes for jobs on each log.

    Args:
        logs: `embedded`, connectors (`kafka`), or several that one flow mixes (`kafka+pulsar`),
            with the store of its checkpoints (`kafka+s3a`).
        again: Whether to make archives that are there.

    Raises:
        HeadgateError: CONNECTOR_UNKNOWN; what fetching jars raises; CLASS_ARCHIVE_FAILED.
    """
    tell = progress or (lambda _: None)
    modules = {log: _modules(log) for log in logs}
    jars = {log: get_jars(needed, progress=tell) for log, needed in modules.items()}
    there = {log: find_archive(jars[log]) for log in jars}
    for archive in there.values():
        if archive is not None:
            # What is asked for stays, whatever goes to make room for the others.
            mark_used(archive)
    missing = [log for log, archive in there.items() if again or archive is None]
    made: dict[str, timedelta] = {}
    if missing:
        with open_recording_folder() as folder:
            tell("running a small flow to see which classes Spark loads, about a minute")
            recording = _record(folder)
            for log in missing:
                tell(f"storing Spark's classes for jobs on {_called(log)}")
                began = time.monotonic()
                make_archive(jars[log], recording, recorded_with=len(get_jars()))
                made[log] = timedelta(seconds=time.monotonic() - began)
    files = {log: archive_file(jars[log]) for log in logs}
    return [Prepared(log, files[log], files[log].stat().st_size, made.get(log)) for log in logs]


def list_fetched() -> list[str]:
    """Return `embedded` and the connectors whose jars are here."""
    return [EMBEDDED, *(module for module, jars in CONNECTORS.items() if not find_missing(jars))]


def find_prepared() -> list[str]:
    """Return the logs whose jobs find an archive; nothing is fetched or built."""
    return [log for log in list_fetched() if _is_prepared(_modules(log))]


def _is_prepared(modules: Sequence[str]) -> bool:
    jars = [JAR]
    for module in modules:
        jars += [module_jar(module), *(jars_folder() / jar.file for jar in CONNECTORS[module])]
    return all(jar.exists() for jar in jars) and find_archive(jars) is not None


def _modules(log: str) -> list[str]:
    if log == EMBEDDED:
        return []
    modules = sorted(set(log.split("+")))
    for module in modules:
        if module not in {*CONNECTORS, *STORES}:
            known = [EMBEDDED, *CONNECTORS, *STORES]
            raise HeadgateError(
                "CONNECTOR_UNKNOWN",
                f"cannot prepare for {log!r}: there is no connector {module!r}, only "
                f"{', '.join(known)}",
                hint=did_you_mean(module, known),
            )
    return modules


def _called(log: str) -> str:
    return "embedded topics" if log == EMBEDDED else log.replace("+", " and ")


def _record(folder: Path) -> Recording:
    """Run the store's flow on embedded topics, and return what its JVM loaded."""
    recording = Recording(folder)
    command = [sys.executable, "-m", "headgate", "demo", "--json", "--orders", str(_ORDERS)]
    command += ["--home", str(folder / "home")]
    # With core's jars alone: those of connectors are put in front afterwards.
    environment = {name: value for name, value in os.environ.items() if name != "HEADGATE_MODULES"}
    try:
        done = subprocess.run(
            command,
            env={**environment, RECORD: str(folder)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LONGEST.total_seconds(),
        )
    except subprocess.TimeoutExpired as error:
        raise _not_recorded(f"took more than {_LONGEST.total_seconds():.0f} s") from error
    if done.returncode != 0 or not recording.is_complete():
        said = done.stderr.strip().splitlines()[-3:]
        raise _not_recorded(f"ended with {done.returncode}: {' | '.join(said)}")
    return recording


def _not_recorded(why: str) -> HeadgateError:
    return HeadgateError(
        "CLASS_ARCHIVE_FAILED",
        f"cannot store Spark's classes: the flow that loads them {why}",
        hint="headgate demo",
        domain=Domain.EXTERNAL,
    )
