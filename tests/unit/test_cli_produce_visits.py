"""The verb `produce visits`: what arrives in the topic, and what is said about it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from eventually import eventually
from typer.testing import CliRunner, Result

import headgate
from headgate.cli.app import app
from headgate.connectors.files.folder.records import count_records
from headgate.connectors.files.folder.topic import TopicFolder

TOPIC = Path(".headgate/topics/visits")
MAIN = "from headgate.cli import main; main()"
COMMAND = [sys.executable, "-c", MAIN, "produce", "visits"]
SMALL = ("--count", "300", "--visits", "5")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*args: str) -> Result:
    return CliRunner().invoke(app, ["produce", "visits", *args])


def content(topic: Path = TOPIC) -> bytes:
    return b"".join(file.path.read_bytes() for file in TopicFolder(topic).files())


def test_what_was_said_to_be_sent_is_what_a_reader_finds() -> None:
    result = run(*SMALL)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1:] == [
        "Event times from 2025-09-04T10:00:00 to 2025-09-04T12:00:00 UTC, '3' events late",
        "Sent '300' visit records",
    ]
    assert count_records(TopicFolder(TOPIC)) == 300


def test_json_has_the_counts_the_times_and_the_place() -> None:
    told = json.loads(run(*SMALL, "--round", "2", "--span", "30m", "--json").stdout)
    assert told.pop("seconds") >= 0
    assert told.pop("records_per_s") >= 0
    assert told == {
        "visits": 300,
        "late": 3,
        "begin": "2025-09-04T11:00:00+00:00",
        "end": "2025-09-04T11:30:00+00:00",
        "records": 300,
        "where": "files:.headgate/topics",
    }


def test_the_same_call_sends_the_same_bytes_and_another_seed_does_not() -> None:
    for folder, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        assert run(*SMALL, "--seed", seed, "--on", f"files:{folder}").exit_code == 0
    one, same, other = (content(Path(folder, "visits")) for folder in "abc")
    assert one == same
    assert one != other


def test_lateness_and_disorder_are_obeyed() -> None:
    assert run(*SMALL, "--late", "0", "--out-of-order", "0s").exit_code == 0
    times = [json.loads(line)["event_time"] for line in content().splitlines()]
    assert times == sorted(times)


def test_events_take_the_partitions_of_a_topic_in_turn() -> None:
    # A rate of 1000 cuts the events into slices of 100.
    assert run(*SMALL, "--partitions", "3", "--rate", "1000").exit_code == 0
    assert [len(list((TOPIC / f"part-{number}").iterdir())) for number in range(3)] == [1, 1, 1]
    assert run(*SMALL, "--partitions", "2").exit_code == 0
    assert TopicFolder(TOPIC).partitions == 3


def test_quiet_prints_nothing_and_no_events_make_the_topic() -> None:
    assert run("--count", "0", "--quiet").output == ""
    assert TopicFolder(TOPIC).exists
    assert run("--count", "0").stdout.splitlines()[-1] == "Sent no records"


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("--visits", "0"), "BAD_VISITS_SHAPE"),
        (("--late", "2"), "BAD_VISITS_SHAPE"),
        (("--span", "0s"), "BAD_VISITS_SHAPE"),
        (("--span", "long"), "BAD_DURATION"),
        (("--out-of-order", "30"), "BAD_DURATION"),
        (("--rate", "0"), "BAD_RATE"),
        (("--on", "nowhere"), "LOG_UNSUPPORTED"),
        (("--count", "some"), "BAD_USAGE"),
    ],
)
def test_what_cannot_be_sent_is_refused_and_leaves_no_topic(
    args: tuple[str, ...], code: str
) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error {code}: ")
    assert not TOPIC.exists()


def test_control_c_tells_what_was_acknowledged_and_ends_with_130() -> None:
    process = subprocess.Popen(
        [*COMMAND, "--count", "100000", "--rate", "100"],
        env={**os.environ, "PYTHONPATH": str(Path(headgate.__file__).parents[1])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A test runner may itself ignore Ctrl-C, and a child would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    eventually(lambda: list(TOPIC.glob("part-0/*")), every=0.02, alive=process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=180)
    assert process.returncode == 130
    assert out == ""
    assert err.startswith(("Sent '", "Sent no records"))
    assert err.endswith("then was interrupted\n")
