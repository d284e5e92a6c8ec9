"""The REST API over stored jobs: what it shows, what it does, and how it refuses."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventually import eventually
from fake_supervisor import FakeSupervisor
from prometheus_client.parser import text_string_to_metric_families
from server_bench import UNHURRIED, TestClient, client, follow, settings, store_job
from stored_run import LAST, NOON

from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import find_intent, write_intent
from headgate.jobs.lifecycle.vocabulary import Verb
from headgate.jobs.metrics.counter_file import write_counters
from headgate.jobs.metrics.counters import Counters, PortRows
from headgate.jobs.metrics.histogram import Histogram
from headgate.server.operations import Operations
from headgate.server.security.limits import Limits, Rate


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a home, flows and topics that all tests share."""
    root = tmp_path_factory.mktemp("served")
    store_job(root)
    return root


@pytest.fixture
def home(place: Path) -> Iterator[JobFolder]:
    """Give the stored job, which is as it was for the next test."""
    found = JobFolder(place / ".headgate", "shop")
    before = found.find_json("status.json")
    yield found
    assert before is not None
    found.write_status({key: value for key, value in before.items() if key != "format"})
    (found.path / "intent.json").unlink(missing_ok=True)


@pytest.fixture(scope="module")
def web(place: Path) -> Iterator[TestClient]:
    with client(settings(place)) as made:
        yield made


def code_of(answer: Any) -> tuple[int, str]:
    told = answer.json()
    assert set(told) - {"command"} == {"code", "message", "hint", "domain"}, told
    return answer.status_code, told["code"]


def test_jobs_are_listed_and_shown_as_the_cli_tells_of_them(web: TestClient) -> None:
    (listed,) = web.get("/v1/jobs").json()["jobs"]
    assert (listed["job"], listed["state"], listed["alive"]) == ("shop", "STOPPED", False)
    shown = web.get("/v1/jobs/shop").json()
    assert shown["state"] == "STOPPED"
    assert shown["flow"].endswith("flows/shop.py")
    assert "checkpoints" not in shown
    assert set(web.get("/v1/jobs/shop/config").json()) == {"job", "flow", "settings"}


@pytest.mark.parametrize(
    "path",
    [
        *("", "/config", "/graph", "/events", "/exceptions", "/samples", "/logs"),
        *("/checkpoints", "/checkpoints/chk-1", "/checkpoint-settings", "/savepoints", "/state"),
        *("/outputs", "/outputs/out/records", "/dead-letters", "/dead-letters/a-1"),
    ],
)
def test_a_job_that_is_not_there_is_told_as_such_everywhere(web: TestClient, path: str) -> None:
    assert code_of(web.get(f"/v1/jobs/shops{path}")) == (404, "JOB_NOT_FOUND")


def test_a_job_whose_folder_is_damaged_hides_no_other(tmp_path: Path) -> None:
    for name in ("fine", "broken"):
        JobFolder(tmp_path / ".headgate", name).write_status({"state": "STOPPED"})
    (tmp_path / ".headgate" / "jobs" / "broken" / "status.json").write_text("{")
    with client(settings(tmp_path)) as web:
        states = {each["job"]: each["state"] for each in web.get("/v1/jobs").json()["jobs"]}
        assert states == {"fine": "STOPPED", "broken": "UNREADABLE"}
        assert code_of(web.get("/v1/jobs/broken")) == (503, "JOB_FILE_BROKEN")
        assert 'state="UNREADABLE"} 1.0' in web.get("/metrics").text


def test_a_stopped_job_has_a_graph_events_failures_and_measurements(web: TestClient) -> None:
    for path in ("graph", "events", "exceptions", "samples"):
        answer = web.get(f"/v1/jobs/shop/{path}")
        assert (answer.status_code, type(answer.json())) == (200, dict), answer.text


def read_pages(web: TestClient, entries: str, **query: Any) -> list[Any]:
    """Return a list of job 'shop' by the convention of all lists that are paged."""
    listed, more = [], True
    while more:
        page = web.get(f"/v1/jobs/shop/{entries}", params=query).json()
        assert len(page[entries]) <= query["limit"]
        listed += page[entries]
        query["after"], more = page["next"], page["more"]
    return listed


