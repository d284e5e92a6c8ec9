"""A running total in Bytewax with recovery, as its documentation writes it, for `bytewax.run`.

The environment has the servers, and the topics to read and to write.
"""

from __future__ import annotations

import json
import os
from typing import Any

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSinkMessage, KafkaSource, KafkaSourceMessage
from bytewax.connectors.kafka import operators as kop
from bytewax.dataflow import Dataflow

SERVERS = os.environ["BENCH_SERVERS"].split(",")


def key_and_visit(message: KafkaSourceMessage) -> tuple[str, dict[str, Any]]:
    """Return a visit with its key."""
    visit = json.loads(message.value)
    return visit["visit_id"], visit


def count(total: int | None, visit: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Return the new total, and the row of an event."""
    total = (total or 0) + 1
    return total, {"visit_id": visit["visit_id"], "total": total}


def to_message(keyed: tuple[str, dict[str, Any]]) -> KafkaSinkMessage:
    """Return a row as a record."""
    key, row = keyed
    return KafkaSinkMessage(key.encode(), json.dumps(row, separators=(",", ":")).encode())


flow = Dataflow("totals")
source = KafkaSource(SERVERS, [os.environ["BENCH_VISITS"]], tail=False, batch_size=10_000)
read = op.input("visits", flow, source)
keyed = op.map("key", read, key_and_visit)
totals = op.stateful_map("totals", keyed, count)
kop.output(
    "out", op.map("row", totals, to_message), brokers=SERVERS, topic=os.environ["BENCH_TOPIC"]
)
