"""A job whose outputs show in which order rows were written, on any broker."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from headgate import Flow
from headgate.flow.topics import Topic
from headgate.windows import count, every_events, tumbling

KEYS = 200
EVENTS = 12
EVERY = 4
PARTITIONS = 2


def ordered_flow(source: Topic, copy: Topic, plain: Topic, counts: Topic, letters: Topic) -> Flow:
    """Return a flow that copies a stream beside a window of it."""
    flow = Flow("ordered", dead_letters=letters)
    visits = flow.stream(source, "id BIGINT, n BIGINT, at BIGINT", event_time="at", uid="visits")
    visits.to(copy, key="id")
    visits.to(plain)
    window = visits.key_by("id").window("w", tumbling("1h"), early=every_events(EVERY))
    updates = window.aggregate(n=count()).updates
    updates.to(counts, key="id")
    # One kind of outputs beside another: on a broker, and in a folder.
    updates.where("unix_millis(processed_at) % 2 = 0").to("even")
    updates.where("unix_millis(processed_at) % 2 = 1").to("odd")
    return flow


def visits(partition: int) -> list[bytes]:
    """Return the events of a partition: those of a key at adjacent places."""
    return [
        json.dumps({"id": key, "n": n, "at": 1_000 + n}).encode()
        for key in range(partition, KEYS, PARTITIONS)
        for n in range(EVENTS)
    ]


def by_key(values: Iterable[bytes | None]) -> dict[int, list[int]]:
    """Return the numbers of each key in the order of a topic's records."""
    found = defaultdict(list)
    for value in values:
        row = json.loads(value or b"null")
        found[row["id"]].append(row["n"])
    return found


IN_ORDER = {key: list(range(EVENTS)) for key in range(KEYS)}
EARLY = {key: list(range(EVERY, EVENTS + 1, EVERY)) for key in range(KEYS)}


def by_partition(values: Iterable[bytes | None]) -> list[list[bytes]]:
    """Return the records of each partition of the source, in the order of a topic's records."""
    found: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    for value in values:
        row = json.loads(value or b"null")
        found[row["id"] % PARTITIONS].append(json.dumps(row).encode())
    return found


def results(rows: Iterable[dict[str, Any]]) -> list[tuple[int, int, str]]:
    """Return what each result counts, and when it was made."""
    return sorted((row["id"], row["n"], row["processed_at"]) for row in rows)
