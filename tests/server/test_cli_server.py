"""The verbs on a server: what they print, and how they end, is what they do on this machine."""

from __future__ import annotations

import base64
import json
import os
import shlex
import shutil
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import past_jobs
import pytest
import typer
from fake_supervisor import FakeSupervisor
from served import serving
from stored_run import LAST, NOON, facts, local, unpack
from typer.testing import CliRunner, Result

from headgate import Flow, HeadgateError
from headgate._codec import decode, encode
from headgate.checkpoints import savepoint as savepoints
from headgate.checkpoints.catalog import keep
from headgate.cli.app import app
from headgate.cli.parts.running import show_started
from headgate.client.connection import Connection
from headgate.client.server_home import ServerHome
from headgate.connectors.files.folder.topic import TopicFolder
from headgate.connectors.logs import bind, parse_log
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import new_run, write_run
from headgate.jobs.startup.background import Detached
from headgate.jobs.topics.listing import create_topic
from headgate.jobs.values import JobSnapshot, RunOptions
from headgate.jobs.views.job import JobView
from headgate.jobs.views.logs import Log
from headgate.server.security.access import Role
from headgate.server.security.tokens import Token
from headgate.server.settings import ServerSettings

# Of the first dead letter, without the byte it begins at.
LETTER = "20261115T000000-abcdef-0-0"
SECRET = "a-token-for-these-tests"
FLOW = """
from headgate import Flow
flow = Flow("shop")
flow.stream("orders", "id BIGINT").to("out")
"""
VIEW = "a-token-that-only-looks"


@pytest.fixture(scope="module", autouse=True)
def _built_once() -> Iterator[None]:
    """Build the command line once: it takes longer than most verbs here."""
    command = typer.main.get_command(app)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", lambda _app: command)
        yield


class Place(NamedTuple):
    """One home, and the server of it."""

    root: Path
    url: str

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def topics(self) -> str:
        return f"files:{self.root / 'topics'}"

    def job(self, name: str) -> JobFolder:
        return JobFolder(self.home, name)

    def here(self, words: str) -> Result:
        """Run a verb on the home."""
        where = ("--on", self.topics) if _is_on_topics(words) else ("--home", str(self.home))
        return CliRunner().invoke(app, [*shlex.split(words), *where])

    def there(self, words: str, **environment: str) -> Result:
        """Run a verb on the server."""
        command = [*shlex.split(words), "--server", self.url]
        return CliRunner().invoke(app, command, env=environment)


