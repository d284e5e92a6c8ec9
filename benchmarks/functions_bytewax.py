"""A running total in Bytewax with recovery, as its documentation writes it; run by `bytewax.run`.

The environment has the servers, the topic to read and the one to write, and the time between two snapshots is that of
the command line.
"""

from __future__ import annotations

import json
import os

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSinkMessage, KafkaSource, KafkaSourceMessage
from bytewax.connectors.kafka import operators as kop
from bytewax.dataflow import Dataflow

SERVERS = os.environ["BENCH_SERVERS"].split(",")


def key_and_visit(message: KafkaSourceMessage) -> tuple[str, dict]:
    """Return a visit with its key."""
    visit = json.loads(message.value)
    return visit["visit_id"], visit


def count(total: int | None, visit: dict) -> tuple[int, dict]:
    """Return the new total, and the row of an event."""
    total = (total or 0) + 1
    return total, {"visit_id": visit["visit_id"], "total": total}


def to_message(keyed: tuple[str, dict]) -> KafkaSinkMessage:
    """Return a row as a record."""
    key, row = keyed
    return KafkaSinkMessage(key.encode(), json.dumps(row, separators=(",", ":")).encode())


flow = Dataflow("totals")
source = KafkaSource(SERVERS, [os.environ["BENCH_VISITS"]], tail=False, batch_size=10_000)
read = op.input("visits", flow, source)
keyed = op.map("key", read, key_and_visit)
totals = op.stateful_map("totals", keyed, count)
kop.output("out", op.map("row", totals, to_message), brokers=SERVERS, topic=os.environ["BENCH_TOPIC"])
