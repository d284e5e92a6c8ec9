"""The folders that a job shares with its executors, which must be the same on every host."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from headgate._kernel.executors import find_folder_problems
from headgate._locations import find_folder
from headgate.connectors.files.descriptor import Files
from headgate.connectors.folder.descriptor import Folder
from headgate.connectors.folder.paths import is_address
from headgate.engine.plan.flow_plan import FlowPlan
from headgate.engine.settings import AttemptSettings
from headgate.errors import Domain, HeadgateError
from headgate.flow.operators.nodes import Source

# Several tasks for each executor, so that it is likely that every one of them has a look.
_LOOKS = 3


def check_folders(
    spark: SparkSession, plan: FlowPlan, settings: AttemptSettings, *, executors: int
) -> None:
    """Refuse a job whose executors have other folders than its driver.

    Without this, an executor would write state to its own disk, and no restart could find it.

    Raises:
        HeadgateError: FOLDER_NOT_SHARED.
    """
    folders = sorted(set(_folders(plan, settings)))
    marker = f".headgate-{uuid.uuid4().hex}"
    with _marked(folders, marker):
        problems = find_folder_problems(spark, folders, marker, tasks=_LOOKS * executors)
    if problems:
        first = problems[0]
        raise HeadgateError(
            "FOLDER_NOT_SHARED",
            f"cannot run job {settings.job!r} on {settings.spark.master}: the executor "
            f"{first.executor} on {first.host} must have the folder {first.folder} of the driver, "
            f"and it {first.problem}",
            hint="mount a shared folder under the same path on all hosts, and use it: "
            "--checkpoints shared:///mnt/checkpoints",
            domain=Domain.USER,
        )


def _folders(plan: FlowPlan, settings: AttemptSettings) -> Iterator[Path]:
    """Yield the folders of a checkpoint, of embedded topics and of data files."""
    checkpoint = find_folder(settings.checkpoint)
    if checkpoint is not None:
        yield checkpoint
    topics: Iterable[object] = (
        *(node.topic for node in plan.graph.nodes if isinstance(node, Source)),
        *(destination.topic for destination in plan.destinations),
    )
    for topic in topics:
        if isinstance(topic, Files):
            yield Path(topic.path).absolute()
        if isinstance(topic, Folder) and not is_address(topic.where):
            yield Path(topic.where).absolute()


@contextmanager
def _marked(folders: Iterable[Path], marker: str) -> Iterator[None]:
    with ExitStack() as stack:
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / marker
            file.touch()
            stack.callback(file.unlink, missing_ok=True)
        yield