def _is_on_topics(words: str) -> bool:
    return words.startswith(("topics", "tail"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Give a home with a job that has stopped and one that never ran, and a server of it."""
    root = tmp_path_factory.mktemp("place")
    (root / "flows").mkdir()
    (root / "flows" / "flow.py").write_text(FLOW)
    home = JobFolder(root / "home", "shop")
    _write_stopped(home, root)
    JobFolder(root / "home", "young").write_status({"state": "FAILED", "reason": "no Java"})
    log = f"files:{root / 'topics'}"
    create_topic(log, "orders", partitions=2)
    file = root / "topics" / "orders" / "a.jsonl"
    file.write_bytes(b'{"id": 1}\n{"id": "\xc3\xa9"}\n')
    os.utime(file, (NOON.timestamp(), NOON.timestamp()))
    _write_letters(root / "topics")
    settings = ServerSettings(
        home=home.root, flows=root / "flows", on=log, console=False, keeps_up=False
    )
    with serving(settings) as url:
        yield Place(root, url)


def _write_letters(topics: Path) -> None:
    """Write dead letters as the kernel does: of text, of bytes that are none, a long one."""
    lines = []
    for offset, raw in enumerate((b"{", b"\xff\x00", b"long " * 1000)):
        told: dict[str, Any] = {"source": "orders", "topic": "orders", "partition": 0}
        told |= {"offset": offset, "timestamp": 1_763_300_000_000 + offset, "bytes": len(raw)}
        told |= {"code": "BAD_JSON" if offset else "NO_KEY", "reason": "why"}
        lines.append(json.dumps(told | {"raw": base64.b64encode(raw).decode()}).encode())
    folder = TopicFolder(topics / "dead-letters")
    folder.create(1)
    name = "20261115T000000-abcdef-0000000000-00000.jsonl"
    assert name.startswith(LETTER.partition("-0-")[0])
    file = folder.publish(b"".join(line + b"\n" for line in lines), partition=0, name=name)
    os.utime(file, (NOON.timestamp(), NOON.timestamp()))


def _write_stopped(home: JobFolder, root: Path) -> None:
    flow = Flow("shop")
    flow.stream("orders", "id BIGINT").to("out")
    graph = bind(flow.graph(), parse_log(f"files:{root / 'topics'}"))
    (root / "flow.py").write_text(FLOW)
    run = new_run(
        home,
        graph,
        parallelism=2,
        checkpoints=None,
        now=datetime(2026, 11, 15, tzinfo=UTC),
    )
    write_run(home, run)
    options = RunOptions(
        on=f"files:{root / 'topics'}", settings={"retain": {"value": 3, "from": "flag"}}
    )
    home.write_job(run.lineage, flow=str(root / "flow.py"), options=encode(options))
    home.write_status(
        {
            "state": "STOPPED",
            "lineage": run.lineage,
            "lag_bytes": {"orders": 12, "users": 0},
            "lag_s": {"orders": 1.5},
            "inputs": {"orders": 1200},
            "checkpoint": f"chk-{LAST}",
            "at": "2026-11-15T12:00:00+00:00",
        }
    )
    home.add_event(NOON, "RUNNING", attempt=1)
    home.add_event(NOON, "FAILURE", attempt=1, code="QUERY_FAILED", message="it failed")
    home.add_event(NOON, "STOPPED", attempt=1)
    home.driver_output.parent.mkdir(parents=True, exist_ok=True)
    home.driver_output.write_bytes(b"".join(b"line %d\n" % number for number in range(100)))
    run.checkpoint.parent.mkdir(parents=True, exist_ok=True)
    unpack(local(run.checkpoint).parent)
    # The stored run is of a flow with two operators, on topics that were elsewhere.
    story = run.checkpoint.parent / "run.json"
    story.write_text(story.read_text().replace("/srv/shop/topics", str(root / "topics")))
    told: dict[str, Any] = {"operators": (), "state": {}, "tables": {}, "keys": {}}
    told |= {"lineage": run.lineage, "flow": json.loads(graph.to_json())}
    for number in range(LAST - 2, LAST + 1):
        at = NOON + timedelta(minutes=number)
        into = home.checkpoints_folder(run.lineage)
        keep(run.checkpoint, number, into, facts(**told, completed_at=at))
    later = facts(**told, completed_at=NOON + timedelta(hours=1))
    savepoints.create(run.checkpoint, LAST, home.savepoints_folder / "before", later)


READS = [
    "jobs",
    "show shop",
    "show young",
    "lag shop",
    "lag young",
    "checkpoints shop",
    "checkpoints shop --all",
    "checkpoints young",
    "checkpoints shop show chk-19",
    "checkpoints shop show latest",
    "graph shop",
    "graph young",
    "events shop",
    "events young --limit 3",
    "exceptions shop",
    "state shop",
    "state shop --at chk-19",
    "dead-letters shop",
    "dead-letters shop --limit 0",
    "dead-letters shop list --reason BAD_JSON",
    f"dead-letters shop show {LETTER}:0",
    f"dead-letters shop show {LETTER}:159",
    "logs shop --driver -n 3",
    "logs shop --driver -n 0",
    "logs shop --events",
    "logs shop --driver --grep e -n 2",
    "topics",
    "topics list",
    "tail orders",
    "tail orders -n 1",
]


@pytest.mark.parametrize("words", READS)
def test_a_verb_that_looks_prints_the_same(place: Place, words: str) -> None:
    for more in ("", " --json"):
        here, there = place.here(words + more), place.there(words + more)
        assert (here.exit_code, here.stderr) == (0, there.stderr)
        assert there.exit_code == 0
        assert there.stdout == here.stdout
        assert here.stdout or words.endswith("-n 0")


REFUSALS = [
    "show shp",
    "lag shp",
    "checkpoints shp",
    "checkpoints shop show chk-99",
    "checkpoints shop pin nothing",
    "graph shp",
    "events shp",
    "exceptions shp",
    "state shp",
    "state shop --at chk-99",
    # Refused before a reader of state is started.
    "state shop nobody --key 42",
    "state shop nobody --key 42 --history",
    "state shop nobody --rows 5 --at chk-19",
    "state shop nobody --sql 'select 1'",
    "dead-letters shp",
    "dead-letters young",
    "dead-letters shop show 7:7",
    "dead-letters shp replay --all",
    "dead-letters shop replay",
    "logs shop",
    "logs shp",
    "logs shp --grep x",
    "logs shop --driver --level warn",
    "stop shop",
    "stop shp --savepoint",
    "cancel shop",
    "cancel shop --dry-run",
    "cancel shp",
    "delete shp --yes",
    "delete shop --keep-savepoints",
    "prune shp",
    "pause shop",
    "resume shop",
    "start young",
    "start shp",
    "restart young",
    "savepoint shp",
    "savepoint young",
    "restore shp",
    "restore shop --from chk-99 --dry-run",
    "restore shop --at soon --dry-run",
    "restore shop --from chk-19 --at '1m ago'",
    "tail nothing",
]


@pytest.mark.parametrize("words", REFUSALS)
def test_a_verb_that_is_refused_says_the_same(place: Place, words: str) -> None:
    here, there = place.here(f"{words} --json"), place.there(f"{words} --json")
    assert (here.exit_code, here.stdout) == (2, "")
    assert (there.exit_code, there.stdout) == (2, "")
    assert json.loads(there.stderr) == json.loads(here.stderr)


def test_a_dry_run_of_a_restore_says_the_same(place: Place) -> None:
    for words in ("restore shop --from chk-19 --dry-run", "restore shop --dry-run --json"):
        here, there = place.here(words), place.there(words)
        assert here.exit_code == 0, here.stderr
        assert (there.exit_code, there.stdout) == (0, here.stdout)


def test_a_replay_there_tells_the_same(place: Place) -> None:
    for words in ("replay --all --dry-run", "replay --reason BAD_JSON --dry-run --without-key"):
        for more in ("", " --json"):
            here, there = (
                run(f"dead-letters shop {words}{more}") for run in (place.here, place.there)
            )
            assert (there.exit_code, there.stdout) == (here.exit_code, here.stdout)
            assert here.stdout


def test_a_checkpoint_is_pinned_and_unpinned_there(place: Place) -> None:
    for action, pinned in (("pin", True), ("unpin", False)):
        told = json.loads(place.there(f"checkpoints shop {action} chk-19 --json").stdout)
        assert told["pinned"] is pinned
        assert told == json.loads(place.here("checkpoints shop show chk-19 --json").stdout)
    assert place.there("checkpoints shop pin 18").stdout == "chk-18 is pinned\n"
    assert place.there("checkpoints shop unpin 18").stdout == "chk-18 is not pinned\n"


def test_a_savepoint_of_a_job_at_rest_is_taken_there(place: Place) -> None:
    told = json.loads(place.there("savepoint shop --json").stdout)
    assert told.keys() == {"savepoint", "folder", "batch", "bytes"}
    assert (told["batch"], Path(told["folder"]).parent) == (
        LAST,
        place.job("shop").savepoints_folder,
    )
    names = [each["id"] for each in json.loads(place.here("checkpoints shop --json").stdout)]
    assert told["savepoint"] in names


@pytest.mark.parametrize(
    "words",
    ["stop shop --savepoint /tmp/mine", "savepoint shop --to /tmp/mine"],
)
def test_a_folder_of_ones_own_is_nothing_to_a_server(place: Place, words: str) -> None:
    there = place.there(f"{words} --json")
    assert there.exit_code == 2
    assert json.loads(there.stderr)["code"] == "SERVER_FOLDER"


def test_a_running_job_is_paused_resumed_and_stopped_there(place: Place) -> None:
    job = place.job("orders")
    with FakeSupervisor(job):
        assert place.there("pause orders").stdout == "Job 'orders' is PAUSED\n"
        again = [run("pause orders --json") for run in (place.here, place.there)]
        assert [each.exit_code for each in again] == [2, 2]
        assert json.loads(again[1].stderr) == json.loads(again[0].stderr)
        assert json.loads(place.there("resume orders --json").stdout)["state"] == "RUNNING"
        dry = [run("cancel orders --dry-run --json") for run in (place.here, place.there)]
        here, there = (json.loads(each.stdout) | {"uptime_s": 0} for each in dry)
        assert there == here
        stopped = place.there("stop orders --savepoint --drain")
    assert stopped.stdout.splitlines()[0] == "Job 'orders' is STOPPED"
    assert f"in {job.savepoints_folder / 'sp-7'}" in stopped.stdout


def test_stop_and_cancel_give_the_job_as_json(place: Place) -> None:
    shapes = []
    for run in (place.here, place.there):
        with FakeSupervisor(place.job("orders")):
            told = json.loads(run("stop orders --savepoint --json").stdout)
        with FakeSupervisor(place.job("orders")):
            gone = json.loads(run("cancel orders --json").stdout)
        moving = {"since": "", "uptime_s": 0}
        shapes.append((told | moving, gone | moving))
    assert shapes[1] == shapes[0]
    assert shapes[0][0]["savepoint"]["savepoint"] == "sp-7"


def test_a_job_is_pruned_and_deleted_there(place: Place) -> None:
    shapes = []
    for run in (place.here, place.there):
        job = past_jobs.make_job(place.home, "old")
        old = job.run_folder("20260101T000000-abcdef")
        old.mkdir(parents=True)
        (old / "left").write_text("x" * 100)
        past_jobs.keep(job, 3, into=job.savepoints_folder / "sp-3")
        words = ("prune old --dry-run", "prune old", "delete old --dry-run", "delete old --yes")
        said = [run(f"{line}{more}") for line in words[:3] for more in (" --json", "")]
        said.append(run(f"{words[3]} --keep-savepoints --json"))
        assert [answer.exit_code for answer in said] == [0] * 7
        shapes.append([answer.stdout for answer in said])
        assert "old" not in FolderHome(place.home).names()
        assert (job.savepoints_folder / "sp-3").is_dir()
        shutil.rmtree(job.path)
    assert shapes[1] == shapes[0]
    assert json.loads(shapes[0][2])["bytes"] == 100


def test_a_restore_of_a_running_job_is_refused_there(place: Place) -> None:
    with FakeSupervisor(place.job("shop")):
        results = [run("restore shop --from chk-19 --json") for run in (place.here, place.there)]
    assert [each.exit_code for each in results] == [2, 2]
    assert {json.loads(each.stderr)["code"] for each in results} == {"JOB_RUNNING"}
    # What the supervisor of this test wrote is not what the job is.
    _write_status_of_shop(place)


def _write_status_of_shop(place: Place) -> None:
    status = place.job("shop").find_json("status.json") or {}
    lineage = place.job("shop").find_present_run()
    place.job("shop").write_status({**status, "state": "STOPPED", "lineage": lineage})


def test_a_verb_that_waits_tells_of_it_and_gives_up(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.cli.parts.place._NOTE_EVERY", timedelta(seconds=0.5))
    with FakeSupervisor(place.job("deaf"), deaf=True):
        result = place.there("stop deaf --timeout 2500ms")
    lines = result.stderr.splitlines()
    assert (result.exit_code, result.stdout) == (2, "")
    assert lines[0].startswith("job 'deaf' is RUNNING after ")
    assert lines[0].endswith(", batch 7")
    told = "error WAITED_TOO_LONG: cannot wait any longer for job 'deaf' to stop: after 2.5s"
    assert any(line.startswith(told) for line in lines)


# Which server.


@pytest.fixture(scope="module")
def guarded(place: Place) -> Iterator[Place]:
    """Give a server of the same home that needs a token."""
    tokens = (Token(SECRET), Token(VIEW, Role.VIEW))
    with serving(
        ServerSettings(home=place.home, tokens=tokens, console=False, keeps_up=False)
    ) as url:
        yield Place(place.root, url)


def error_of(result: Result) -> dict[str, str]:
    told: dict[str, str] = json.loads(result.stderr)
    return told


def test_a_token_comes_from_the_environment_or_a_file(guarded: Place, tmp_path: Path) -> None:
    assert guarded.there("jobs --json", HEADGATE_TOKEN=SECRET).exit_code == 0
    file = tmp_path / "token"
    file.write_text(f"# of the server\n\noperate:{SECRET}\n")
    words = f"jobs --json --token-file {file}"
    assert guarded.there(words).exit_code == 0
    # What was typed wins.
    assert guarded.there(words, HEADGATE_TOKEN="some-other-token").exit_code == 0


def test_without_the_token_nobody_is_let_in(guarded: Place, tmp_path: Path) -> None:
    missing = guarded.there("jobs --json")
    assert (missing.exit_code, error_of(missing)["code"]) == (2, "TOKEN_MISSING")
    wrong = guarded.there("jobs --json", HEADGATE_TOKEN="some-other-token")
    assert (wrong.exit_code, error_of(wrong)["code"]) == (2, "TOKEN_WRONG")
    assert "some-other-token" not in wrong.stderr
    nowhere = guarded.there(f"jobs --json --token-file {tmp_path / 'none'}")
    assert (nowhere.exit_code, error_of(nowhere)["code"]) == (2, "TOKEN_NOT_READ")
    (tmp_path / "empty").write_text("\n")
    empty = guarded.there(f"jobs --json --token-file {tmp_path / 'empty'}")
    assert error_of(empty)["code"] == "TOKEN_NOT_READ"


def test_who_may_only_look_changes_nothing(guarded: Place) -> None:
    assert guarded.there("show shop --json", HEADGATE_TOKEN=VIEW).exit_code == 0
    refused = guarded.there("checkpoints shop pin chk-19 --json", HEADGATE_TOKEN=VIEW)
    assert (refused.exit_code, error_of(refused)["code"]) == (2, "NOT_ALLOWED")


def test_the_server_may_be_in_the_environment_and_a_home_that_was_typed_wins(
    place: Place, tmp_path: Path
) -> None:
    def run(*words: str) -> Result:
        return CliRunner().invoke(app, words, env={"HEADGATE_SERVER": place.url})

    assert "shop" in run("jobs").stdout
    assert str(tmp_path) in run("jobs", "--home", str(tmp_path)).stdout
    both = run("jobs", "--home", str(tmp_path), "--server", place.url, "--json")
    assert (both.exit_code, error_of(both)["code"]) == (2, "BAD_USAGE")
    assert "--server and --home exclude each other" in both.stderr
    log = f"files:{tmp_path / 'none'}"
    both = run("topics", "--on", log, "--server", place.url, "--json")
    assert "--server and --on exclude each other" in both.stderr
    assert "There are no topics" in run("topics", "--on", log).stdout


def test_a_server_that_is_not_there_is_said_to_be(place: Place) -> None:
    for url, code, ends in (
        ("http://127.0.0.1:1", "SERVER_UNREACHABLE", 3),
        ("127.0.0.1:8270", "BAD_SERVER", 2),
        (f"{place.url}/elsewhere", "PATH_NOT_FOUND", 2),
    ):
        result = CliRunner().invoke(app, ["stop", "shop", "--json", "--server", url])
        assert (result.exit_code, error_of(result)["code"]) == (ends, code)


def test_a_token_that_others_can_read_on_the_way_is_warned_of() -> None:
    # Reserved: nobody has this name.
    words = ["jobs", "--server", "http://headgate.invalid:8270"]
    told = CliRunner().invoke(app, words, env={"HEADGATE_TOKEN": SECRET})
    assert told.stderr.startswith("warning: http://headgate.invalid:8270 is plain HTTP")
    assert SECRET not in told.stderr
    lines = CliRunner().invoke(app, [*words, "--json"], env={"HEADGATE_TOKEN": SECRET})
    first, second = (json.loads(line) for line in lines.stderr.splitlines())
    assert ("warning" in first, second["code"]) == (True, "SERVER_UNREACHABLE")
    assert "warning" not in CliRunner().invoke(app, words).stderr


def test_the_names_of_a_servers_jobs_complete(place: Place) -> None:
    result = CliRunner().invoke(
        app,
        [],
        prog_name="headgate",
        env={
            "_HEADGATE_COMPLETE": "complete_bash",
            "COMP_WORDS": f"headgate show --server {place.url} sh",
            "COMP_CWORD": "4",
        },
    )
    assert result.stdout.split() == ["shop"]


# Following.


def test_a_log_is_followed_there_also_when_it_is_rolled(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.client.server_home._FOLLOW_EVERY", timedelta(milliseconds=20))
    file = place.job("young").driver_output
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"one\ntwo\nthr")
    home = ServerHome(Connection(place.url))
    lines = home.follow_log("young", Log.DRIVER, last=1)
    assert next(lines) == b"two"
    with file.open("ab") as more:
        more.write(b"ee\nfour\n")
    assert [next(lines), next(lines)] == [b"three", b"four"]
    file.unlink()
    later = file.with_suffix(".new")
    later.write_bytes(b"five\n")
    later.rename(file)
    assert next(lines) == b"five"


def test_a_flow_is_submitted_from_the_flows_folder_alone(place: Place) -> None:
    for flow in ("nothing.py", "../flow.py", "/etc/passwd"):
        result = place.there(f"run {flow} --detach --json")
        assert result.exit_code == 2
        assert result.stdout == ""
    result = place.there("run flow.py --json --checkpoints /tmp/x")
    assert error_of(result)["code"] == "SETTING_NOT_ALLOWED"


@pytest.mark.parametrize(
    "words",
    [
        "run flow.py --watch",
        "run flow.py --until-caught-up",
        "run flow.py --at '1m ago'",
        "run flow.py --print -v",
        "restore shop --until-caught-up",
        "topics --count",
        "tail orders -f",
    ],
)
def test_what_only_this_machine_can_follow_is_refused(place: Place, words: str) -> None:
    result = place.there(f"{words} --json")
    assert (result.exit_code, error_of(result)["code"]) == (2, "BAD_USAGE")
    assert "not go with --server" in result.stderr


def started(job: JobFolder) -> Detached:
    status = job.find_json("status.json") or {}
    snapshot = decode(JobSnapshot, status)
    return Detached(snapshot, os.getpid(), job.log_file)


def test_a_job_there_is_shown_until_it_ends(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.cli.parts.running._LOOK_EVERY", timedelta(milliseconds=50))
    home = ServerHome(Connection(place.url))
    with FakeSupervisor(place.job("followed")):
        begun = started(place.job("followed"))
        ender = threading.Timer(0.3, lambda: FolderHome(place.home).stop("followed"))
        ender.start()
        show_started(home, begun, detach=False, as_json=False)
        ender.join()
    said = capsys.readouterr()
    assert said.out.startswith("Job 'followed' was stopped after ")
    assert "enriched-orders" in said.out
    assert said.err.startswith("Job 'followed' starts empty, in run ")


def test_a_job_that_is_cancelled_there_ends_as_an_interrupt(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeSupervisor(place.job("dropped")):
        begun = started(place.job("dropped"))
        FolderHome(place.home).cancel("dropped")
    with pytest.raises(typer.Exit) as raised:
        show_started(ServerHome(Connection(place.url)), begun, detach=False, as_json=True)
    assert raised.value.exit_code == 130
    first, last = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (first["state"], last["state"]) == ("RUNNING", "CANCELED")


def test_a_job_that_fails_there_ends_with_its_own_error(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.cli.parts.running._LOOK_EVERY", timedelta(milliseconds=50))
    failure = {"code": "DRIVER_DIED", "message": "the driver is gone", "root_cause": "killed"}
    failure |= {"hint": "headgate logs failing", "domain": "external"}
    job = place.job("failing")
    with FakeSupervisor(job):
        begun = started(job)
    job.write_status({**encode(begun.snapshot), "state": "FAILED", "last_failure": failure})
    with pytest.raises(HeadgateError, match="the driver is gone") as raised:
        show_started(ServerHome(Connection(place.url)), begun, detach=False, as_json=False)
    assert (raised.value.code, raised.value.exit_code) == ("DRIVER_DIED", 3)
    assert raised.value.hint == "headgate logs failing"


class _Impatient(ServerHome):
    """Somebody who looks twice and presses Ctrl-C."""

    looks = 2

    def job(self, job: str) -> JobView:
        self.looks -= 1
        if self.looks < 0:
            raise KeyboardInterrupt
        return super().job(job)


def test_ctrl_c_leaves_the_job_running_there(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.cli.parts.running._LOOK_EVERY", timedelta(milliseconds=50))
    home = _Impatient(Connection(place.url))
    with FakeSupervisor(place.job("left")):
        show_started(home, started(place.job("left")), detach=False, as_json=False)
        assert json.loads(place.here("show left --json").stdout)["state"] == "RUNNING"
    assert f"Job 'left' continues at {place.url}; headgate stop left ends it" in (
        capsys.readouterr().err
    )
