"""Places of checkpoints: what a text names, and what it is in JSON and for Hadoop."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from headgate._codec import DecodeError, decode, encode
from headgate._locations import Location, is_local, parse_location, url_of
from headgate.errors import HeadgateError


@dataclass(frozen=True, slots=True)
class Kept:
    place: Location
    other: Location | None = None


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("checkpoints", "checkpoints"),
        ("/data/a b", "/data/a b"),
        ("file:/data", "/data"),
        ("file:///data/x", "/data/x"),
        ("C:/x", "C:/x"),
        ("kept:1", "kept:1"),
    ],
)
def test_a_folder_is_a_path(text: str, path: str) -> None:
    place = parse_location(text)
    assert is_local(place)
    assert place == Path(path)


@pytest.mark.parametrize("text", ["s3a://shop/a/b", "s3://shop/a/b", "S3A://shop/a/b/"])
def test_an_address_of_s3_is_written_as_hadoop_writes_it(text: str) -> None:
    place = parse_location(text)
    assert not is_local(place)
    assert str(place) == url_of(place) == "s3a://shop/a/b"
    assert url_of(place / "c") == "s3a://shop/a/b/c"
    assert place.parent.name == "a"


def test_hadoop_gets_a_folder_with_its_whole_path(tmp_path: Path) -> None:
    assert url_of(tmp_path / "a b") == f"file:{tmp_path}/a b"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("gs://shop/a", "checkpoints must be in a folder, in a shared folder or on S3, got gs:"),
        (
            "hdfs://host/a",
            "checkpoints must be in a folder, in a shared folder or on S3, got hdfs:",
        ),
        ("s3a://", "it names no bucket"),
        ("s3a:shop", "it names no bucket"),
        ("s3a://shop/a/../b", "a part of the folder is empty, '.' or '..'"),
        ("s3a://shop/./b", "a part of the folder is empty, '.' or '..'"),
        ("s3a://shop//b", "a part of the folder is empty, '.' or '..'"),
        ("file://host/a", "it names no folder"),
        ("file:a", "it names no folder"),
    ],
)
def test_other_addresses_are_refused_by_name(text: str, why: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        parse_location(text)
    assert caught.value.code == "BAD_STORE"
    assert caught.value.message == f"cannot use {text}: {why}"


def test_credentials_in_an_address_are_refused_and_not_repeated() -> None:
    with pytest.raises(HeadgateError) as caught:
        parse_location("s3a://key:secret@shop/a")
    assert caught.value.code == "BAD_STORE"
    assert "secret" not in str(caught.value).replace("SECRET_ACCESS_KEY", "")


@pytest.mark.parametrize("text", ["/data/checkpoints", "s3a://shop/a"])
def test_a_place_is_text_in_json(text: str) -> None:
    kept = Kept(parse_location(text))
    assert encode(kept) == {"place": text, "other": None}
    assert decode(Kept, encode(kept)) == kept


def test_json_that_is_no_place_is_refused() -> None:
    with pytest.raises(DecodeError, match="place"):
        decode(Kept, {"place": 5})


def test_a_folder_needs_no_package_of_stores() -> None:
    code = (
        "import sys; from headgate._locations import parse_location; parse_location('/data');"
        "sys.exit(any(name in sys.modules for name in ('upath', 'fsspec', 's3fs', 'botocore')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("package", ["upath", "s3fs"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "headgate._s3", raising=False)
    monkeypatch.delattr("headgate._s3", raising=False)
    with pytest.raises(HeadgateError) as caught:
        parse_location("s3a://shop/a")
    assert caught.value.code == "PACKAGE_MISSING"
    assert caught.value.hint == "pip install 'headgate[s3]'"
    assert package in caught.value.message
