"""The verb `publish`: which records arrive in a topic, and what is said about them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from eventually import eventually
from typer.testing import CliRunner, Result

from headgate.cli.app import app
from headgate.cli.topics import publish as cli_publish
from headgate.connectors.files.folder.topic import TopicFolder
from headgate.connectors.kafka.descriptor import KafkaLog
from headgate.errors import Domain, HeadgateError
from headgate.jobs.topics import publication
from headgate.jobs.topics.publication import Publication, publish_records, read_blocks

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(".headgate/topics")
COMMAND = [sys.executable, "-c", "from headgate.cli import main; main()", "publish"]
# A pipe on which nothing ever arrives.
QUIET = os.pipe()


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def publish(*args: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, ["publish", *args], input=stdin)


def read(topic: str) -> list[str]:
    files = TopicFolder(ROOT / topic).files()
    return [line for file in files for line in file.path.read_text().splitlines()]


def test_a_file_arrives_unchanged_and_in_order() -> None:
    Path("users.jsonl").write_bytes(
        b'\xef\xbb\xbf{"id": 1, "name": "\xc3\x85sa"}\r\n\n  \n{"id":2 }\n{"id": 3}'
    )
    result = publish("users", "users.jsonl", "--create", "--key", "id")
    assert result.exit_code == 0, result.stderr
    assert read("users") == ['{"id": 1, "name": "Åsa"}', '{"id":2 }', '{"id": 3}']
    lines = result.stdout.splitlines()
    assert lines[0].startswith("Created topic 'users' in ")
    assert lines[1].startswith("Published 3 records to topic 'users' in 0.")


def test_standard_input_is_read_without_a_file_and_for_a_dash() -> None:
    told = json.loads(publish("users", "--create", "--json", stdin='{"id": 1}\n').stdout)
    assert told.pop("seconds") >= 0
    assert told.pop("records_per_s") >= 0
    assert told == {
        "topic": "users",
        "created": True,
        "records": 1,
        "where": ".headgate/topics/users",
    }
    again = json.loads(publish("users", "-", "--json", stdin='{"id": 2}').stdout)
    assert (again["created"], again["records"]) == (False, 1)
    assert read("users") == ['{"id": 1}', '{"id": 2}']
    assert publish("users").stdout.startswith("Published 0 records")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"id": 3', "it is not JSON (Expecting ',' delimiter at column 9)"),
        ('{"id": 3} {}', "it is not JSON (Extra data at column 11)"),
        ('{"id": NaN}', "it is not JSON (NaN is not a number)"),
        ("[1]", "it must be a JSON object, got an array"),
        ("null", "it must be a JSON object, got null"),
        ("true", "it must be a JSON object, got a boolean"),
        ('{"other": 3}', "it has no 'id', which is the key"),
        ('{"id": null}', "it has no 'id', which is the key"),
        ("[" * 100_000, "it is nested too deeply"),
    ],
)
def test_a_line_that_cannot_be_sent_ends_it_and_its_number_is_told(line: str, problem: str) -> None:
    Path("my users.jsonl").write_text(f'{{"id": 1}}\n\n{{"id": 2}}\n{line}\n{{"id": 4}}\n')
    result = publish("users", "my users.jsonl", "--create", "--key", "id")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[:2] == [
        f"error BAD_RECORD: cannot publish line 4 of my users.jsonl to topic 'users': {problem}; "
        "the 2 records before it were sent, and none after it",
        "hint: correct line 4, and send the rest: tail -n +4 'my users.jsonl' | "
        "headgate publish users --key id",
    ]
    assert read("users") == ['{"id": 1}', '{"id": 2}']


def test_bytes_that_are_not_utf_8_are_refused() -> None:
    with pytest.raises(HeadgateError, match="line 2 to topic 'users': it is not UTF-8; the record"):
        publish_records(Publication(topic="users", create=True), BytesIO(b'{}\n{"a": "\xff"}\n'))


def test_a_file_of_one_array_is_refused_with_the_way_to_split_it() -> None:
    Path("all.json").write_text('[\n  {"id": 1}\n]\n')
    result = publish("users", "all.json", "--create", "--on", "files:elsewhere")
    assert "line 1 of all.json" in result.stderr
    assert "(Expecting value at column 2); no record was sent\n" in result.stderr
    assert (
        "hint: write one object per line: jq -c 'if type == \"array\" then .[] else . end' "
        "all.json | headgate publish users --on files:elsewhere" in result.stderr
    )


def test_a_missing_topic_is_not_made_unless_asked_for_and_a_missing_file_is_named() -> None:
    refused = publish("users", stdin='{"id": 1}\n')
    assert refused.exit_code == 2
    assert refused.stderr.startswith("error TOPIC_NOT_FOUND: ")
    assert not (ROOT / "users").exists()
    for file, why in (("nowhere.jsonl", "does not exist"), (".", "is a folder")):
        result = publish("users", file, "--create")
        assert result.stderr.startswith(
            f"error INPUT_NOT_FOUND: cannot publish {file}: it must be a file, and it {why}\n"
        )
    assert not (ROOT / "users").exists()


def test_lines_of_a_slow_pipe_arrive_before_it_ends_and_an_interrupt_tells_how_many() -> None:
    publish("users", "--create")
    process = subprocess.Popen(
        [*COMMAND, "users"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts its background jobs with interrupts ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    with process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write('{"id": 1}\n{"id": 2}\n{"id":')
        process.stdin.flush()
        eventually(lambda: read("users") == ['{"id": 1}', '{"id": 2}'])
        process.send_signal(signal.SIGINT)
        assert "Published 2 records, then was interrupted" in process.stderr.read()
    assert process.returncode == 130


def test_a_pipe_is_read_in_blocks_of_whole_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publication, "_BLOCK", 8)
    assert list(read_blocks(BytesIO(b"1\n22\n4444\n88888888888888\n1"))) == [
        b"1\n22\n",
        b"4444\n",
        b"88888888888888\n",
        b"1",
    ]
    assert list(read_blocks(BytesIO(b""))) == []
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as source, os.fdopen(writer, "wb", buffering=0) as sink:
        blocks = read_blocks(source)
        sink.write(b"1\n2")
        assert next(blocks) == b"1\n"
        sink.write(b"3\n")
        assert next(blocks) == b"23\n"


class Broker:
    """A log's sender that fails with a given batch."""

    def __init__(self, fails_at: int) -> None:
        self.batches: list[list[tuple[bytes | None, bytes | None]]] = []
        self._fails_at = fails_at

    def __enter__(self) -> Broker:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def send(self, _topic: str, records: Iterable[tuple[bytes | None, bytes | None]]) -> int:
        if len(self.batches) == self._fails_at:
            raise HeadgateError("BROKER_FAILED", "cannot send", domain=Domain.EXTERNAL)
        self.batches.append(list(records))
        return len(self.batches[-1])