def test_events_are_paged_forward(web: TestClient, home: JobFolder) -> None:
    for number in range(7):
        home.add_event(NOON, "CHECKPOINT", checkpoint=f"chk-{number}")
    numbers = [event["number"] for event in read_pages(web, "events", limit=3, after="0")]
    newest = web.get("/v1/jobs/shop/events", params={"limit": 3}).json()
    assert numbers == list(range(1, newest["total"] + 1))
    assert [event["number"] for event in newest["events"]] == numbers[-3:]
    assert newest["more"] is False
    home.add_event(NOON, "CHECKPOINT", checkpoint="chk-7")
    (latest,) = read_pages(web, "events", limit=3, after=newest["next"])
    assert latest["facts"] == {"checkpoint": "chk-7"}


def test_the_last_lines_of_a_log_are_given_and_never_more_than_asked_for(web: TestClient) -> None:
    told = web.get("/v1/jobs/shop/logs", params={"limit": 3}).json()
    assert told["lines"] == ["line 97", "line 98", "line 99"]
    assert len(web.get("/v1/jobs/shop/logs").json()["lines"]) == 100
    assert code_of(web.get("/v1/jobs/shop/logs?log=driver")) == (404, "LOG_NOT_FOUND")
    for bad in (
        "limit=-1",
        "limit=100001",
        "limit=x",
        "lines=3",
        "log=/etc/passwd",
        "after=nowhere",
    ):
        assert web.get(f"/v1/jobs/shop/logs?{bad}").status_code == 400


def test_a_whole_log_is_searched_and_downloaded_without_secrets(tmp_path: Path) -> None:
    home = store_job(tmp_path)
    with home.log_file.open("a") as log:
        log.write("2026-11-18 14:00:00.000 WARN A: password=hunter22\n\tat X\n")
        log.write("2026-11-18 14:00:01.000 INFO A: line\n")
    path = "/v1/jobs/shop/logs"
    with client(settings(tmp_path)) as web:
        found = web.get(f"{path}/search", params={"text": "LINE", "limit": 2}).json()
        assert (found["total"], found["lines"][0]) == (101, "line 99")
        warned = web.get(f"{path}/search?level=warn").json()
        assert [line[-15:] for line in warned["lines"]] == ["A: password=***", "\tat X"]
        saved = web.get(f"{path}/download?level=warn")
        assert saved.text.splitlines() == warned["lines"]
        assert saved.headers["content-type"] == "text/plain; charset=utf-8"
        assert 'filename="shop-spark.log"' in saved.headers["content-disposition"]
        assert len(web.get(f"{path}/download").text.splitlines()) == 103
        for route in ("search", "download"):
            refused = web.get(f"{path}/{route}?log=events&level=warn")
            assert code_of(refused) == (400, "LOG_WITHOUT_LEVELS")
            assert code_of(web.get(f"{path}/{route}?log=driver")) == (404, "LOG_NOT_FOUND")
            assert web.get(f"{path}/{route}?level=loud").status_code == 400


def test_checkpoints_come_newest_first_and_in_pages(web: TestClient) -> None:
    told = web.get("/v1/jobs/shop/checkpoints?limit=2").json()
    assert (told["total"], told["more"]) == (4, True)
    assert [each["id"] for each in told["checkpoints"]] == ["before", "chk-20"]
    listed = read_pages(web, "checkpoints", limit=2)
    assert [each["id"] for each in listed] == ["before", "chk-20", "chk-19", "chk-18"]
    refused = web.get("/v1/jobs/shop/checkpoints?offset=1")
    assert code_of(refused) == (400, "BAD_REQUEST")
    assert "no query parameter 'offset'; its parameters are every_run, after" in refused.text
    nowhere = web.get("/v1/jobs/shop/checkpoints?after=nowhere")
    assert code_of(nowhere) == (400, "BAD_POSITION")
    assert [each["id"] for each in web.get("/v1/jobs/shop/savepoints").json()["savepoints"]] == [
        "before"
    ]
    assert web.get("/v1/jobs/shop/checkpoints/latest").json()["id"] == "before"
    missing = web.get("/v1/jobs/shop/checkpoints/chk-7")
    assert code_of(missing) == (404, "CHECKPOINT_NOT_FOUND")


