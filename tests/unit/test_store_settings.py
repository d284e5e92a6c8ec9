"""What Spark is told of object stores: by reference, and nothing for a checkpoint on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate._locations import parse_location
from headgate.engine.session.stores import plain_place, store_conf, stores_of

S3A = "spark.hadoop.fs.s3a"


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Begin without the variables of AWS, whatever this machine has."""
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_only_checkpoints_on_a_store_need_its_jars(tmp_path: Path) -> None:
    assert stores_of([tmp_path]) == ()
    assert stores_of([tmp_path, parse_location("s3://shop/a")]) == ("s3a",)


def test_a_checkpoint_on_disk_brings_no_settings_of_stores() -> None:
    assert store_conf(["kafka"]) == {}


def test_the_kernel_gets_paths_and_addresses(tmp_path: Path) -> None:
    assert plain_place(tmp_path / "a") == f"{tmp_path}/a"
    assert plain_place(parse_location("s3://shop/a")) == "s3a://shop/a"


def test_credentials_stay_where_they_are(aws: pytest.MonkeyPatch) -> None:
    aws.setenv("AWS_ACCESS_KEY_ID", "the-name-of-a-key")
    aws.setenv("AWS_SECRET_ACCESS_KEY", "the-key")
    aws.setenv("AWS_SESSION_TOKEN", "the-token")
    conf = store_conf(["s3a"])
    assert not [value for value in conf.values() if value.startswith("the-")]
    provider = conf[f"{S3A}.aws.credentials.provider"]
    assert provider == "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"


def test_logs_are_created_only_if_they_are_absent() -> None:
    assert store_conf(["s3a"])[f"{S3A}.create.conditional.enabled"] == "true"


def test_aws_itself_is_asked_in_its_own_way(aws: pytest.MonkeyPatch) -> None:
    conf = store_conf(["s3a"])
    assert not {f"{S3A}.endpoint", f"{S3A}.path.style.access", f"{S3A}.endpoint.region"} & {*conf}
    aws.setenv("AWS_REGION", "eu-west-3")
    assert store_conf(["s3a"])[f"{S3A}.endpoint.region"] == "eu-west-3"


def test_a_server_of_ones_own_is_asked_by_path(aws: pytest.MonkeyPatch) -> None:
    aws.setenv("AWS_ENDPOINT_URL_S3", "http://minio:9000")
    conf = store_conf(["s3a"])
    assert conf[f"{S3A}.endpoint"] == "http://minio:9000"
    assert conf[f"{S3A}.path.style.access"] == "true"
    assert conf[f"{S3A}.connection.ssl.enabled"] == "false"
    assert conf[f"{S3A}.endpoint.region"] == "us-east-1"


def test_a_driver_gives_up_a_dead_connection_before_its_batch_takes_hours() -> None:
    conf = store_conf(["s3a"])
    assert conf[f"{S3A}.connection.timeout"] == "30s"
    assert conf[f"{S3A}.attempts.maximum"] == "1"
