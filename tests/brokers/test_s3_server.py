"""The S3 server of the tests creates objects as S3 does: what stores rest on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError
from s3_server import S3Server

_PART = b"x" * (5 * 1024 * 1024)


def test_an_object_is_created_if_absent_and_never_replaced(s3: S3Server) -> None:
    client = s3.client()
    client.put_object(Bucket=s3.bucket, Key="if-absent/1", Body=b"first", IfNoneMatch="*")

    with pytest.raises(ClientError) as refused:
        client.put_object(Bucket=s3.bucket, Key="if-absent/1", Body=b"second", IfNoneMatch="*")

    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 412
    assert _read(s3, "if-absent/1") == b"first"


def test_an_upload_in_parts_is_completed_only_if_the_object_is_absent(s3: S3Server) -> None:
    client, key = s3.client(), "in-parts/1"
    upload = client.create_multipart_upload(Bucket=s3.bucket, Key=key)["UploadId"]
    part = client.upload_part(Bucket=s3.bucket, Key=key, UploadId=upload, PartNumber=1, Body=_PART)
    client.put_object(Bucket=s3.bucket, Key=key, Body=b"first", IfNoneMatch="*")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}

    with pytest.raises(ClientError) as refused:
        client.complete_multipart_upload(
            Bucket=s3.bucket, Key=key, UploadId=upload, MultipartUpload=parts, IfNoneMatch="*"
        )

    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 412
    assert _read(s3, key) == b"first"


def test_of_many_writers_of_one_object_exactly_one_wins(s3: S3Server) -> None:
    def write(number: int) -> int:
        try:
            s3.client().put_object(
                Bucket=s3.bucket, Key="race/1", Body=str(number).encode(), IfNoneMatch="*"
            )
        except ClientError as error:
            return int(error.response["ResponseMetadata"]["HTTPStatusCode"])
        return 200

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(write, range(8)))

    assert sorted(answers) == [200, *[412] * 7]
    assert _read(s3, "race/1") == str(answers.index(200)).encode()


def _read(s3: S3Server, key: str) -> bytes:
    return bytes(s3.client().get_object(Bucket=s3.bucket, Key=key)["Body"].read())
