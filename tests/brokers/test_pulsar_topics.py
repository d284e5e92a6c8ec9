"""The verbs on topics of a real Pulsar broker: made, listed, shown, read, followed and set up."""

from __future__ import annotations

import inspect
import json
import shlex
import subprocess
import uuid
from pathlib import Path

import pytest
from cli_runs import run, run_json
from pulsar.schema import Integer, JsonSchema, Long, String
from pulsar.schema import Record as PulsarRecord
from pulsar_broker import PulsarBroker

from headgate._artifacts import get_java, resolve, spark_jars
from headgate._clock import SystemClock
from headgate._codec import encode
from headgate._kernel.connector_jars import CONNECTORS
from headgate.cli.topics import topics
from headgate.connectors.logs import parse_log
from headgate.connectors.pulsar.descriptor import PulsarLog
from headgate.connectors.pulsar.runs.positions import Subscription
from headgate.connectors.pulsar.topics.topics import PulsarTopics
from headgate.connectors.registry import get_connector

NOTHING = {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}
FLOW = """
from dataclasses import dataclass
from headgate import Flow

@dataclass
class Order:
    id: int
    user: int
    note: str | None = None

flow = Flow("small")
users = flow.table("users", "id BIGINT NOT NULL, name STRING", key="id")
orders = flow.stream("orders", Order)
enriched = orders.enrich("with-user", users, on="user", into="who")
enriched.matched.to("out")
enriched.missing.select("id", "id + 1 AS following").to("missing")
"""

JAVA = """
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.impl.schema.JSONSchema;

public class Publish {
  public static class User { public long id; public String name; }
  public static class Order { public int id; public int user; public String note; }

  public static void main(String[] args) throws Exception {
    User user = new User();
    user.id = 1;
    user.name = "from Java";
    Order order = new Order();
    order.id = 1;
    order.user = 1;
    order.note = "from Java";
    try (PulsarClient client = PulsarClient.builder().serviceUrl(args[0]).build()) {
      client.newProducer(JSONSchema.of(User.class)).topic(args[1]).create().send(user);
      client.newProducer(Schema.JSON(Order.class)).topic(args[2]).create().send(order);
    }
  }
}
"""


class User(PulsarRecord):  # type: ignore[misc]
    id = Long(required=True)
    name = String()


class Order(PulsarRecord):  # type: ignore[misc]
    id = Integer(required=True)
    user = Integer(required=True)
    note = String()


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def new_name() -> str:
    return f"t-{uuid.uuid4().hex[:12]}"


def topics_of(broker: PulsarBroker) -> PulsarTopics:
    log = parse_log(broker.url)
    assert isinstance(log, PulsarLog)
    return PulsarTopics(log)


def test_create_makes_a_topic_once_as_it_was_asked_for(pulsar: PulsarBroker) -> None:
    name, on = new_name(), ("--on", pulsar.url)
    args = ("topics", "create", name, "--partitions", "3", "--retention", "2d", "--deduplicate")
    made, again = run(*args, *on), run(*args, *on)
    assert made.stdout == (
        f"Created topic '{name}' with 3 partitions, deduplicated, kept for 2d, "
        f"in {pulsar.service}\n"
    )
    assert again.stdout.startswith(f"Topic '{name}' exists already, with 3 partitions")
    path = f"persistent/public/default/{name}"
    assert pulsar.ask("GET", f"{path}/deduplicationEnabled") is True
    assert pulsar.ask("GET", f"{path}/retention")["retentionTimeInMinutes"] == 2 * 24 * 60

    other = run("topics", "create", name, "--partitions", "4", "--compact", *on)
    assert other.exit_code == 2
    assert other.stderr.startswith(f"error TOPIC_EXISTS: cannot create topic '{name}'")
    assert "it has 3 partitions instead of 4, it is not compacted" in other.stderr


