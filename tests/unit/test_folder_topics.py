"""Folders of data files as values."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from headgate import Flow, Folder, Graph, HeadgateError, Parquet
from headgate.checkpoints.sparklog import without_covered
from headgate.flow.formats.columnar import Parquet as ParquetFormat
from headgate.flow.formats.csv import Csv
from headgate.flow.formats.plain import Text
from headgate.flow.operators.nodes import Output, Source
from headgate.flow.topics import topic_from_json, topic_to_json


@pytest.mark.parametrize(
    "folder",
    [
        Folder("data/orders"),
        Parquet("s3a://bucket/orders", partition_by="day"),
        Folder("x", "orders", format="text", compression="gzip", header=False, glob="*.txt"),
        Folder("x", look_every="5s", min_age="1m", roll_size="1MB", roll_age="30s"),
        Folder("x", partition_by=("day", "hour"), recursive=False),
    ],
)
def test_a_folder_reads_back_from_its_json(folder: Folder) -> None:
    assert topic_from_json(json.loads(json.dumps(topic_to_json(folder)))) == folder


def test_what_is_left_out_has_the_documented_default() -> None:
    folder = Folder("data/orders/")
    assert (folder.name, folder.where) == ("orders", "data/orders/")
    assert folder.own_name == "json"
    assert folder.rolls_at == (128_000_000, timedelta(minutes=5))
    assert Folder("s3://b/orders/").where == "s3a://b/orders"
    assert Folder("file:///data/orders").where == "/data/orders"


@pytest.mark.parametrize(
    ("path", "options", "code"),
    [
        ("", {}, "BAD_TOPIC"),
        ("data/new orders", {}, "BAD_NAME"),
        ("ftp://host/orders", {}, "BAD_TOPIC"),
        ("s3a:///orders", {}, "BAD_TOPIC"),
        ("s3a://key:secret@bucket/orders", {}, "BAD_TOPIC"),
        ("s3a://bucket/a//orders", {}, "BAD_TOPIC"),
        ("s3a://bucket/../orders", {}, "BAD_TOPIC"),
        ("orders", {"format": "xml"}, "BAD_FORMAT"),
        ("orders", {"compression": "lzo"}, "BAD_TOPIC"),
        ("orders", {"partition_by": ("a", "a")}, "DUPLICATE_COLUMN"),
        ("orders", {"glob": "a/*"}, "BAD_TOPIC"),
        ("orders", {"format": Csv(columns=("a",))}, "BAD_TOPIC"),
        ("orders", {"roll_size": "much"}, "BAD_SIZE"),
        ("orders", {"look_every": "often"}, "BAD_DURATION"),
    ],
)
def test_what_cannot_work_is_refused(path: str, options: dict[str, Any], code: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        Folder(path, **options)
    assert caught.value.code == code
    assert caught.value.hint
    assert "secret" not in str(caught.value)


def test_a_flow_takes_the_format_of_a_folder() -> None:
    flow = Flow("copy")
    rows = flow.stream(Folder("in", format="text"), "line STRING")
    rows.to(Parquet("out"))
    graph = flow.graph()
    assert Graph.from_json(graph.to_json()) == graph
    formats = [node.format for node in graph.nodes if isinstance(node, Source | Output)]
    assert formats == [Text(), ParquetFormat()]


def test_a_format_beside_the_folders_own_is_refused() -> None:
    flow = Flow("copy")
    flow.stream(Folder("in", format="text"), "line STRING", format="text")
    with pytest.raises(HeadgateError, match="has the format text, got JSON") as caught:
        flow.stream(Folder("in2", format="text"), "line STRING", format="json")
    assert caught.value.code == "BAD_FORMAT"
    with pytest.raises(HeadgateError, match="format of whole files"):
        flow.stream("orders", "id BIGINT", format="orc")


def test_columns_of_folders_must_be_columns_of_the_schema() -> None:
    flow = Flow("copy")
    folder = Folder("in", format="text", partition_by="day")
    flow.stream(folder, "line STRING, day DATE")
    with pytest.raises(HeadgateError, match="partitions by 'day'") as caught:
        flow.stream(Folder("in2", partition_by="day"), "line STRING")
    assert caught.value.code == "BAD_FORMAT"


def test_a_checkpoint_has_no_pages_that_a_longer_one_covers() -> None:
    def page(first: int, end: int, folder: str = "in") -> list[str]:
        name = f"sources/{folder}/ledger-v1-{first:012}-{end:012}.json"
        return [name, f"{name}.crc"]

    kept = ["sources/in/start-v1.json", "sources/in/ledger-v1.json"]
    kept += [*page(0, 16), *page(16, 17), *page(0, 3, "other")]
    covered = [*page(0, 4), *page(4, 16), *page(0, 1)]
    assert without_covered(sorted(kept + covered)) == sorted(kept)