class Pieces(BytesIO):
    """An input with a pause after each piece."""

    def __init__(self, *pieces: bytes) -> None:
        super().__init__(b"".join(pieces))
        self._sizes = [len(piece) for piece in pieces]

    def read1(self, _size: int | None = -1, /) -> bytes:
        return self.read(self._sizes.pop(0)) if self._sizes else b""

    def fileno(self) -> int:
        return QUIET[0]


def test_keys_are_text_and_a_failing_broker_leaves_an_exact_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = Broker(fails_at=1)
    monkeypatch.setattr(KafkaLog, "open_sender", lambda _log: broker)

    class Shown:
        where = "kafka"

    monkeypatch.setattr(publication, "show_topic", lambda *_, **__: Shown)
    lines = [b'{"k": "a b"}', b'{"k": 42}', '{"k": [1, "Å"]}'.encode()]
    more = b'{"k": 1}\n{"k": 2}\n'
    given = Publication(topic="t", on="kafka://x:1", key="k")
    with pytest.raises(HeadgateError) as raised:
        publish_records(given, Pieces(b"\n".join((*lines, b"")), more))
    assert broker.batches == [list(zip((b"a b", b"42", '[1,"Å"]'.encode()), lines, strict=True))]
    assert (raised.value.code, raised.value.domain) == ("BROKER_FAILED", Domain.EXTERNAL)
    assert raised.value.message == (
        "cannot send; 3 records were sent before, and some of the next 2 may have arrived"
    )


def test_without_a_terminal_a_line_now_and_then_shows_the_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = '{"id": 1}\n{"id": 2}\n'
    assert publish("users", "--create", stdin=lines).stderr == ""
    monkeypatch.setattr(cli_publish, "_LINE_EVERY_S", 0.0)
    assert publish("users", stdin=lines).stderr == "2 records so far\n"
