"""What a client makes of a server's answers: values, operations, and answers it cannot read."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from told_server import Told, telling

from headgate import HeadgateError, connect
from headgate._codec import encode
from headgate.client.connection import Connection
from headgate.client.server_home import ServerHome
from headgate.interactive.job import Job
from headgate.jobs.control.requests import Patience
from headgate.jobs.state.values import HistoryEntry, StateHistory, StateRows, StateValue
from headgate.jobs.values import Consent, OpenBatch

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
VALUE = StateValue(
    job="shop",
    uid="with-user",
    key="42",
    checkpoint="chk-7",
    moment=NOON,
    found=True,
    deleted=False,
    value={"name": "Ann"},
)
HISTORY = StateHistory(
    job="shop",
    uid="with-user",
    key="42",
    entries=(
        HistoryEntry(checkpoint="chk-7", moment=NOON, value={"n": 1}, change="first"),
        HistoryEntry(
            checkpoint="now",
            moment=NOON,
            value={"n": 2},
            change="changed",
            differences={"n": (1, 2)},
        ),
    ),
)
ROWS = StateRows(
    job="shop",
    checkpoint="now",
    moment=NOON,
    columns=("id", "name"),
    types=("bigint", "string"),
    rows=((1, "Ann"), (2, None)),
    cut=True,
)


@pytest.fixture
def told() -> Iterator[Told]:
    with telling() as server:
        yield server


@pytest.fixture
def home(told: Told) -> ServerHome:
    return ServerHome(Connection(told.url))


def test_a_handle_asks_a_server_as_it_asks_a_folder(told: Told) -> None:
    job = Job(connect(told.url).home, "shop")
    told.answers = [(200, json.dumps(encode(VALUE)))]
    assert job.state("with-user").get("a b") == {"name": "Ann"}
    assert job.state("with-user").get((1, "b"), at="chk-7") == {"name": "Ann"}
    told.answers = [(200, json.dumps(encode(HISTORY)))]
    assert "changed" in repr(job.state("with-user").history(42))
    told.answers = [(200, json.dumps(encode(ROWS)))]
    rows = job.state("with-user").rows(limit=2)
    assert rows == [{"id": 1, "name": "Ann"}, {"id": 2, "name": None}]
    assert [each.path for each in told.asked] == [
        "/v1/jobs/shop/state/with-user/value?key=%22a+b%22",
        "/v1/jobs/shop/state/with-user/value?key=%5B1%2C+%22b%22%5D&at=chk-7",
        "/v1/jobs/shop/state/with-user/history?key=42",
        "/v1/jobs/shop/state/with-user/rows?limit=2",
    ]


def test_a_token_that_can_be_read_on_the_way_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADGATE_TOKEN", raising=False)
    with pytest.warns(UserWarning, match="anyone on the network path can read the token"):
        connect("http://streams.example.org", token="secret-secret-secret")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        connect("http://streams.example.org")
        connect("https://streams.example.org", token="secret-secret-secret")


def test_state_is_asked_for_by_operator_and_key(told: Told, home: ServerHome) -> None:
    told.answers = [(200, json.dumps(encode(VALUE)))]
    assert home.state.look_up("shop", "with-user", '"a b"', at="chk-7") == VALUE
    told.answers = [(200, json.dumps(encode(HISTORY)))]
    assert home.state.history("shop", "with-user", "42") == HISTORY
    told.answers = [(200, json.dumps(encode(ROWS)))]
    assert home.state.first_rows("shop", "with-user", limit=2) == ROWS
    assert home.state.query("shop", "select 1", uid="with-user") == ROWS
    assert [each.path for each in told.asked] == [
        "/v1/jobs/shop/state/with-user/value?key=%22a+b%22&at=chk-7",
        "/v1/jobs/shop/state/with-user/history?key=42",
        "/v1/jobs/shop/state/with-user/rows?limit=2",
        "/v1/jobs/shop/state/sql",
    ]
    asked = {"sql": "select 1", "uid": "with-user", "at": None, "limit": 1000}
    assert json.loads(told.asked[-1].body) == asked


def operation(state: str, **more: Any) -> str:
    known = {"id": "op-1", "kind": "stop", "state": state, "progress": "", "result": None}
    return json.dumps(known | {"error": None} | more)


def test_an_operation_is_looked_at_until_it_is_over(told: Told, home: ServerHome) -> None:
    result = {"savepoint": "sp-7", "folder": "/f", "batch": 7, "bytes": 9}
    told.answers = [
        (202, operation("RUNNING")),
        (200, operation("RUNNING")),
        (200, operation("DONE", result=result)),
    ]
    taken = home.take_savepoint("shop", to=None, patience=Patience())
    assert encode(taken) == result
    assert [each.path for each in told.asked] == [
        "/v1/jobs/shop/savepoints",
        *["/v1/operations/op-1"] * 2,
    ]


def test_an_operation_that_failed_is_the_error_it_failed_with(told: Told, home: ServerHome) -> None:
    error = {"code": "JOB_ENDED", "message": "m", "hint": "h", "domain": "external"}
    told.answers = [(202, operation("RUNNING")), (200, operation("FAILED", error=error))]
    with pytest.raises(HeadgateError) as raised:
        home.take_savepoint("shop", to=None, patience=Patience())
    assert (raised.value.code, raised.value.exit_code, raised.value.hint) == ("JOB_ENDED", 3, "h")


def test_a_flow_that_takes_too_long_to_start_is_said_to_hold(told: Told, home: ServerHome) -> None:
    told.answers = [(202, operation("RUNNING"))]
    with pytest.raises(HeadgateError, match="stays valid") as raised:
        home.submit("flow.py", {"retain": 3}, patience=Patience(timedelta(milliseconds=100)))
    assert raised.value.code == "WAITED_TOO_LONG"
    assert json.loads(told.asked[0].body) == {
        "flow": "flow.py",
        "settings": {"retain": 3},
        "fresh": False,
        "restore_from": None,
    }


def test_each_submit_has_a_key_of_its_own_which_a_repetition_keeps(
    told: Told, home: ServerHome
) -> None:
    error = {"code": "JOB_ENDED", "message": "m", "hint": "h", "domain": "external"}
    told.answers = [(0, ""), (202, operation("FAILED", error=error))]
    for _ in range(2):
        with pytest.raises(HeadgateError, match="JOB_ENDED"):
            home.submit("flow.py", {})
    lost, repeated, other = [asked.key for asked in told.asked]
    assert lost is not None
    assert lost == repeated
    assert other not in (None, lost)


def test_what_the_user_agrees_to_is_sent_and_nothing_where_that_is_nothing(
    told: Told, home: ServerHome
) -> None:
    consent = Consent(open_batch=OpenBatch.REPEAT, allow_repeats=True)
    error = {"code": "JOB_ENDED", "message": "m", "hint": "h", "domain": "external"}
    asks: list[Callable[[], object]] = [
        lambda: home.start("shop", consent=consent),
        lambda: home.restart("shop", patience=Patience(), consent=consent),
        lambda: home.start("shop"),
    ]
    for ask in asks:
        told.answers = [(202, operation("FAILED", error=error))]
        with pytest.raises(HeadgateError):
            ask()
    agreed = {"open_batch": "repeat", "allow_repeats": True}
    assert [json.loads(each.body) for each in told.asked] == [agreed, agreed, {}]


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (lambda home: home.jobs(), []),
        (lambda home: home.jobs(), {"jobs": [{"job": "shop"}]}),
        (lambda home: home.details("shop"), {"job": "shop"}),
        (lambda home: home.checkpoints("shop"), {"checkpoints": {}}),
        (lambda home: home.checkpoint("shop", "chk-1"), {"id": "chk-1"}),
        (lambda home: home.state.history("shop", "a", "1"), {"entries": 3}),
        (lambda home: home.dead_letters("shop", reason=None, limit=1), {"letters": [{}]}),
        (lambda home: home.list_topics(), {"topics": ["orders"]}),
    ],
)
def test_an_answer_of_another_version_is_said_to_be(
    told: Told, home: ServerHome, ask: Callable[[ServerHome], Any], answer: Any
) -> None:
    told.answers = [(200, json.dumps(answer))]
    with pytest.raises(HeadgateError, match="of the same version") as raised:
        ask(home)
    assert (raised.value.code, raised.value.exit_code) == ("SERVER_UNKNOWN", 3)


def test_checkpoints_of_many_pages_are_one_list(
    told: Told, home: ServerHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.client.server_home._PAGE", 2)

    def page(*numbers: int, more: bool = True) -> tuple[int, str]:
        found = [checkpoint(number) for number in numbers]
        following = f"chk-{numbers[-1]}"
        return 200, json.dumps({"checkpoints": found, "next": following, "more": more})

    told.answers = [page(4, 3), page(2), page(1, more=False)]
    assert [each.id for each in home.checkpoints("shop")] == [
        f"chk-{number}" for number in range(1, 5)
    ]
    afters = [each.path.partition("&after=")[2] for each in told.asked]
    assert afters == ["", "chk-3", "chk-2"]


def test_a_checkpoint_of_an_earlier_run_is_asked_for_by_both_names(
    told: Told, home: ServerHome
) -> None:
    told.answers = [(200, json.dumps(checkpoint(3)))]
    assert home.checkpoint("shop", "first/chk-3").source == "first/chk-3"
    told.answers = [(200, operation("DONE", result=checkpoint(3)))]
    home.pin("shop", "first/chk-3", pinned=True)
    home.pin("shop", "chk-3", pinned=True)
    assert [each.path for each in told.asked] == [
        "/v1/jobs/shop/checkpoints/chk-3?run=first",
        "/v1/jobs/shop/checkpoints/chk-3/pin?run=first",
        "/v1/jobs/shop/checkpoints/chk-3/pin",
    ]


def checkpoint(number: int) -> dict[str, Any]:
    return {
        "id": f"chk-{number}",
        "status": "COMPLETED",
        "kind": "checkpoint",
        "run": "first",
        "pinned": False,
        "folder": f"/f/chk-{number}",
        "problems": [],
        "rows": None,
        "batch": number,
        "completed_at": (NOON + timedelta(minutes=number)).isoformat(),
        "duration_ms": 5,
        "sources": {},
        "watermark": None,
        "state": {},
        "full_bytes": 1,
        "new_bytes": 1,
        "parallelism": 2,
        "files": 3,
    }
