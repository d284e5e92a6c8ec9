"""A flow's graph survives JSON exactly, and JSON that is no graph is refused by code."""

from __future__ import annotations

import contextlib
import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Console, Files, Flow, Graph, HeadgateError, Stream, Table, Topic
from headgate.flow.schemas.schema import Field, ListOf, Primitive, Schema, Struct, Type
from headgate.flow.topics import topic_from_json, topic_to_json

KEYS = st.sampled_from(["bigint", "int", "string", "boolean", "date", "decimal(10,2)"])
COLUMNS = st.sampled_from(["a", "b", "amount", "odd name", "naïve", "x.y"])
DEFAULTS = st.none() | st.integers(-(2**63), 2**63 - 1)
CONDITIONS = (
    st.text(min_size=1, max_size=20).filter(lambda text: text.strip() != "").map("1 = {}".format)
)


@st.composite
def schemas(draw: st.DrawFn, key: str) -> Schema:
    names = draw(st.lists(COLUMNS, unique=True, max_size=4))
    number = Primitive("bigint")
    inner = Struct((Field("deep", number, True, draw(DEFAULTS)),))
    types: st.SearchStrategy[Type] = st.sampled_from(
        [number, Primitive("string"), ListOf(number, False), inner]
    )
    added = (
        Field(name, draw(types), draw(st.booleans()), *draw(st.just(()) | st.tuples(DEFAULTS)))
        for name in names
    )
    time = Field("at", Primitive("timestamp"), False)
    return Schema((Field("key", Primitive(key), False), time, *added))


def topics(name: str) -> st.SearchStrategy[str | Topic]:
    return st.just(name) | st.builds(lambda path: Files(name, dir=path), st.text(min_size=1))


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    """Build a flow as a user would: sources, then operators on any stream there is, then ends."""
    flow = Flow(
        draw(st.from_regex(r"[a-z0-9][a-z0-9-]{0,8}", fullmatch=True)),
        dead_letters=draw(topics("rejected")),
    )
    key = draw(KEYS)
    open_ends: list[Stream] = []
    for number in range(draw(st.integers(1, 2))):
        lateness = st.timedeltas(timedelta(0), timedelta(days=9))
        timed: dict[str, Any] = draw(
            st.just({}) | lateness.map(lambda late: {"event_time": "at", "out_of_orderness": late})
        )
        topic = draw(topics(f"in-{number}"))
        open_ends.append(flow.stream(topic, draw(schemas(key)), **timed))
    for number in range(draw(st.integers(0, 6))):
        stream = open_ends.pop(draw(st.integers(0, len(open_ends) - 1)))
        open_ends += draw(grown(flow, stream, key, number))
    for number, stream in enumerate(open_ends):
        topic = draw(topics(f"out-{number}") | st.just(Console(rows=3, name=f"out-{number}")))
        stream.to(topic)
    return flow


@st.composite
def grown(draw: st.DrawFn, flow: Flow, stream: Stream, key: str, number: int) -> list[Stream]:
    kind = draw(st.sampled_from(["where", "select", "with", "transform", "enrich", "split"]))
    match kind:
        case "where":
            return [stream.where(draw(CONDITIONS))]
        case "select":
            return [stream.select("key", "at", f"hash(key) AS h{number}")]
        case "with":
            return [stream.with_columns(**{f"c{number}": draw(CONDITIONS)})]
        case "transform" if "." not in str(stream.port) and stream.port.node.startswith("in-"):
            schema = draw(st.none() | schemas(key))
            return [stream.transform("some.module:function", schema)]
        case "enrich":
            table: Table = flow.table(
                draw(topics(f"table-{number}")),
                draw(schemas(key)),
                key="key",
                version=draw(st.sampled_from([None, "at"])),
                load=draw(st.sampled_from(["first", "together"])),
            )
            both = stream.enrich(f"enrich-{number}", table, on="key", into=f"row{number}")
            return [both.matched, both.missing] if draw(st.booleans()) else [both.matched]
        case _:
            return [stream, stream]


@given(flows())
def test_a_graph_reads_back_equal_from_its_json(flow: Flow) -> None:
    graph = flow.graph()
    again = Graph.from_json(graph.to_json())
    assert again == graph
    assert again.to_json() == graph.to_json()
    assert again.schemas() == graph.schemas()


@given(flows())
def test_a_flow_read_from_json_is_checked_and_the_same(flow: Flow) -> None:
    again = Flow.from_json(flow.graph().to_json())
    assert again.graph() == flow.graph()
    assert again.explain() == flow.explain()


