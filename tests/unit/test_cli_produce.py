"""The verb `produce store`: what arrives in the topics, and what is said about it."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from eventually import eventually
from typer.testing import CliRunner, Result

import headgate
from headgate.cli.app import app
from headgate.connectors.files.folder.records import count_records, read_records
from headgate.connectors.files.folder.topic import TopicFolder

ROOT = Path(".headgate/topics")
MAIN = "from headgate.cli import main; main()"
COMMAND = [sys.executable, "-c", MAIN, "produce", "store"]
SMALL = ("--users", "30", "--items", "5", "--orders", "100")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*args: str) -> Result:
    return CliRunner().invoke(app, ["produce", "store", *args])


def count(name: str) -> int:
    return count_records(TopicFolder(ROOT / name))


def content(root: Path, name: str) -> bytes:
    return b"".join(file.path.read_bytes() for file in TopicFolder(root / name).files())


def test_what_was_said_to_be_sent_is_what_a_reader_finds() -> None:
    result = run(*SMALL)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == (
        "Sent '30' user records, '5' item records and '100' order records"
    )
    assert [count(name) for name in ("users", "items", "orders")] == [30, 5, 100]


def test_without_orders_the_last_line_names_users_and_items() -> None:
    result = run("--users", "30", "--items", "5", "--orders", "0")
    assert result.stdout.splitlines()[-1] == "Sent '30' user records and '5' item records"
    assert TopicFolder(ROOT / "orders").exists


def test_json_has_the_counts_the_time_and_the_place() -> None:
    told = json.loads(run(*SMALL, "--updates", "7", "--json").stdout)
    assert told.pop("seconds") >= 0
    assert told.pop("records_per_s") >= 0
    assert told == {
        "users": 37,
        "items": 5,
        "orders": 100,
        "updates": 7,
        "records": 142,
        "where": "files:.headgate/topics",
    }


def test_updates_are_mentioned_and_counted_as_user_records() -> None:
    lines = run(*SMALL, "--updates", "7").stdout.splitlines()
    assert "Among the user records are '7' updates" in lines
    assert lines[-1].startswith("Sent '37' user records")


def test_a_later_round_has_updates_and_orders_only() -> None:
    run(*SMALL)
    result = run(*SMALL, "--round", "1", "--updates", "10", "--deletes", "1")
    assert result.stdout.splitlines()[-1] == "Sent '10' user records and '100' order records"
    assert [count(name) for name in ("users", "items", "orders")] == [40, 5, 200]
    assert content(ROOT, "users").count(b'"$deleted":true') == 10


def test_the_same_seed_sends_the_same_bytes_and_another_does_not() -> None:
    for folder, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        assert run(*SMALL, "--seed", seed, "--on", f"files:{folder}").exit_code == 0
    one, same, other = (content(Path(folder), "orders") for folder in "abc")
    assert one == same
    assert one != other


def test_orders_take_the_partitions_of_their_topic_in_turn_and_changelogs_stay_in_one() -> None:
    TopicFolder(ROOT / "orders").create(3)
    TopicFolder(ROOT / "users").create(2)
    # A rate of 100 cuts the orders into slices of 10.
    result = run("--users", "50000", "--items", "5", "--orders", "60", "--rate", "100")
    assert result.exit_code == 0
    spread = [len(list((ROOT / "orders" / f"part-{number}").iterdir())) for number in range(3)]
    assert spread == [2, 2, 2]
    assert not (ROOT / "users" / "part-1").exists()
    ids = [
        json.loads(line)["id"]
        for file in sorted((ROOT / "users" / "part-0").iterdir())
        for line in read_records(file)
    ]
    assert ids == list(range(1, 50_001))


def test_shares_of_unknown_and_bad_orders_are_obeyed() -> None:
    run(*SMALL, "--unknown", "0", "--bad", "0", "--on", "files:good")
    orders = [json.loads(line) for line in content(Path("good"), "orders").splitlines()]
    assert all(1 <= order["userId"] <= 30 and 1 <= order["itemId"] <= 5 for order in orders)
    run(*SMALL, "--bad", "1", "--on", "files:bad")
    assert count_records(TopicFolder(Path("bad/orders"))) == 100


def test_quiet_prints_nothing() -> None:
    result = run(*SMALL, "--quiet")
    assert result.output == ""
    assert count("orders") == 100


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("--users", "-1"), "BAD_STORE_SHAPE"),
        (("--bad", "1.5"), "BAD_STORE_SHAPE"),
        (("--users", "0"), "BAD_STORE_SHAPE"),
        (("--rate", "0"), "BAD_RATE"),
        (("--on", "nowhere"), "LOG_UNSUPPORTED"),
        (("--orders", "some"), "BAD_USAGE"),
    ],
)
def test_what_cannot_be_sent_is_refused_and_leaves_no_topics(
    args: tuple[str, ...], code: str
) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error {code}: ")
    assert not ROOT.exists()


def test_control_c_tells_what_was_acknowledged_and_ends_with_130() -> None:
    process = subprocess.Popen(
        [*COMMAND, "--users", "30", "--items", "5", "--orders", "100000", "--rate", "100"],
        env={**os.environ, "PYTHONPATH": str(Path(headgate.__file__).parents[1])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A test runner may itself ignore Ctrl-C, and a child would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    eventually((ROOT / "orders" / "part-0").exists, every=0.02, alive=process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=180)
    assert process.returncode == 130
    assert out == ""
    # Whether an order has been acknowledged by then is a matter of chance.
    assert re.match("Sent '30' user records(,| and) '5' item records", err)
    assert len(err.splitlines()) == 1
