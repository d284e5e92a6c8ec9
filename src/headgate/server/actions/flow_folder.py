"""The flows folder: the flows that can be submitted, and nothing outside of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from headgate.errors import HeadgateError

_FLOW = re.compile(
    r"^(?P<variable>\w+)\s*(?::[^=\n]+)?=\s*Flow\(\s*(['\"])(?P<job>[^'\"]+)\2", re.M
)
_REFERENCE = re.compile(
    r"(?P<path>[^:\0\\]{1,400})(?::(?P<variable>[A-Za-z_]\w{0,100}))?", re.ASCII
)
_DEEPEST = 5
_MOST = 1_000
_LARGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class FlowFile:
    """One flow in a file of the folder.

    Attributes:
        flow: Its name in a request.
        job: Its job's name as far as the text of the file shows it; no code is run.
    """

    flow: str
    job: str | None


def list_flows(folder: Path | None) -> list[FlowFile]:
    """Return the flows of the folder by name; empty where the server has none."""
    if folder is None:
        return []
    flows = (
        flow
        for file in _files(folder)
        for flow in _look_into(file, file.relative_to(folder).as_posix())
    )
    return list(islice(flows, _MOST))


def find_flow_file(folder: Path | None, reference: str) -> str:
    """Return a flow of the folder as jobs load it, or refuse a file outside of it.

    Args:
        folder: The flows folder; None where the server has none.
        reference: `orders/flow.py`, `orders/flow.py:name` or `orders`, seen from the folder.

    Raises:
        HeadgateError: FLOWS_NOT_SERVED, BAD_NAME or FLOW_NOT_FOUND.
    """
    if folder is None:
        raise HeadgateError(
            "FLOWS_NOT_SERVED",
            "cannot submit a flow: this server was started without a flows folder",
            hint="headgate serve --flows DIR",
        )
    match = _REFERENCE.fullmatch(reference)
    parts = match["path"].split("/") if match else []
    if match is None or not all(parts) or any(part.startswith((".", "~")) for part in parts):
        raise HeadgateError(
            "BAD_NAME",
            f"cannot use {reference[:256]!r} as a flow: it is not a file in the flows folder",
            hint="GET /v1/flows",
        )
    root = folder.resolve()
    # Resolved, since a link may lead out of the folder.
    path = _entry((folder / match["path"]).resolve())
    if path is None or not path.is_relative_to(root):
        raise HeadgateError(
            "FLOW_NOT_FOUND",
            f"cannot find flow {reference[:256]!r}: there is no such file in the flows folder",
            hint="GET /v1/flows",
        )
    variable = match["variable"]
    return f"{path}:{variable}" if variable else str(path)


def find_job_name(file: str) -> str | None:
    """Return the name of a flow's job as far as the text of its file shows it; no code is run.

    Args:
        file: As `find_flow_file` returns it.
    """
    path, _, variable = file.partition(":")
    jobs = _read_jobs(Path(path))
    return jobs.get(variable) if variable else _choose_job(jobs)


def _entry(path: Path) -> Path | None:
    if path.is_dir():
        path = (path / "flow.py").resolve()
    return path if path.is_file() and path.suffix in (".py", ".json") else None


def _files(folder: Path) -> Iterator[Path]:
    root = folder.resolve()
    for place, folders, files in os.walk(folder):
        here = Path(place)
        depth = len(here.relative_to(folder).parts)
        folders[:] = (
            sorted(name for name in folders if not name.startswith((".", "_")))
            if depth < _DEEPEST
            else []
        )
        for name in sorted(files):
            file = here / name
            if file.suffix in (".py", ".json") and not name.startswith("."):
                real = file.resolve()
                if real.is_relative_to(root) and real.is_file():
                    yield file


def _look_into(file: Path, name: str) -> list[FlowFile]:
    jobs = _read_jobs(file)
    job = _choose_job(jobs)
    if job is not None:
        return [FlowFile(name, job)]
    return [FlowFile(f"{name}:{variable}", job) for variable, job in jobs.items()]


def _read_jobs(file: Path) -> dict[str, str]:
    """Return the names of the jobs in a file by their variables; JSON has one, called `flow`."""
    try:
        if file.stat().st_size > _LARGEST:
            return {}
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    if file.suffix == ".json":
        job = re.search(r'"name"\s*:\s*"([a-z0-9][a-z0-9-]*)"', text)
        return {"flow": job[1]} if job and '"nodes"' in text else {}
    return {match["variable"]: match["job"] for match in _FLOW.finditer(text)}


def _choose_job(jobs: Mapping[str, str]) -> str | None:
    """Return the job of the flow that a file stands for: `flow`, or its only one."""
    return jobs.get("flow") or (next(iter(jobs.values())) if len(jobs) == 1 else None)