def test_a_topic_of_which_nothing_is_said_keeps_its_records_for_a_while(
    pulsar: PulsarBroker,
) -> None:
    namespace = f"public/{new_name()}"
    pulsar.ask("PUT", f"namespaces/{namespace}")
    pulsar.ask("POST", f"namespaces/{namespace}/retention", NOTHING)
    on = pulsar.url.replace("?", f"/{namespace}?")
    made = run_json("topics", "create", "first", "--on", on)
    assert (made["partitions"], made["retention"], made["deduplicated"]) == (1, "7d", False)
    table = run_json("topics", "create", new_name(), "--compact", "--on", pulsar.url)
    assert (table["compacted"], table["retention"]) == (True, "infinite")


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("topics", "create", "t", "--partitions", "0"), "BAD_PARTITIONS"),
        (("topics", "create", "t", "--replication", "2"), "TOPIC_OPTION_UNSUPPORTED"),
        (("topics", "create", "t", "--retention", "soon"), "BAD_DURATION"),
        (("topics", "show", "not-there-at-all"), "TOPIC_NOT_FOUND"),
        (("tail", "not-there-at-all"), "TOPIC_NOT_FOUND"),
        (("tail", "not-there-at-all", "-f"), "TOPIC_NOT_FOUND"),
    ],
)
def test_what_pulsar_cannot_do_is_a_code_a_message_and_a_hint(
    pulsar: PulsarBroker, args: tuple[str, ...], code: str
) -> None:
    result = run(*args, "--on", pulsar.url)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error {code}: cannot ")
    assert "\nhint: " in result.stderr


def test_asking_for_a_topic_does_not_make_it_and_the_hint_does(pulsar: PulsarBroker) -> None:
    # Unlike the names of other tests' topics: a hint would ask whether one of them was meant.
    name = f"asked-for-and-not-there-{uuid.uuid4().hex[:4]}"
    hint = run("tail", name, "--on", pulsar.url).stderr.splitlines()[1].removeprefix("hint: ")
    assert name not in run("topics", "--on", pulsar.url).stdout
    assert run(*shlex.split(hint)[1:]).stdout.startswith(f"Created topic '{name}'")
    assert f"did you mean '{name}'?" in run("tail", f"{name}x", "--on", pulsar.url).stderr


def test_list_and_show_tell_what_pulsar_knows(pulsar: PulsarBroker) -> None:
    name = pulsar.make_topic(partitions=2)
    pulsar.ask("POST", f"persistent/public/default/{name}/retention", NOTHING)
    pulsar.send(name, ["1", "2", "3"], partition=1)
    pulsar.send(name, map(str, range(100)), partition=0, batching_enabled=True)
    listed = json.loads(run("topics", "--json", "--count", "--on", pulsar.url).stdout)
    (found,) = (each for each in listed if each["name"] == name)
    assert (found["partitions"], found["records"], found["retention"]) == (2, 103, "0s")
    assert 4 <= found["entries"] < 103
    assert found["newest"] is not None
    assert not any(each["name"].startswith("__") for each in listed)

    shown = run_json("topics", "show", name, "--on", pulsar.url)
    second = shown["parts"][1]
    assert (second["first"].split(":")[1], second["next"].split(":")[1]) == ("0", "3")
    assert (second["ledgers"], second["entries"]) == (1, 3)
    text = run("topics", "show", name, "--on", pulsar.url).stdout
    assert "kept       until read" in text
    assert "repeats    stored: deduplication is off" in text


def test_tail_gives_the_newest_records_of_all_partitions(pulsar: PulsarBroker) -> None:
    name = pulsar.make_topic(partitions=2)
    pulsar.send(name, map(str, range(50)), partition=0, batching_enabled=True)
    pulsar.send(name, ["a", None], partition=1, key="k")
    pulsar.send(name, ["b"], partition=0)
    lines = run("tail", name, "-n", "5", "--on", pulsar.url).stdout.split()
    assert lines == ["48", "49", "a", "null", "b"]
    assert len(run("tail", name, "-n", "99", "--on", pulsar.url).stdout.split()) == 53
    assert run("tail", name, "-n", "0", "--on", pulsar.url).stdout == ""
    assert run("tail", pulsar.make_topic(), "--on", pulsar.url).stdout == ""