def test_a_pin_is_put_and_taken_away(web: TestClient, home: JobFolder) -> None:
    path = "/v1/jobs/shop/checkpoints/chk-19/pin"
    assert web.put(path).json()["pinned"] is True
    assert web.get("/v1/jobs/shop/checkpoints/chk-19").json()["pinned"] is True
    assert web.delete(path).json()["pinned"] is False
    assert code_of(web.put("/v1/jobs/shop/checkpoints/chk-7/pin")) == (404, "CHECKPOINT_NOT_FOUND")
    # Ids are unique within a run, which a request can name.
    run = web.get("/v1/jobs/shop/checkpoints/chk-19").json()["run"]
    of_run = web.get("/v1/jobs/shop/checkpoints/chk-19", params={"run": run}).json()
    assert of_run["restore_from"] == f"{run}/chk-19"
    assert web.put(path, params={"run": run}).json()["pinned"] is True
    assert web.delete(path, params={"run": run}).json()["pinned"] is False
    other = web.put(path, params={"run": "20200101T000000-abcdef"})
    assert code_of(other) == (404, "CHECKPOINT_NOT_FOUND")


def test_verbs_are_operations_that_end_as_the_cli_says(web: TestClient, home: JobFolder) -> None:
    with FakeSupervisor(home):
        paused = follow(web, web.post("/v1/jobs/shop/pause"))
        assert (paused["state"], paused["result"]["state"]) == ("DONE", "PAUSED")
        assert follow(web, web.post("/v1/jobs/shop/resume"))["result"]["state"] == "RUNNING"
        taken = follow(web, web.post("/v1/jobs/shop/savepoints", json={}))
        assert taken["result"]["savepoint"] == "sp-7"
        lost = web.post("/v1/jobs/shop/cancel", json={"dry_run": True})
        assert (lost.status_code, lost.json()["deletes_state"]) == (200, False)
        stopped = follow(web, web.post("/v1/jobs/shop/stop", json={"savepoint": True}))
        assert stopped["result"]["state"] == "STOPPED"
        assert stopped["result"]["savepoint"]["savepoint"] == "sp-7"
    assert code_of(web.post("/v1/jobs/shop/stop")) == (409, "JOB_NOT_RUNNING")
    kinds = [each["kind"] for each in web.get("/v1/operations?job=shop").json()["operations"]]
    assert kinds[:4] == ["stop", "savepoint", "resume", "pause"]
    assert web.get("/v1/operations?job=other").json() == {"operations": []}


def test_a_job_is_deleted_after_a_dry_run_says_what_goes_and_what_stays(tmp_path: Path) -> None:
    home = store_job(tmp_path)
    path = "/v1/jobs/shop"
    with client(settings(tmp_path)) as web:
        with FakeSupervisor(home):
            for query in ("", "?dry_run=true"):
                refused = web.delete(path + query)
                assert code_of(refused) == (409, "JOB_RUNNING")
        planned = web.delete(f"{path}?dry_run=true&keep_savepoints=true").json()
        assert [removal["what"].split()[0] for removal in planned["removes"]] == ["run", "logs,"]
        assert planned["dry_run"] is True
        assert planned["bytes"] > 10_000
        assert planned["stays"][0] == f"savepoints in {home.savepoints_folder}"
        assert web.get(path).status_code == 200
        deleted = follow(web, web.delete(f"{path}?keep_savepoints=true"))
        assert (deleted["state"], deleted["kind"]) == ("DONE", "delete")
        assert deleted["result"]["removes"] == planned["removes"]
        assert web.get("/v1/jobs").json() == {"jobs": []}
        assert code_of(web.delete(path)) == (404, "JOB_NOT_FOUND")
        lines = web.get("/v1/audit").json()["lines"]
    assert [(line["what"], line["job"], line["outcome"]) for line in lines] == [
        ("delete", "shop", "JOB_RUNNING"),
        ("delete", "shop", "STARTED"),
        ("delete", "shop", "DONE"),
        ("delete", "shop", "JOB_NOT_FOUND"),
    ]
    assert lines[1]["details"] == {"keep_savepoints": True}
    assert (home.savepoints_folder / "before").is_dir()


