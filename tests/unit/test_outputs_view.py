"""The outputs of a job from outside: what kinds there are, where they are, their last rows."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from audited_job import make_job

from headgate import Console, Files, Flow, HeadgateError, Kafka, Pulsar
from headgate._codec import encode
from headgate.connectors.files.folder.topic import TopicFolder
from headgate.connectors.files.log import FilesLog
from headgate.connectors.logs import bind
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.views.outputs import OutputRecord, OutputView


def declare(elsewhere: Path) -> Flow:
    flow = Flow("shop", dead_letters="bad")
    orders = flow.stream("orders", "id BIGINT NOT NULL, user BIGINT, at BIGINT", event_time="at")
    users = flow.table("users", "id BIGINT NOT NULL, name STRING", key="id")
    found = orders.enrich("with-user", users, on="user", into="who")
    found.matched.to("enriched")
    found.missing.select("id", "id + 1 AS next").to("missing")
    once = orders.dedupe("once", by="id", within=timedelta(hours=1))
    once.unique.to(Files("unique", dir=elsewhere))
    once.late.to(Console())
    options = {"sasl.username": "me", "sasl.password": "${env:KAFKA_SECRET}"}
    once.repeated.to(Kafka("again", servers="kafka.example:9092", options=options))
    secret = {"token": "${file:/run/secrets/pulsar}"}
    orders.to(Pulsar("all", service="pulsar://p.example", namespace="a/b", options=secret))
    return flow


@pytest.fixture
def root(tmp_path: Path) -> Path:
    graph = bind(declare(tmp_path / "elsewhere").graph(), FilesLog(tmp_path / "topics"))
    job = make_job(tmp_path / "home", graph, {})
    status = job.home.find_json("status.json") or {}
    job.home.write_status({**status, "outputs": {"enriched": 7, "bad": 2}})
    return tmp_path / "home"


def views(root: Path) -> dict[str, OutputView]:
    return {each.id: each for each in FolderHome(root).outputs("shop")}


def tail(root: Path, output: str, lines: int = 20) -> tuple[OutputRecord, ...]:
    return FolderHome(root).output_records("shop", output, lines=lines)


def test_side_outputs_come_first_and_dead_letters_last(root: Path) -> None:
    found = FolderHome(root).outputs("shop")
    assert [each.kind for each in found] == ["side"] * 3 + ["main"] * 3 + ["dead-letters"]
    assert {each.id for each in found if each.kind == "side"} == {"missing", "console", "again"}
    assert found[-1].id == "bad"
    assert [encode(each)["kind"] for each in found] == [str(each.kind) for each in found]


def test_a_side_output_is_one_behind_further_steps_too(root: Path) -> None:
    assert views(root)["missing"].kind == "side"
    assert views(root)["again"].fed_by == "once.repeated"


def test_rows_are_what_the_job_last_told(root: Path) -> None:
    found = views(root)
    assert (found["enriched"].rows, found["bad"].rows, found["missing"].rows) == (7, 2, 0)


def test_an_output_is_where_it_is_bound_to_and_no_secret_is_told(
    root: Path, tmp_path: Path
) -> None:
    found = views(root)
    assert found["enriched"].log == f"files:{tmp_path / 'topics'}"
    assert found["unique"].log == f"files:{tmp_path / 'elsewhere'}"
    assert found["again"].log == "kafka://kafka.example:9092"
    assert found["all"].log == "pulsar://p.example:6650/a/b"
    told = json.dumps(encode(list(found.values())))
    assert "SECRET" not in told
    assert "secrets" not in told


def test_a_console_is_named_and_cannot_be_tailed(root: Path) -> None:
    console = views(root)["console"]
    assert (console.log, console.can_tail) == ("console", False)
    with pytest.raises(HeadgateError) as caught:
        tail(root, "console")
    assert caught.value.code == "OUTPUT_NOT_KEPT"


def test_an_output_that_nobody_wrote_to_has_no_rows(root: Path) -> None:
    assert tail(root, "enriched") == ()


def test_the_last_rows_come_newest_last_with_their_places(root: Path, tmp_path: Path) -> None:
    folder = TopicFolder(tmp_path / "elsewhere")
    folder.create(2)
    name = "20261115T120000-abcdef-0000000003-00001.jsonl"
    folder.publish(b'{"id":1}\n{"id":2}\n{"id":3}\n', partition=1, name=name)
    one, two = tail(root, "unique", 2)
    assert (one.value, two.value) == ('{"id":2}', '{"id":3}')
    assert (two.partition, two.position) == (1, "20261115T120000-abcdef-3-1:18")
    assert one.timestamp is not None
    assert (one.key, one.size, one.cut) == (None, 8, False)


def test_a_long_row_is_cut_and_says_so_and_bytes_that_are_no_text_are_escaped(
    root: Path, tmp_path: Path
) -> None:
    folder = TopicFolder(tmp_path / "elsewhere")
    folder.create(1)
    folder.publish(b"a" * 10_000 + b"\n" + b"\xff\n")
    long, odd = tail(root, "unique")
    assert (long.cut, long.size, len(long.value or "")) == (True, 10_000, 8192)
    assert odd.value == "\\xff"


def test_an_output_of_another_name_is_refused_with_those_there_are(root: Path) -> None:
    with pytest.raises(HeadgateError) as caught:
        tail(root, "enrichd")
    assert caught.value.code == "OUTPUT_NOT_FOUND"
    assert "enriched" in caught.value.hint
