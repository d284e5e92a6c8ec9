"""Files on S3 have the methods and the errors of local files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from botocore.exceptions import ClientError
from s3_server import S3Server
from s3fs import S3FileSystem
from upath import UPath

from headgate import _s3
from headgate._locations import parse_location
from headgate._s3 import S3Files
from headgate.checkpoints.catalog import list_kept
from headgate.checkpoints.stores import place_at
from headgate.checkpoints.stores.notes import StoreNotes
from headgate.checkpoints.stores.objects import list_objects, read_object
from headgate.errors import StoreError
from headgate.jobs.checkpoints.portable import is_portable


def test_what_is_written_is_read_and_listed(s3_place: UPath) -> None:
    (s3_place / "a" / "b.json").write_text("{}")
    assert (s3_place / "a" / "b.json").read_text() == "{}"
    assert [file.name for file in (s3_place / "a").iterdir()] == ["b.json"]
    assert (s3_place / "a").is_dir()
    assert not (s3_place / "b").exists()


def test_what_another_process_writes_is_seen_at_once(s3_place: UPath, s3: S3Server) -> None:
    (s3_place / "a").write_text("1")
    assert [file.name for file in s3_place.iterdir()] == ["a"]
    key = (s3_place / "b").path.removeprefix(f"{s3.bucket}/")
    s3.client().put_object(Bucket=s3.bucket, Key=key, Body=b"2")
    assert sorted(file.name for file in s3_place.iterdir()) == ["a", "b"]


def test_a_missing_file_is_not_found(s3_place: UPath) -> None:
    with pytest.raises(FileNotFoundError):
        (s3_place / "a").read_text()


def test_only_one_of_two_writers_creates_a_file(s3_place: UPath) -> None:
    path = (s3_place / "a").path
    s3_place.fs.pipe_file(path, b"1", mode="create")
    with pytest.raises(FileExistsError):
        s3_place.fs.pipe_file(path, b"2", mode="create")
    assert (s3_place / "a").read_bytes() == b"1"


@pytest.fixture
def _nobody_listens(s3_place: UPath, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    S3Files.clear_instance_cache()
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    yield
    S3Files.clear_instance_cache()


@pytest.mark.usefixtures("_nobody_listens")
@pytest.mark.parametrize(
    "ask",
    [
        UPath.read_text,
        UPath.exists,
        UPath.is_file,
        UPath.is_dir,
        is_portable,
        list_objects,
        list_kept,
    ],
)
def test_a_store_that_does_not_answer_is_not_a_missing_file(ask: Callable[[UPath], None]) -> None:
    place = parse_location("s3a://shop/a")
    assert isinstance(place, UPath)
    with pytest.raises(StoreError, match="Could not connect") as caught:
        ask(place)
    assert (caught.value.code, caught.value.retryable) == ("STORE_UNAVAILABLE", True)


def test_a_store_that_wants_other_credentials_says_so(
    s3_place: UPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    S3Files.clear_instance_cache()
    with pytest.raises(StoreError) as caught:
        parse_location(str(s3_place)).joinpath("a").read_bytes()
    assert (caught.value.code, caught.value.retryable) == ("STORE_REFUSED", False)


@pytest.mark.parametrize("name", ["a[1]", "a*", "a?", "{a}", "a b", "a%20b", "ü"])
def test_a_file_is_removed_by_its_name_alone(s3_place: UPath, name: str) -> None:
    names = {"a1", "ab", "aü", name}
    for each in names:
        (s3_place / each / "f").write_text("1")
    s3_place.fs.rm([(s3_place / name / "f").path])
    assert set(list_objects(s3_place)) == {f"{each}/f" for each in names - {name}}
    (s3_place / "ab" / "f").unlink()
    assert "ab/f" not in list_objects(s3_place)


def test_more_files_than_one_request_takes_are_removed(
    s3_place: UPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_s3, "_DELETED", 2)
    s3_place.fs.pipe({(s3_place / str(number)).path: b"1" for number in range(5)})
    place_at(s3_place).remove_tree()
    assert list_objects(s3_place) == {}


def test_the_parts_of_a_copy_that_failed_are_removed(
    s3: S3Server, s3_place: UPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_s3, "MANAGED_COPY_THRESHOLD", 1)
    call = S3Files._call_s3

    async def fail(self: S3Files, method: str, *args: object, **named: object) -> object:
        if method == "complete_multipart_upload":
            assert len(_uploads(s3)) == 1
            raise OSError("cut")
        return await call(self, method, *args, **named)

    source, target = (str((s3_place / name).path) for name in ("a", "b"))
    s3_place.fs.pipe({source: b"12345"})
    with monkeypatch.context() as broken:
        broken.setattr(S3Files, "_call_s3", fail)
        with pytest.raises(OSError, match="cut"):
            s3_place.fs.copy_all([(source, target, 5)])
    assert _uploads(s3) == []
    s3_place.fs.copy_all([(source, target, 5)])
    assert (s3_place / "b").read_bytes() == b"12345"


def test_a_sweep_removes_the_parts_of_a_killed_process_and_no_others(
    s3: S3Server, s3_place: UPath
) -> None:
    client = s3.client()
    folder, beside = s3_place / "checkpoints", s3_place / "checkpoints-of-others"
    for name in (folder / "pool" / "a", folder / "pool" / "b", beside / "c"):
        _, _, key = name.path.partition("/")
        upload = client.create_multipart_upload(Bucket=s3.bucket, Key=key)["UploadId"]
        client.upload_part(Bucket=s3.bucket, Key=key, UploadId=upload, PartNumber=1, Body=b"1")
    place_at(folder).sweep(set)
    assert [upload["Key"].rpartition("/")[2] for upload in _uploads(s3)] == ["c"]
    assert beside.fs.abort_uploads(beside.path) == 1
    assert _uploads(s3) == []


def _uploads(s3: S3Server) -> list[Any]:
    return list(s3.client().list_multipart_uploads(Bucket=s3.bucket).get("Uploads", ()))


@pytest.mark.parametrize(
    ("code", "error"), [("AccessDenied", "STORE_REFUSED"), ("InternalError", "STORE_UNAVAILABLE")]
)
def test_a_file_that_the_store_did_not_remove_is_an_error(
    s3_place: UPath, monkeypatch: pytest.MonkeyPatch, code: str, error: str
) -> None:
    call = S3Files._call_s3

    async def refuse(self: S3Files, method: str, *args: object, **named: object) -> object:
        answer = await call(self, method, *args, **named)
        if method == "delete_objects":
            # As S3 answers: with status 200.
            answer = {"Errors": [{"Key": "a", "Code": code, "Message": "not today"}]}
        return answer

    (s3_place / "a").write_text("1")
    monkeypatch.setattr(S3Files, "_call_s3", refuse)
    with pytest.raises(
        StoreError, match=f"cannot remove s3a://shop/a from S3: {code} not"
    ) as raised:
        s3_place.fs.rm([(s3_place / "a").path])
    assert raised.value.code == error
    assert raised.value.retryable == (error == "STORE_UNAVAILABLE")


def test_a_write_that_meets_another_one_is_tried_again(
    s3_place: UPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = S3FileSystem._call_s3
    conflicts = 2

    async def conflict(self: S3Files, method: str, *args: object, **named: object) -> object:
        nonlocal conflicts
        if method == "put_object" and conflicts:
            conflicts -= 1
            answer = {"Error": {"Code": "ConditionalRequestConflict", "Message": "a conflict"}}
            raise OSError("a conflict") from ClientError(answer, "PutObject")
        return await call(self, method, *args, **named)

    monkeypatch.setattr(S3FileSystem, "_call_s3", conflict)
    notes = StoreNotes(s3_place)
    mark = notes.put("a", b"1", mark=None)
    assert mark is not None
    assert conflicts == 0
    assert notes.put("a", b"2", mark=None) is None
    assert notes.put("a", b"2", mark=mark) is not None


class CuttingHandler(BaseHTTPRequestHandler):
    """Answers with less than it announces."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "10")
        self.send_header("ETag", '"1"')
        self.end_headers()
        self.wfile.write(b"123")

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(
    "ask",
    [
        UPath.read_bytes,
        read_object,
        lambda file: StoreNotes(file.parent).find(file.name),
        lambda file: file.fs.get([file.path], ["/dev/null"]),
    ],
)
@pytest.mark.usefixtures("s3_place")
def test_a_file_that_arrives_in_part_is_an_error_of_the_store(
    ask: Callable[[UPath], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), CuttingHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setattr(S3Files, "retries", 1)
        S3Files.clear_instance_cache()
        place = parse_location("s3a://shop/a")
        assert isinstance(place, UPath)
        with pytest.raises(StoreError) as caught:
            ask(place)
        server.shutdown()
    S3Files.clear_instance_cache()
    assert (caught.value.code, caught.value.retryable) == ("STORE_UNAVAILABLE", True)
