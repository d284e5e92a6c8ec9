"""Object stores with checkpoints: which a job needs, and what Hadoop is told of them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

from headgate._kernel.connector_jars import STORES
from headgate._locations import Location, is_local, url_of

_S3A = "spark.hadoop.fs.s3a"
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


def stores_of(locations: Iterable[Location]) -> tuple[str, ...]:
    """Return the stores in which the locations are, as modules of the kernel's class path."""
    schemes = {url_of(place).partition(":")[0] for place in locations if not is_local(place)}
    return tuple(sorted(schemes & STORES.keys()))


def plain_place(location: Location) -> str:
    """Return a place as the kernel takes it: a path, or an address with a scheme."""
    return str(location.absolute()) if is_local(location) else url_of(location)


def store_conf(modules: Collection[str]) -> dict[str, str]:
    """Return Spark's settings for stores, which the driver and its executors share.

    Credentials are not among them: each process finds its own as all of AWS's programs do, in its
    environment, its profile or its role.
    """
    return _s3a_conf() if "s3a" in modules else {}


def _s3a_conf() -> dict[str, str]:
    conf = {
        f"{_S3A}.aws.credentials.provider": (
            "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
        ),
        # A log is committed by the store, which refuses to create an object that exists.
        f"{_S3A}.create.conditional.enabled": "true",
        # Folders exist by their files: nothing is looked up or written to keep an empty one.
        f"{_S3A}.performance.flags": "mkdir,delete",
        # Its default needs a further library, which reads ahead in large columnar files.
        f"{_S3A}.input.stream.type": "classic",
        # The names of users and jobs in the store's access log; it needs that library, too.
        f"{_S3A}.audit.enabled": "false",
        # By default a dead connection is given up after 200 s, long after the lease has expired,
        # and each request is repeated on two levels.
        f"{_S3A}.connection.timeout": "30s",
        f"{_S3A}.attempts.maximum": "1",
        # Of the process: a driver's goes with the driver.
        f"{_S3A}.buffer.dir": "${java.io.tmpdir}/s3a",
    }
    endpoint = _first(_ENDPOINTS)
    if endpoint is not None:
        conf[f"{_S3A}.endpoint"] = endpoint
        # A name of its own for each bucket is AWS's.
        conf[f"{_S3A}.path.style.access"] = "true"
        conf[f"{_S3A}.connection.ssl.enabled"] = str(not endpoint.startswith("http://")).lower()
    region = _first(_REGIONS) or (endpoint and "us-east-1")
    if region:
        conf[f"{_S3A}.endpoint.region"] = region
    return conf


def _first(names: Iterable[str]) -> str | None:
    return next((value for name in names if (value := os.environ.get(name))), None)
