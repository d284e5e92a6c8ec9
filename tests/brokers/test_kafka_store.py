"""The store's flow on embedded topics and on Kafka: one file, the same outputs, nothing lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker_shop import BrokerShop
from kafka_broker import KafkaBroker
from shop import JOB, OUTPUTS, Shop


@pytest.mark.long
def test_the_same_flow_gives_the_same_outputs_on_embedded_topics_and_on_kafka(
    tmp_path: Path, own_kafka: KafkaBroker
) -> None:
    embedded = Shop(tmp_path / "embedded")
    kafka = BrokerShop(tmp_path / "kafka-shop", own_kafka)
    kafka.set_up()
    for shop in (embedded, kafka):
        shop.folder.mkdir(exist_ok=True)
        shop.produce(0, 20_000, deletes=0.05, updates=200)
        shop.headgate("run", shop.flow, "--on", shop.on, "--until-caught-up")
        shop.assert_exactly_once()
    for name in OUTPUTS:
        assert kafka.output(name) == embedded.output(name), name
        assert kafka.output(name).total() > 0, name
    assert kafka.count_letters() == embedded.count_letters() > 0
    told = kafka.headgate("audit", JOB)
    assert (told["ok"], told["lost"], told["doubled"]) == (True, 0, 0)
    by_key = kafka.headgate("audit", JOB, "--key", "invoiceId,lineItemId")
    assert (by_key["ok"], by_key["lost"], by_key["doubled"]) == (True, 0, 0)
