"""The lease of a checkpoint on an object store: one driver across hosts."""

from __future__ import annotations

from pyspark.sql import SparkSession

from headgate._kernel.bridge import Lease
from headgate._kernel.translate import naming_failures
from headgate._locations import url_of
from headgate.engine.session.driver_lock import holder_of
from headgate.engine.settings import AttemptSettings


def take_lease(spark: SparkSession, settings: AttemptSettings) -> Lease | None:
    """Take the lease of the checkpoint, or return None if it needs none.

    Raises:
        HeadgateError: LEASE_HELD if another driver holds it.
    """
    if settings.lease is None:
        return None
    with naming_failures(f"cannot run job {settings.job!r}"):
        return Lease.take(
            spark,
            url_of(settings.lease),
            url_of(settings.checkpoint),
            holder=holder_of(settings.spark.lock_file),
            expires=settings.lease_expires,
        )
