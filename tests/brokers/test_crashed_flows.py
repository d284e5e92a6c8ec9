"""A random flow on two logs that crashes at a random point writes what plain Python makes of it.

Outputs are on embedded topics and on Kafka. `HEADGATE_SEED` chooses other flows, and
`HEADGATE_CRASH_EXAMPLES` how many.
"""

from __future__ import annotations

import base64
import json
import os
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, bag
from eventually import eventually
from kafka_broker import KafkaBroker

from headgate import Flow
from headgate.connectors import Files, Kafka
from headgate.flow.topics import Topic
from headgate.windows import count, every_events, tumbling

EXAMPLES = int(os.environ.get("HEADGATE_CRASH_EXAMPLES", "1"))
# With the fixed seed the first example crashes at the second one.
POINTS = ("state-committed", "in-transaction", "task-committed", "epoch-committed")
KINDS = ("windowed", "enriched", "split")
EVERY = 3
NOON = 1_767_268_800_000
RECORDS = 600
KEYS = 12
LIMIT_S = 400.0
MAX_BATCH = 4096

Row = dict[str, Any]


@dataclass
class Example:
    """A flow, its input, and what Python makes of it.

    Attributes:
        kind: What the flow does between its input and its outputs.
        on_kafka: The outputs that are on Kafka; the others are embedded topics.
        point: Where the job crashes, once `after` batches were committed.
    """

    name: str
    kind: str
    point: str
    after: int
    odd: int
    failing: int
    known: frozenset[int]
    on_kafka: frozenset[str]
    records: list[bytes] = field(default_factory=list)

    @classmethod
    def draw(cls, seed: int, number: int) -> Example:
        """Return an example: the same for the same seed."""
        draw = random.Random(f"{seed}-{number}")
        made = cls(
            name=f"crash-{seed}-{number}",
            kind=KINDS[number % len(KINDS)],
            point=POINTS[(seed + number) % len(POINTS)],
            after=draw.randint(0, 2),
            odd=draw.randint(2, 5),
            failing=draw.randint(0, 30),
            known=frozenset(draw.sample(range(KEYS), KEYS // 2)),
            # Letters are on either log, and the other two never on one.
            on_kafka=frozenset({draw.choice(["even", "odd"]), draw.choice(["", "dead-letters"])}),
        )
        for place in range(RECORDS):
            row = {"id": place, "k": draw.choice([None, *range(KEYS)]), "v": draw.randint(0, 30)}
            row["at"] = NOON + place
            broken = draw.random() < 0.03
            made.records.append(b"{no json %d" % place if broken else json.dumps(row).encode())
        return made

    def flow(self, topics: dict[str, Topic]) -> Flow:
        """Return the flow with its outputs on two logs."""
        flow = Flow(self.name, dead_letters=topics["dead-letters"])
        schema = "id BIGINT NOT NULL, k BIGINT, v BIGINT NOT NULL, at BIGINT NOT NULL"
        rows = flow.stream("in", schema, event_time="at")
        rows = rows.with_columns(share=f"100 DIV (v - {self.failing})")
        match self.kind:
            case "windowed":
                known = rows.where("k IS NOT NULL").key_by("k")
                counts = known.window("per-key", tumbling("1d"), early=every_events(EVERY))
                updates = counts.aggregate(hits=count()).updates
                # A replay that took another time would move rows from one log to the other.
                for name, parity in (("even", 0), ("odd", 1)):
                    half = updates.where(f"unix_millis(processed_at) % 2 = {parity}")
                    half.select("k", "hits").to(topics[name])
            case "enriched":
                table = flow.table("names", "k BIGINT NOT NULL, name STRING", key="k", load="first")
                found = rows.enrich("known", table, on="k", into="row")
                found.matched.select("id", "share", "row.name AS name").to(topics["even"])
                found.missing.to(topics["odd"])
            case _:
                rows.where(f"id % {self.odd} = 0").to(topics["even"])
                rows.where(f"id % {self.odd} <> 0").to(topics["odd"])
        return flow

    def expected(self) -> dict[tuple[str, ...], Counter[str]]:
        """Return what outputs must hold together, in plain Python."""
        good: list[Row] = []
        letters: list[Row] = []
        for record in self.records:
            try:
                row = json.loads(record)
            except ValueError:
                letters.append({"code": "BAD_JSON", "raw": record.decode()})
                continue
            by = row["v"] - self.failing
            if by == 0:
                letters.append({"code": "EXPRESSION_FAILED", "raw": row["id"]})
            else:
                good.append({**row, "share": int(100 / by)})
        rows = self._counts(good) if self.kind == "windowed" else self._split(good)
        made = {("dead-letters",): letters, **rows}
        return {names: bag(rows) for names, rows in made.items()}

    def _counts(self, good: list[Row]) -> dict[tuple[str, ...], list[Row]]:
        hits = Counter(row["k"] for row in good if row["k"] is not None)
        told = [
            {"k": k, "hits": n}
            for k, all_of in hits.items()
            for n in range(EVERY, all_of + 1, EVERY)
        ]
        return {("even", "odd"): told}

    def _split(self, good: list[Row]) -> dict[tuple[str, ...], list[Row]]:
        made: dict[tuple[str, ...], list[Row]] = {("even",): [], ("odd",): []}
        for row in good:
            if self.kind == "split":
                made["odd" if row["id"] % self.odd else "even",].append(row)
            elif row["k"] in self.known:
                name = f"name {row['k']}"
                made["even",].append({"id": row["id"], "share": row["share"], "name": name})
            else:
                made["odd",].append(row)
        return made


@dataclass
class Stage:
    """Where an example is run."""

    bench: Bench
    kafka: KafkaBroker
    crashes: Path
    example: Example

    def topics(self) -> dict[str, Topic]:
        """Return the topics of the outputs, and make those that are on Kafka."""
        made: dict[str, Topic] = {}
        for name in ("even", "odd", "dead-letters"):
            if name in self.example.on_kafka:
                topic = f"{self.example.name}-{name}"
                self.kafka.make_topic(topic, partitions=3)
                made[name] = Kafka(topic, servers=self.kafka.address)
            else:
                made[name] = Files(name, dir=str(self.bench.topics / name))
        return made

    def crash(self, flow: Path) -> None:
        """Run the job in a process of its own until it dies at the point."""
        # Of so few bytes, that there are several batches.
        child = self.bench.spawn(flow, parallelism=2, max_batch=MAX_BATCH)
        point = self.crashes / self.example.point

        def is_due() -> bool:
            return child.poll() is not None or self.commits() >= self.example.after

        try:
            if eventually(is_due, within=LIMIT_S, every=0.02) and child.poll() is None:
                point.touch()
            told, _ = child.communicate(timeout=LIMIT_S)
        finally:
            child.kill()
        assert not point.exists(), f"the job never got to {self.example.point}: {told}"
        assert child.returncode != 0, told

    def commits(self) -> int:
        """Return how many batches are committed."""
        return len(list(self.bench.home.glob("jobs/*/runs/*/checkpoint/commits/[0-9]*")))

    def seen(self, name: str) -> Counter[str]:
        """Return what a reader finds in an output."""
        if name in self.example.on_kafka:
            values = self.kafka.values(f"{self.example.name}-{name}")
            rows = [json.loads(value) for value in values if value is not None]
        else:
            rows = self.bench.read(name)
        return bag(map(_essence, rows) if name == "dead-letters" else rows)


def _essence(letter: Row) -> Row:
    """Return what is compared of a dead letter."""
    raw = base64.b64decode(letter["raw"]).decode()
    of_row = letter["code"] == "EXPRESSION_FAILED"
    return {"code": letter["code"], "raw": json.loads(raw)["id"] if of_row else raw}


@pytest.mark.parametrize("number", range(EXAMPLES))
def test_a_flow_on_two_logs_that_crashes_anywhere_writes_what_python_makes_of_it(
    seed: int, number: int, tmp_path: Path, kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = Example.draw(seed, number)
    print(f"example {number}: {example.kind}, {example.point} after {example.after} batches")
    stage = Stage(Bench(tmp_path), kafka, tmp_path / "crashes", example)
    stage.crashes.mkdir()
    monkeypatch.setenv("HEADGATE_CRASH_DIR", str(stage.crashes))
    if example.kind == "enriched":
        stage.bench.put("names", ({"k": k, "name": f"name {k}"} for k in sorted(example.known)))
    for first in range(0, RECORDS, 100):
        stage.bench.put("in", example.records[first : first + 100])
    flow = stage.bench.flow_file(example.flow(stage.topics()))
    stage.crash(flow)
    stage.bench.run(flow, parallelism=2, max_batch=MAX_BATCH)
    for names, wanted in example.expected().items():
        found = sum(map(stage.seen, names), Counter[str]())
        assert found == wanted, f"{names}: lost {wanted - found}, more than once {found - wanted}"