def test_what_cannot_be_done_now_is_refused_at_once_and_asks_nothing(
    web: TestClient, home: JobFolder
) -> None:
    known = web.get("/v1/operations").json()
    for verb in ("stop", "cancel", "pause", "resume"):
        assert code_of(web.post(f"/v1/jobs/shop/{verb}")) == (409, "JOB_NOT_RUNNING")
    with FakeSupervisor(home):
        refused = web.post("/v1/jobs/shop/start")
        assert code_of(refused) == (409, "JOB_RUNNING")
        assert refused.json()["message"] == "cannot start job 'shop': it is RUNNING"
        assert code_of(web.post("/v1/jobs", json={"flow": "shop.py"})) == (409, "JOB_RUNNING")
        assert code_of(web.post("/v1/jobs/shop/resume")) == (409, "ILLEGAL_TRANSITION")
        assert code_of(web.post("/v1/jobs/shop/restore", json={})) == (409, "JOB_RUNNING")
        assert find_intent(home) is None
    with FakeSupervisor(home, state="PAUSED", held=True):
        assert code_of(web.post("/v1/jobs/shop/pause")) == (409, "ILLEGAL_TRANSITION")
        assert find_intent(home) is None
    assert web.get("/v1/operations").json() == known


def test_a_request_that_the_job_has_not_read_leaves_the_next_one_to_its_supervisor(
    web: TestClient, home: JobFolder
) -> None:
    with FakeSupervisor(home, deaf=True):
        write_intent(home, Verb.PAUSE, by="another user")
        # It is still RUNNING, and may be paused by the time that it reads this one.
        ended = follow(web, web.post("/v1/jobs/shop/resume"))
        assert (ended["state"], ended["error"]["code"]) == ("FAILED", "JOB_BUSY")
    # Another test asks whether there is an intent.
    (home.path / "intent.json").unlink()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v1/jobs", "limit"),
        ("/v1/jobs/shop", "verbose"),
        ("/v1/jobs/shop/events", "Limit"),
        ("/v1/jobs/shop/checkpoints", "page"),
        ("/v1/operations", "state"),
    ],
)
def test_an_unknown_query_parameter_is_refused_by_name(
    web: TestClient, path: str, name: str
) -> None:
    answer = web.get(path, params={name: "1"})
    assert code_of(answer) == (400, "BAD_REQUEST")
    assert f"no query parameter {name!r}" in answer.json()["message"]
    assert web.get(path).status_code == 200


def test_a_query_parameter_of_a_change_is_refused_and_nothing_is_asked(
    web: TestClient, home: JobFolder
) -> None:
    known = web.get("/v1/operations").json()
    with FakeSupervisor(home):
        answer = web.post("/v1/jobs/shop/stop", params={"drain": "true"})
    assert code_of(answer) == (400, "BAD_REQUEST")
    assert answer.json()["message"].endswith("no query parameter 'drain'; it has none")
    assert web.get("/v1/operations").json() == known


@pytest.mark.parametrize(
    "path", ["/healthz", "/readyz", "/metrics", "/v1/jobs", "/v1/jobs/shop", "/v1/jobs/none"]
)
def test_head_is_answered_like_get_without_a_body(web: TestClient, path: str) -> None:
    got, head = web.get(path), web.head(path)
    assert head.status_code == got.status_code
    assert head.headers["Content-Type"] == got.headers["Content-Type"]
    assert int(head.headers["Content-Length"]) > 0
    assert (head.content, bool(got.content)) == (b"", True)


def test_head_of_a_path_that_only_changes_is_refused(web: TestClient) -> None:
    answer = web.head("/v1/jobs/shop/stop")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


def test_a_crash_loop_is_listed_first_with_its_failures_and_the_last_reason(
    web: TestClient, home: JobFolder
) -> None:
    other = JobFolder(home.root, "a-stopped-job")
    other.write_status({"state": "STOPPED"})
    reason = "attempt 5 failed: DRIVER_DIED it was killed"
    told: dict[str, Any] = {"failures": 5, "reason": reason, "healthy_since": None}
    with FakeSupervisor(home, state="STARTING", **told):
        first, *_ = web.get("/v1/jobs").json()["jobs"]
        shown = web.get("/v1/jobs/shop").json()
    shutil.rmtree(other.path)
    for job in (first, shown):
        assert (job["job"], job["state"], job["uptime_s"]) == ("shop", "STARTING", None)
        assert (job["failing"], job["failures"], job["reason"]) == (True, 5, reason)