def test_a_follower_gets_the_last_records_then_each_new_one(pulsar: PulsarBroker) -> None:
    name = pulsar.make_topic(partitions=0)
    pulsar.send(name, ["1", "2", "3"])
    following = topics_of(pulsar).follow(name, last=2, clock=SystemClock())
    pulsar.send(name, ["4"])
    assert [next(following) for _ in range(3)] == [b"2", b"3", b"4"]
    pulsar.send(name, [None, "5"], batching_enabled=True)
    assert [next(following) for _ in range(2)] == [b"null", b"5"]


def test_the_examples_of_topics_work(pulsar: PulsarBroker) -> None:
    names = {"orders": pulsar.make_topic(), "enriched": new_name()}
    lines = [
        line.strip()
        for each in (topics.list_all, topics.show_one, topics.create, topics.tail)
        for line in (inspect.getdoc(each) or "").splitlines()
        if "pulsar://localhost:6650" in line
    ]
    assert len(lines) == 4
    service, _, query = pulsar.url.partition("?")
    for line in lines:
        name, *args = shlex.split(line.replace("pulsar://localhost:6650", service))
        assert name == "headgate"
        on = f"{args[-1]}?{query}"
        assert run(*(names.get(arg, arg) for arg in args[:-1]), on).exit_code == 0, line


def test_setup_makes_what_a_flow_needs_and_tells_what_was_there(pulsar: PulsarBroker) -> None:
    namespace = f"{new_name()}/shop"
    on = ("--on", pulsar.url.replace("?", f"/{namespace}?"))
    Path("flow.py").write_text(FLOW)
    first = run_json("setup", "flow.py", "--partitions", "2", *on)
    shown = [
        (each["role"], each["name"], each["retention"], each["deduplicated"], each["schema"])
        for each in first["topics"]
    ]
    assert shown == [
        ("stream", "orders", "7d", False, None),
        ("table", "users", "infinite", False, None),
        ("output", "out", "7d", True, "JSON"),
        # What `id + 1` is, only Spark can tell.
        ("output", "missing", "7d", True, None),
        ("dead letters", "dead-letters", "7d", True, "JSON"),
    ]
    assert not any(each["existed"] or each["warnings"] for each in first["topics"])
    schema = json.loads(pulsar.ask("GET", f"schemas/{namespace}/out/schema")["data"])
    kinds = [each["type"] for each in schema["fields"]]
    assert kinds[:3] == ["long", "long", ["null", "string"]]

    path = f"persistent/{namespace}"
    pulsar.ask("POST", f"{path}/out/deduplicationEnabled", False)
    pulsar.ask("POST", f"{path}/users/retention", NOTHING)
    Path("flow.py").write_text(FLOW.replace("note: str", "note: int"))
    again = run("setup", "flow.py", *on)
    assert "Topic 'out' existed, and its deduplication was turned on" in again.stdout
    assert "got a JSON schema" not in again.stdout, "orders and users are only read"
    assert again.stderr.splitlines() == [
        "warning: topic 'users' existed, and it has no retention, so records may be deleted "
        "before they are read",
        "warning: topic 'out' existed, and its schema has column 'note' as string instead of long",
    ]
    assert pulsar.ask("GET", f"{path}/out/deduplicationEnabled") is True


def test_clients_publish_with_schemas_of_their_own_to_topics_of_setup(pulsar: PulsarBroker) -> None:
    namespace = f"{new_name()}/shop"
    on = ("--on", pulsar.url.replace("?", f"/{namespace}?"))
    Path("flow.py").write_text(FLOW)
    run_json("setup", "flow.py", *on)
    topics = [f"persistent://{namespace}/{name}" for name in ("users", "orders")]
    publish_from_java(pulsar.service, *topics)
    client = pulsar.client()
    try:
        users = client.create_producer(topics[0], schema=JsonSchema(User))
        users.send(User(id=2, name="from Python"))
        orders = client.create_producer(topics[1], schema=JsonSchema(Order))
        orders.send(Order(id=2, user=2, note="from Python"))
    finally:
        client.close()
    for name, column in (("users", "name"), ("orders", "note")):
        rows = map(json.loads, pulsar.values(name, namespace=namespace))
        assert {row["id"]: row[column] for row in rows} == {1: "from Java", 2: "from Python"}
    # The schemas that the clients registered fit the flow, also where Java's columns are narrower.
    read = run_json("setup", "flow.py", *on)["topics"][:2]
    assert [(topic["schema"], topic["warnings"]) for topic in read] == [("JSON", [])] * 2


