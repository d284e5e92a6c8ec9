"""A real S3 server for tests: moto's, in a process of its own, with a made-up key and a bucket."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from eventually import eventually

_REGION = "eu-central-1"
_APP = Path(__file__).with_name("s3_app.py")


@dataclass(slots=True)
class S3Server:
    """A server that keeps objects in memory, as long as its process runs.

    Attributes:
        log: The file of what it prints.
        bucket: The bucket that it has.
    """

    log: Path
    bucket: str = "shop"
    port: int = 0
    _process: subprocess.Popen[bytes] | None = None
    _key: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def endpoint(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables by which a client of AWS finds the server and the key."""
        return {
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_REGION": _REGION,
            "AWS_DEFAULT_REGION": _REGION,
            "AWS_ACCESS_KEY_ID": "headgate-test",
            "AWS_SECRET_ACCESS_KEY": self._key,
            # No look for a machine's own role, which takes seconds.
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def url(self, prefix: str = "") -> str:
        """Return a place in the bucket, as `--checkpoints` takes it."""
        return f"s3a://{self.bucket}/{prefix}" if prefix else f"s3a://{self.bucket}"

    def client(self) -> Any:
        """Return a client of boto3."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=_REGION,
            aws_access_key_id=self.environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self._key,
            config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}),
        )

    def list_keys(self, prefix: str = "") -> list[str]:
        """Return the names of all objects that begin with a prefix, sorted."""
        pages = self.client().get_paginator("list_objects_v2")
        return [
            found["Key"]
            for page in pages.paginate(Bucket=self.bucket, Prefix=prefix)
            for found in page.get("Contents", ())
        ]

    def start(self) -> None:
        """Start the server and create its bucket."""
        self.port = _free_port()
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, str(_APP), str(self.port)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        assert eventually(self._answers, within=60), self.log.read_text()
        self.client().create_bucket(
            Bucket=self.bucket, CreateBucketConfiguration={"LocationConstraint": _REGION}
        )

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log.read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def pause(self) -> None:
        """Let the server answer nothing, until it is resumed."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let the server answer again."""
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        """End the server; its objects are gone."""
        if self._process is not None:
            self.resume()
            self._process.kill()
            self._process.wait()
            self._process = None

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