@given(flows())
def test_every_node_comes_after_those_it_takes_rows_from(flow: Flow) -> None:
    seen: set[str] = set()
    for holder in json.loads(flow.graph().to_json())["nodes"]:
        assert "input" not in holder or holder["input"]["node"] in seen
        seen.add(holder["id"])


def a_document() -> dict[str, Any]:
    flow = Flow("shop")
    orders = flow.stream("orders", "id BIGINT, userId BIGINT, at TIMESTAMP", event_time="at")
    users = flow.table("users", "id BIGINT, name STRING", key="id")
    enriched = orders.transform("m:f").enrich("with-user", users, on="userId", into="user")
    enriched.matched.where("id > 1").with_columns(x="id + 1").select("id", "x").to(Console())
    enriched.missing.to(Files("lost", dir="lost"))
    document: dict[str, Any] = json.loads(flow.graph().to_json())
    return document


def paths_of(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, child in inner:
        found.append((*path, key))
        if isinstance(child, dict | list):
            found += paths_of(child, (*path, key))
    return found


@given(st.data())
def test_a_document_with_one_value_changed_reads_or_is_refused_by_code(data: st.DataObject) -> None:
    document = a_document()
    *way, last = data.draw(st.sampled_from(paths_of(document)))
    holder: Any = document
    for step in way:
        holder = holder[step]
    wrong = st.sampled_from([None, True, 7, "", "x", "orders", [], [1], {}, {"kind": "files"}])
    if data.draw(st.booleans()):
        holder[last] = data.draw(wrong)
    else:
        del holder[last]
    # A change may be harmless; what must not happen is any other error.
    with contextlib.suppress(HeadgateError):
        Flow.from_json(json.dumps(document)).graph()


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", "{}", '{"format": 1}'])
def test_text_that_is_no_graph_is_refused(text: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        Graph.from_json(text)
    assert caught.value.code == "FLOW_BAD_JSON"
    assert caught.value.hint


def test_the_json_carries_its_format_and_another_is_refused() -> None:
    document = a_document()
    assert document["format"] == 1
    with pytest.raises(HeadgateError) as caught:
        Graph.from_json(json.dumps({**document, "format": 2}))
    assert caught.value.code == "FLOW_FORMAT_UNSUPPORTED"


def test_a_topic_of_an_unknown_kind_is_refused_with_the_kinds_there_are() -> None:
    with pytest.raises(HeadgateError) as caught:
        topic_from_json({"kind": "carrier-pigeon", "name": "x"})
    assert caught.value.code == "TOPIC_UNKNOWN_KIND"
    assert caught.value.hint == "known: console, files, folder, kafka, logical, postgres, pulsar"


def test_each_topic_is_tagged_with_its_kind() -> None:
    assert topic_to_json(Files("orders", dir="data")) == {
        "kind": "files", "name": "orders", "dir": "data",
    }  # fmt: skip
    assert topic_to_json(Console(rows=5)) == {"kind": "console", "name": "console", "rows": 5}


@pytest.mark.parametrize(
    ("place", "value", "code"),
    [
        (("input", "node"), "nowhere", "PORT_UNKNOWN"),
        (("input", "node"), "users", "PORT_UNKNOWN"),
        (("table",), "orders", "PORT_UNKNOWN"),
        (("table",), "with-user", "PORT_UNKNOWN"),
        (("on",), ["nothing"], "UNKNOWN_COLUMN"),
        (("id",), "with user", "BAD_NAME"),
    ],
)
def test_a_graph_edited_into_nonsense_reads_and_makes_no_flow(
    place: tuple[str, ...], value: object, code: str
) -> None:
    document = a_document()
    holder = next(each for each in document["nodes"] if each["operator"] == "enrich")
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = value
    graph = Graph.from_json(json.dumps(document))
    with pytest.raises(HeadgateError) as caught:
        Flow.from_graph(graph)
    assert caught.value.code == code


def test_a_graph_of_an_older_release_reads_with_the_defaults_of_today() -> None:
    document = a_document()
    graph = Graph.from_json(json.dumps(document))
    for node in document["nodes"]:
        late = {
            "source": ("meta", "idle_after", "event_time_unit", "format"),
            "output": ("key", "format"),
        }
        for name in late.get(node["operator"], ()):
            del node[name]
    assert Graph.from_json(json.dumps(document)) == graph
