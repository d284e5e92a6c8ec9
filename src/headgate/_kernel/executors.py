"""The executors of a cluster, as the driver sees them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headgate._kernel.bridge import kernel

# Spark loads it beside the plugins of users: `spark.plugins.defaultList` leaves `spark.plugins`
# alone.
PLUGIN = {"spark.plugins.defaultList": "io.headgate.kernel.vitals.VitalsPlugin"}


@dataclass(frozen=True, slots=True)
class FolderProblem:
    """A folder of the driver that an executor cannot use.

    Attributes:
        problem: What the executor found: "does not have it".
    """

    executor: str
    host: str
    folder: str
    problem: str


def read_executors(spark: SparkSession) -> dict[str, Any]:
    """Return the executors since the driver began, with their tasks, in the kernel's form.

    A driver that runs the tasks itself is one of them.
    """
    return dict(json.loads(kernel(spark).vitals.ExecutorRoll.read()))


def find_folder_problems(
    spark: SparkSession, folders: Sequence[Path], marker: str, *, tasks: int
) -> list[FolderProblem]:
    """Return the folders that executors cannot use; nothing if none answers within a minute.

    Args:
        folders: Each has a file with the name of the marker.
        tasks: How many tasks look.
    """
    found = kernel(spark).cluster.SharedFolders.problems(
        spark._jsparkSession, [str(folder) for folder in folders], marker, tasks
    )
    return [FolderProblem(*problem) for problem in json.loads(found)]
