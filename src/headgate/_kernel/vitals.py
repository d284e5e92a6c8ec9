"""What the driver's JVM uses of its memory and of its time."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import SparkSession

from headgate._kernel.bridge import kernel


def read_vitals(spark: SparkSession) -> dict[str, Any]:
    """Return memory pools, times and processes of the driver, in the kernel's form."""
    return dict(json.loads(kernel(spark).vitals.Vitals.read()))