def publish_from_java(service: str, users: str, orders: str) -> None:
    """Send a user and an order with Java's own schemas of their classes."""
    of_spark = [
        next(spark_jars().glob(f"{name}-2*.jar")) for name in ("slf4j-api", "jackson-annotations")
    ]
    jars = [*resolve(CONNECTORS["pulsar"]), *of_spark]
    source = Path("Publish.java")
    source.write_text(JAVA)
    command = [get_java("test"), "-XX:TieredStopAtLevel=1", "-cp", ":".join(map(str, jars))]
    ended = subprocess.run(
        [*command, str(source), service, users, orders], capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, ended.stderr


def test_a_subscription_leaves_unread_exactly_what_comes_next(pulsar: PulsarBroker) -> None:
    name = pulsar.make_topic(partitions=2)
    for value in range(5):
        pulsar.send(name, [str(value)], partition=0)
    seen, full = topics_of(pulsar), f"persistent://public/default/{name}"
    shown = seen.show(name, count=False, last_files=0)
    ledger = encode(shown.parts[0])["next"].split(":")[0]

    def unread(*following: str) -> int:
        held = {"partitioned": True, "next": following}
        subscription.move(json.dumps({"format": 1, "topics": {full: held}}))
        (found,) = seen.show(name, count=False, last_files=0).subscriptions or ()
        assert found.name == "my-job"
        return found.unread

    subscription = Subscription(seen.log, "my-job")
    assert unread(f"{ledger}:2", "-1:0") == 3
    assert unread(f"{ledger}:5", "-1:0") == 0
    assert unread(f"{ledger}:4", "-1:0") == 1
    # A ledger that is gone, one that is yet to come, and a partition that never was.
    assert unread("0:7", "-1:0") == 5
    assert unread("999999:0", "-1:0", "-1:0") == 0
    subscription.close()


def test_a_subscription_does_not_bring_back_a_topic_that_is_gone(pulsar: PulsarBroker) -> None:
    name = new_name()
    held = {"partitioned": True, "next": ["3:1"]}
    position = {"format": 1, "topics": {f"persistent://public/default/{name}": held}}
    subscription = Subscription(topics_of(pulsar).log, "my-job")
    subscription.move(json.dumps(position))
    subscription.close()
    assert name not in run("topics", "--json", "--on", pulsar.url).stdout


def test_a_position_holds_where_the_job_has_its_subscription(pulsar: PulsarBroker) -> None:
    name, job = pulsar.make_topic(partitions=0), f"job-{uuid.uuid4().hex[:8]}"
    topic = topics_of(pulsar).log.bind(name)
    positions = get_connector(topic).positions

    def position(entry: str, of: str = topic.kernel_name) -> str:
        return json.dumps({"format": 1, "topics": {of: {"partitioned": False, "next": [entry]}}})

    # Nothing has been read: it is read from its beginning on anywhere.
    assert positions.find_mismatch(topic, position("-1:0"), job) is None
    told = f"no topic there has the job's subscription '{job}'"
    assert positions.find_mismatch(topic, position("3:5"), job) == told
    other = position("3:5", of="persistent://shop/eu/" + name)
    assert "the job had read persistent://shop/eu/" in str(
        positions.find_mismatch(topic, other, job)
    )
    subscription = Subscription(topic.log, job)
    subscription.move(position("3:5"))
    subscription.close()
    assert positions.find_mismatch(topic, position("3:5"), job) is None
    assert positions.find_mismatch(topic, position("3:5"), "another") is not None