def test_a_dry_run_of_a_restore_tells_what_it_would_do_while_the_job_runs(
    web: TestClient, home: JobFolder
) -> None:
    with FakeSupervisor(home):
        answer = web.post("/v1/jobs/shop/restore", json={"from": "chk-19", "dry_run": True})
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert (told["checkpoint"], told["outputs_with_repeats"]) == ("chk-19", ["out", "dead-letters"])
    missing = web.post("/v1/jobs/shop/restore", json={"from": "chk-7", "dry_run": True})
    assert code_of(missing) == (404, "CHECKPOINT_NOT_FOUND")
    both = web.post("/v1/jobs/shop/restore", json={"from": "chk-19", "at": "1m ago"})
    assert code_of(both) == (400, "BAD_REQUEST")


def test_flows_of_the_folder_are_listed_without_running_them(web: TestClient, place: Path) -> None:
    (place / "flows" / "deep").mkdir()
    (place / "flows" / "deep" / "flow.py").write_text(
        "raise SystemExit('ran')\nvisits = Flow('visits')\nhits = Flow(\n    'hits',\n)\n"
    )
    told = web.get("/v1/flows").json()
    found = {each["flow"]: each["job"] for each in told["flows"]}
    assert found["shop.py"] == "shop"
    assert found["deep/flow.py:visits"] == "visits"
    assert found["deep/flow.py:hits"] == "hits"
    assert "retain" in told["settings"]
    assert "driver-memory" not in told["settings"]


def test_a_flow_that_breaks_breaks_its_operation_and_not_the_server(
    web: TestClient, place: Path
) -> None:
    (place / "flows" / "gone.py").write_text("import os\nprint('hello')\nos._exit(3)\n")
    ended = follow(web, web.post("/v1/jobs", json={"flow": "gone.py"}))
    assert (ended["state"], ended["error"]["code"]) == ("FAILED", "FLOW_BROKEN")
    (place / "flows" / "raises.py").write_text("raise ValueError('no such thing')\n")
    ended = follow(web, web.post("/v1/jobs", json={"flow": "raises.py"}))
    assert "no such thing" in ended["error"]["message"]
    assert web.get("/healthz").status_code == 200


def test_a_submit_with_a_setting_that_is_none_is_refused(web: TestClient) -> None:
    answer = web.post("/v1/jobs", json={"flow": "shop.py", "settings": {"retain": "often"}})
    assert code_of(answer) == (400, "BAD_SETTING")
    answer = web.post("/v1/jobs", json={"flow": "shop.py", "settings": {"profile": "none-such"}})
    assert code_of(answer) == (404, "PROFILE_NOT_FOUND")
    answer = web.post("/v1/jobs", json={"flow": "shop.py", "fresh": True, "restore_from": "latest"})
    assert code_of(answer) == (400, "BAD_REQUEST")


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs/shop/start", "/v1/jobs/shop/restart"])
def test_a_choice_for_an_open_batch_that_is_none_is_refused(web: TestClient, path: str) -> None:
    body = {"flow": "shop.py"} if path == "/v1/jobs" else {}
    refused = (400, "BAD_REQUEST")
    assert code_of(web.post(path, json={**body, "open_batch": "drop"})) == refused
    assert code_of(web.post(path, json={**body, "allow_repeats": "yes"})) == refused


def test_topics_of_the_servers_log_are_listed_and_read(web: TestClient, place: Path) -> None:
    folder = place / "topics" / "orders"
    folder.mkdir(parents=True)
    (folder / "0001.jsonl").write_text('{"id": 1}\n{"id": 2}\n')
    assert [each["name"] for each in web.get("/v1/topics").json()["topics"]] == ["orders"]
    told = web.get("/v1/topics/orders/records?limit=1").json()
    assert told == {"topic": "orders", "records": ['{"id": 2}']}
    assert code_of(web.get("/v1/topics/users/records")) == (404, "TOPIC_NOT_FOUND")


