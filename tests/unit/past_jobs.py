"""Jobs with a past, made without Spark: folders, statuses, events, what is kept."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from stored_run import facts, local

from headgate._codec import encode
from headgate.checkpoints import manifest as manifests
from headgate.checkpoints.manifest import Kind, Manifest
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.values import RunOptions

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
RUN = "20261115T120000-abcdef"


def make_job(root: Path, name: str) -> JobFolder:
    """Make a job at rest, whose run has no checkpoint."""
    home = JobFolder(root, name)
    home.write_job(RUN, flow="flow.py", options=encode(RunOptions(home=root)))
    home.write_status({"state": "STOPPED", "lineage": RUN, "checkpoint": None})
    return home


def keep(home: JobFolder, batch: int, *, run: str = RUN, into: Path | None = None) -> Path:
    """Make a checkpoint, or a savepoint in a folder, that says what it is."""
    folder = into or home.checkpoints_folder(run) / f"chk-{batch}"
    folder.mkdir(parents=True)
    kind = Kind.CHECKPOINT if into is None else Kind.SAVEPOINT
    told = Manifest(
        kind=kind,
        batch=batch,
        facts=facts(completed_at=NOON + timedelta(seconds=batch), lineage=run),
        full_bytes=100,
        new_bytes=10,
        files={},
    )
    (folder / manifests.FILE_NAMES[kind]).write_text(manifests.render(told))
    return local(folder)


def make_history(home: JobFolder, count: int, *, kept: int) -> None:
    """Make a job's checkpoints known by its events; the newest ones are kept."""
    line = json.dumps({"full_bytes": 123_456_789, "new_bytes": 12_345, "took_ms": 12, "run": RUN})
    with (home.path / "events.jsonl").open("w") as file:
        for batch in range(count):
            at = (NOON + timedelta(seconds=batch)).isoformat()
            head = f'{{"format": 1, "at": "{at}", "event": "CHECKPOINT"'
            file.write(f'{head}, "checkpoint": "chk-{batch}", {line[1:]}\n')
    for batch in range(count - kept, count):
        keep(home, batch)
