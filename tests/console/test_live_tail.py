"""The newest rows of outputs on real brokers, as the console shows them while they come."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

import pytest
from audited_job import make_job
from console_shop import Store, serving, visiting
from eventually import eventually
from kafka_broker import KafkaBroker
from playwright.sync_api import Browser
from pulsar_broker import PulsarBroker

from headgate import Flow
from headgate.connectors.logs import bind, parse_log

TOPIC = f"t-{uuid.uuid4().hex[:12]}"
HOSTILE = "<img src=x onerror='window.hacked = 1'>"


@pytest.fixture(scope="module")
def address(
    tmp_path_factory: pytest.TempPathFactory, kafka: KafkaBroker, pulsar: PulsarBroker
) -> Iterator[str]:
    """Give the address of a server with a job on each broker; neither job runs."""
    store = Store(tmp_path_factory.mktemp("tail"))
    for name, url in (("on-kafka", kafka.url), ("on-pulsar", pulsar.url)):
        flow = Flow(name)
        flow.stream("input", "n BIGINT").to(TOPIC)
        make_job(store.home, bind(flow.graph(), parse_log(url)), {})
    with serving(store) as found:
        yield found


@pytest.mark.parametrize("name", ["kafka", "pulsar"])
def test_rows_on_a_broker_are_seen_to_come(
    browser: Browser, address: str, kafka: KafkaBroker, pulsar: PulsarBroker, name: str
) -> None:
    broker: KafkaBroker | PulsarBroker = kafka if name == "kafka" else pulsar
    with visiting(browser, address) as visitor:
        visitor.open(f"/jobs/on-{name}/outputs?output={TOPIC}")
        rows = visitor.page.get_by_role("region", name="Newest rows", exact=True).last
        rows.get_by_text("No rows yet.").wait_for()
        broker.make_topic(TOPIC, partitions=2)
        broker.send(TOPIC, [json.dumps({"n": n}) for n in range(60)], key="first")
        eventually(lambda: rows.get_by_role("button").count() == 50, what="the newest rows")
        assert '{"n": 59}' in rows.get_by_role("button").first.inner_text()
        assert "first" in rows.get_by_role("button").first.inner_text()
        broker.send(TOPIC, [json.dumps({"text": HOSTILE})])
        rows.get_by_role("button").filter(has_text=HOSTILE).click()
        rows.locator("pre").filter(has_text=HOSTILE).wait_for()
        # Who reads one is not disturbed by others, until the tail goes on.
        broker.send(TOPIC, [json.dumps({"n": "newest"})])
        visitor.page.get_by_role("button", name="Continue", exact=True).click()
        rows.get_by_role("button").filter(has_text="newest").wait_for()
        assert visitor.page.evaluate("window.hacked") is None
        assert visitor.errors == []