def test_a_path_that_is_not_there_and_a_method_that_is_not_are_told_as_json(
    web: TestClient,
) -> None:
    assert code_of(web.get("/v1/nothing")) == (404, "PATH_NOT_FOUND")
    wrong = web.delete("/v1/jobs")
    assert code_of(wrong) == (405, "BAD_REQUEST")
    assert wrong.headers["Allow"] == "GET, HEAD, POST"


def test_figures_are_given_to_prometheus(web: TestClient, home: JobFolder) -> None:
    with FakeSupervisor(home, restarts=2, lag_s={"orders": 1.5}, names={"with-user": "Users"}):
        answer = web.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    found = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    assert found["headgate_records_in_total", "orders", "shop"] == 1200
    assert found["headgate_records_out_total", "enriched-orders", "shop"] == 1190
    assert found["headgate_lag_bytes", "orders", "shop"] == 4096
    assert found["headgate_lag_seconds", "orders", "shop"] == 1.5
    assert found["headgate_state_rows", "Users", "shop", "with-user"] == 40
    assert found["headgate_job_state", "RUNNING", "shop"] == 1
    assert found["headgate_job_state", "FAILED", "shop"] == 0
    assert found["headgate_job_restarts_total", "UNKNOWN", "shop"] == 2
    assert found["headgate_job_up", "shop"] == 1
    assert ("headgate_job_uptime_seconds", "shop") in found


def test_histograms_and_counters_by_port_are_given_to_prometheus(
    web: TestClient, home: JobFolder
) -> None:
    ages = Histogram((0.5, 1.0), (3, 2, 1), 9.5)
    ports = {
        name: PortRows(operator, output, rows)
        for name, operator, output, rows in (
            ("w.late", "w", "late", 4),
            ("w.rows", "w", "rows", 9),
            ("w!", "w", "!", 2),
        )
    }
    write_counters(home, Counters(latency=ages, ports=ports, phase_seconds={"waiting": 1.5}))
    text = web.get("/metrics").text
    (home.path / "counters.json").unlink()
    for line in (
        'headgate_record_latency_seconds_bucket{job="shop",le="0.5"} 3.0',
        'headgate_record_latency_seconds_bucket{job="shop",le="1.0"} 5.0',
        'headgate_record_latency_seconds_bucket{job="shop",le="+Inf"} 6.0',
        'headgate_record_latency_seconds_sum{job="shop"} 9.5',
        'headgate_operator_late_records_total{job="shop",name="",operator="w"} 4.0',
        'headgate_operator_dead_letters_total{job="shop",name="",operator="w"} 2.0',
        'headgate_batch_phase_seconds_total{job="shop",phase="waiting"} 1.5',
    ):
        assert line in text.splitlines()
    rows = [line for line in text.splitlines() if line.startswith("headgate_operator_records_out")]
    assert [line.rpartition(" ")[2] for line in rows] == ["4.0", "9.0"]


