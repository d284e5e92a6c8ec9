"""A method that does not exist is explained with the way to write it, and stays missing."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest

from headgate import Flow, HeadgateError, windows
from headgate.functions.keyed import Context, KeyedProcess
from headgate.jobs.flow_file import load_flow


class Echo(KeyedProcess[Any, Any]):
    def on_event(self, event: Any, ctx: Context[Any]) -> None:
        ctx.emit(event)


def objects() -> dict[str, Any]:
    flow = Flow("shop")
    orders = flow.stream("orders", "id BIGINT, price DOUBLE, at BIGINT", event_time="at")
    keyed = orders.key_by("id")
    windowed = keyed.window("w", windows.tumbling("1m"))
    table = flow.table("users", "id BIGINT", key="id")
    return {
        "stream": orders,
        "table": table,
        "keyed": keyed,
        "windowed": windowed,
        "processed": keyed.process("p", Echo(), schema="id BIGINT"),
        "updates": windowed.aggregate(n=windows.count()),
        "enriched": orders.enrich("e", table, on="id", into="user"),
        "deduped": orders.dedupe("d", by="id", within="1h"),
        "joined": orders.join("j", orders.where("price > 1"), on="id", within="1h"),
    }


@pytest.mark.parametrize(
    ("kind", "name", "written"),
    [
        ("stream", "merge", ".union("),
        ("stream", "apply", ".map('clean'"),
        ("stream", "flatMap", ".flat_map("),
        ("stream", "process", ".key_by("),
        ("keyed", "select", ".process("),
        ("processed", "to", ".out.to("),
        ("table", "where", ".enrich("),
        ("keyed", "aggregate", ".window("),
        ("windowed", "to", ".aggregate("),
        ("updates", "to", ".updates.to("),
        ("updates", "filter", ".updates.filter("),
        ("enriched", "to", ".matched.to("),
        ("deduped", "select", ".unique.select("),
        ("joined", "to", ".matched.to("),
        ("keyed", "join", ".process("),
        ("table", "join", ".enrich("),
    ],
)
def test_a_missing_method_is_explained(kind: str, name: str, written: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        getattr(objects()[kind], name)
    assert caught.value.code == "NO_SUCH_METHOD"
    assert caught.value.message.startswith(f"cannot call {name!r} on ")
    assert written in caught.value.hint
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.code, again.hint) == (caught.value.code, caught.value.hint)


@pytest.mark.parametrize("kind", list(objects()))
def test_an_object_of_a_flow_stays_a_plain_object(kind: str) -> None:
    value = objects()[kind]
    assert not hasattr(value, "merge")
    assert not hasattr(value, "no_such_name")
    assert getattr(value, "merge", 1) == 1
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'") as caught:
        _ = value.no_such_name
    assert not isinstance(caught.value, HeadgateError)
    assert type(copy.copy(value)) is type(value)
    assert type(copy.deepcopy(value)) is type(value)


@pytest.mark.parametrize("kind", list(objects()))
def test_no_existing_method_is_called_missing(kind: str) -> None:
    value = type(objects()[kind])
    fields = set(value.__dataclass_fields__)
    assert not set(value._instead) & (fields | {n for n in dir(value) if not n.startswith("_")})


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("stream.merge(stream)", "NO_SUCH_METHOD"),
        ("stream.select('nobody')", "UNKNOWN_COLUMN"),
        ("stream.to('postgres://me:secret@host/db')", "BAD_NAME"),
    ],
)
def test_an_error_of_a_flow_shows_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, code: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_flow.py").write_text(
        "from headgate import Flow\n"
        "flow = Flow('x')\n"
        f"stream = flow.stream('in', 'n BIGINT')\n\n{line}\n"
    )
    with pytest.raises(HeadgateError) as caught:
        load_flow("my_flow.py")
    assert caught.value.code == code
    assert caught.value.message.endswith(" (line 5)")
    assert caught.value.hint
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "written"),
    [
        ("postgres://me:secret@host/db", "Postgres("),
        ("mysql://me:secret@host/db", "Kafka Connect"),
        ("kafka://host:9092/orders", "--on kafka://"),
        ("pulsar+ssl://host:6651", "--on pulsar+ssl://"),
        ("file:///data/orders", "Files("),
    ],
)
def test_an_address_in_place_of_a_topic_is_explained(address: str, written: str) -> None:
    stream = objects()["stream"]
    for act in (lambda: stream.to(address), lambda: Flow("x").stream(address, "n BIGINT")):
        with pytest.raises(HeadgateError) as caught:
            act()
        assert caught.value.code == "BAD_NAME"
        assert "it is an address" in caught.value.message
        assert written in caught.value.hint
        assert "secret" not in str(caught.value)
