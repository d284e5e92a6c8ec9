"""The modules beside a flow's file: imported by the driver and by Spark's Python workers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.engine.user_code.shipping import CODE, FLOW

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def import_from(folder: Path) -> None:
    """Let this process import the modules of a folder, before those of the working directory."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def import_on_workers(spark: SparkSession, folder: Path) -> None:
    """Let the Python functions of later queries import what this process can import.

    A worker unpickles a function of a module by its name, in a process that was started in any
    working directory, so it needs the same folders in the same order: the flow's folder, then the
    working directory. The folder must exist on the hosts of the workers.
    """
    context = spark.sparkContext
    # Otherwise Python puts the working directory of the worker's process before everything else.
    context.environment["PYTHONSAFEPATH"] = "1"
    # Workers are reused by functions with the same environment, and keep the modules they imported.
    context.environment["HEADGATE_FLOW_FOLDER"] = str(folder.absolute())
    # Spark 4.3.0: `worker_util.setup_spark_files` inserts each include at the same place of
    # sys.path, so the last one is searched first; it leaves absolute paths as they are. The
    # interpreter has started by then: a module called `types` does not replace Python's own.
    context._python_includes = [
        *_uploaded(context._python_includes or ()),
        str(Path.cwd()),
        str(folder.absolute()),
    ]


def import_sent(spark: SparkSession, python: str) -> None:
    """Let the Python functions of later queries import the modules that executors were sent.

    Args:
        python: The interpreter of the workers.
    """
    context = spark.sparkContext
    context.environment["PYTHONSAFEPATH"] = "1"
    # `SparkContext` reads it from an environment variable, before there are settings of a job.
    context.pythonExec = python
    # Names are relative to the executor's working folder; see `import_on_workers` for the order.
    context._python_includes = [*_uploaded(context._python_includes or ()), CODE, FLOW]


def _uploaded(includes: Sequence[str]) -> list[str]:
    """Return the files that `addPyFile` copies to the workers."""
    return [name for name in includes if not Path(name).is_absolute()]