def test_a_scrape_reads_no_folder_of_checkpoints_and_no_samples(
    web: TestClient, home: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    really_open = Path.open

    def noted(file: Path, *args: Any, **options: Any) -> Any:
        opened.append(file.relative_to(home.path).as_posix() if home.path in file.parents else "")
        return really_open(file, *args, **options)

    monkeypatch.setattr(Path, "open", noted)
    web.get("/metrics")
    files = sorted(file for file in opened if file)
    assert files.count("status.json") <= 2
    assert not [file for file in files if "samples" in file]
    # The facts of the newest checkpoint alone, and only until they are known.
    assert {file.split("/")[-2] for file in files if "/checkpoints/" in file} <= {f"chk-{LAST}"}


def test_the_checkpoints_duration_is_among_the_figures(web: TestClient) -> None:
    text = web.get("/metrics").text
    # The time that its keeping took, not that of its batch.
    assert 'headgate_checkpoint_duration_seconds{job="shop"} 0.03' in text


def test_probes_tell_that_the_server_is_well(web: TestClient) -> None:
    assert web.get("/healthz").json() == {"status": "ok", "problems": []}
    assert web.get("/readyz").json() == {"status": "ok", "problems": []}


def test_a_server_whose_session_cannot_be_read_is_not_ready(tmp_path: Path) -> None:
    folder = tmp_path / ".headgate" / "server"
    folder.mkdir(parents=True)
    (folder / "session.json").write_text("{")
    with client(settings(tmp_path, keeps_up=True)) as web:
        eventually(lambda: web.get("/readyz").status_code == 503, every=0.01)
        assert web.get("/readyz").json()["problems"] == ["jobs are not looked after"]
        assert web.get("/v1/jobs").status_code == 200


def test_a_server_of_one_job_shows_no_other_and_takes_none(tmp_path: Path) -> None:
    for name in ("shop", "other"):
        JobFolder(tmp_path / ".headgate", name).write_status({"state": "STOPPED"})
    with client(settings(tmp_path, only="shop")) as web:
        assert [each["job"] for each in web.get("/v1/jobs").json()["jobs"]] == ["shop"]
        assert code_of(web.get("/v1/jobs/other")) == (404, "JOB_NOT_FOUND")
        assert code_of(web.post("/v1/jobs/other/start")) == (404, "JOB_NOT_FOUND")
        assert code_of(web.post("/v1/jobs", json={"flow": "other.py"})) == (400, "FLOWS_NOT_SERVED")
        assert 'job="other"' not in web.get("/metrics").text


def test_too_many_actions_are_refused_with_when_to_come_back(place: Path) -> None:
    limits = Limits(requests=UNHURRIED.requests, actions=Rate(2, 0.01))
    with client(settings(place, limits=limits)) as web:
        path = "/v1/jobs/shop/checkpoints/chk-19/pin"
        answers = [web.put(path) for _ in range(3)]
        assert [each.status_code for each in answers] == [200, 200, 429]
        assert int(answers[2].headers["Retry-After"]) > 0
        assert web.get("/v1/jobs").status_code == 200


def test_the_description_has_every_route_with_its_errors(web: TestClient) -> None:
    schema = web.get("/v1/openapi.json").json()
    text = json.dumps(schema)
    assert "422" not in text
    assert not re.search(r"HTTPValidationError", text)
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            if path.startswith("/v1/"):
                assert {"400", "401", "403", "404", "429"} <= set(operation["responses"]), path
            assert operation.get("description"), path
    for page in ("/docs", "/redoc"):
        assert web.get(page).status_code == 404


def test_the_page_of_routes_has_every_route_and_no_other(web: TestClient) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "rest.md").read_text()
    listed = set(re.findall(r"(?:GET|POST|DELETE) `(/[^`?]+)", page))
    assert listed == set(web.get("/v1/openapi.json").json()["paths"])


def test_the_last_thousand_operations_are_remembered() -> None:
    operations = Operations()
    first = operations.do("pin", "shop", "me", lambda: {"pin": 1})
    for _ in range(1_001):
        last = operations.do("pin", "shop", "me", lambda: {"pin": 2})
    assert operations.get(last.id).result == {"pin": 2}
    assert len(operations.list()) <= 1_002
    with pytest.raises(Exception, match="OPERATION_NOT_FOUND"):
        operations.get(first.id)


@pytest.mark.parametrize(
    ("number", "code"), [(errno.ENOSPC, "DISK_FULL"), (errno.EACCES, "NO_ACCESS")]
)
def test_a_refusal_of_the_system_has_the_code_that_commands_have(
    place: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: str
) -> None:
    def refuse(*_: Any, **_more: Any) -> None:
        raise OSError(number, os.strerror(number), str(place / "secret-folder"))

    monkeypatch.setattr(FolderHome, "jobs", refuse)
    with client(settings(place)) as made:
        answer = made.get("/v1/jobs")
        assert (answer.status_code, answer.json()["code"]) == (503, code)
        assert "secret-folder" not in answer.text
        # Waiting helps if the disk is full.
        assert ("Retry-After" in answer.headers) is (code == "DISK_FULL")


def test_an_operation_without_room_on_the_disk_fails_with_the_code_of_commands() -> None:
    def refuse() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/jobs/shop/checkpoint.json")

    operations = Operations()
    with pytest.raises(OSError, match="No space left"):
        operations.do("pin", "shop", "me", refuse)
    (failed,) = operations.list()
    assert failed.error is not None
    assert (failed.error.code, failed.error.retryable) == ("DISK_FULL", True)
