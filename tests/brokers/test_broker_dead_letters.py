"""Dead letters on real brokers: found, and their records sent again as they were."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from audited_job import make_job
from kafka_broker import KafkaBroker
from pulsar_broker import PulsarBroker

from headgate import Flow, HeadgateError
from headgate.connectors.contract.places import PlacedRecord, Places
from headgate.connectors.logs import bind, parse_log
from headgate.connectors.registry import get_connector
from headgate.jobs.dead_letters import replay as replaying
from headgate.jobs.dead_letters.replay import Replayed, ReplayProgress, ReplayRequest
from headgate.jobs.folder_home import FolderHome

LIMIT = 256 * 1024


class Shop:
    """A job's folder made by hand, whose topics are on a broker; letters as the kernel writes."""

    def __init__(self, root: Path, url: str) -> None:
        self.root = root
        self.orders, self.letters = (f"t-{uuid.uuid4().hex[:12]}" for _ in range(2))
        flow = Flow("shop", dead_letters=self.letters)
        flow.stream(self.orders, "n BIGINT NOT NULL", uid="orders").to(f"{self.orders}-out")
        self.graph = bind(flow.graph(), parse_log(url))
        make_job(root, self.graph, {})

    @property
    def source(self) -> Places:
        topic = self.graph.streams()[0].topic
        return get_connector(topic).open_places(topic)

    def replay(
        self, progress: Callable[[ReplayProgress], None] | None = None, **asked: Any
    ) -> Replayed:
        request = ReplayRequest(**asked)
        home = FolderHome(self.root)
        return home.replay_dead_letters("shop", request, by="test", progress=progress)

    def letter(self, record: PlacedRecord, offset: int, code: str = "BAD_JSON") -> bytes:
        value = record.value
        content = {
            "source": "orders",
            "topic": self.orders,
            "partition": record.partition,
            "offset": offset,
            "timestamp": record.timestamp,
            "code": code,
            "reason": "why",
            "bytes": len(value or b""),
            "raw": None if value is None else base64.b64encode(value[:LIMIT]).decode(),
        }
        return json.dumps(content).encode()


def test_records_on_kafka_are_replayed_with_key_headers_and_partition(
    tmp_path: Path, kafka: KafkaBroker
) -> None:
    shop = Shop(tmp_path, kafka.url)
    assert FolderHome(tmp_path).dead_letters("shop").total == 0
    kafka.make_topic(shop.orders, partitions=3)
    kafka.make_topic(shop.letters, partitions=2)
    long = b"x" * (LIMIT + 5)
    kafka.send(shop.orders, [b"bad one"], key=b"k\xff", partition=2, headers=[("trace", b"1")])
    kafka.send(shop.orders, [b'{"n": 1}', b"bad two"], partition=2)
    kafka.send(shop.orders, [None], key=b"gone", partition=0)
    kafka.send(shop.orders, [long], partition=1)
    bad = [each for each in shop.source.last(10) if each.value != b'{"n": 1}']
    assert len(bad) == 4
    letters = [shop.letter(each, int(each.place.rpartition(":")[2])) for each in bad]
    kafka.send(shop.letters, letters[:2], partition=0)
    kafka.send(shop.letters, [*letters[2:], b"no letter"], partition=1)
    # A record that retention took away, and one of a topic that was made anew.
    kept = PlacedRecord(place="", partition=0, timestamp=5, key=None, value=b"other")
    kafka.send(shop.letters, [shop.letter(kept, 999, "NO_KEY"), shop.letter(kept, 0)], partition=1)

    found = FolderHome(tmp_path).dead_letters("shop", limit=10)
    assert {(each.reason, each.count) for each in found.counts} == {("BAD_JSON", 5), ("NO_KEY", 1)}
    assert (found.total, found.foreign, found.log) == (6, 1, f"kafka://{kafka.address}")
    assert {each.id for each in found.letters} == {"0:0", "0:1", "1:0", "1:1", "1:3", "1:4"}
    assert FolderHome(tmp_path).dead_letter("shop", "0:1").raw == bad[1].value
    with pytest.raises(HeadgateError, match="DEAD_LETTER_NOT_FOUND"):
        FolderHome(tmp_path).dead_letter("shop", "0:7")

    assert shop.replay(ids=["0:0"], dry_run=True).total == 1
    assert shop.replay(ids=["0:0"]).sent == {shop.orders: 1}
    done = shop.replay()
    assert (done.total, done.skipped, done.refused) == (3, 1, {"no-key": 2})
    assert [each.id for each in done.named] == ["1:3", "1:4"]
    told = [
        (each.partition(), each.key(), each.value(), tuple(each.headers() or ()))
        for each in kafka.read(shop.orders)
    ]
    assert sorted(told, key=str) == sorted(
        [
            *[(2, b"k\xff", b"bad one", (("trace", b"1"),))] * 2,
            (2, None, b'{"n": 1}', ()),
            *[(2, None, b"bad two", ())] * 2,
            *[(0, b"gone", None, ())] * 2,
            *[(1, None, long, ())] * 2,
        ],
        key=str,
    )
    forced = shop.replay(reason="NO_KEY", without_key=True)
    assert (forced.total, forced.without_key) == (1, 1)
    assert kafka.read(shop.orders)[-1].partition() == 2
    assert [
        each.value for each in FolderHome(tmp_path).output_records("shop", shop.letters, lines=1)
    ] == [shop.letter(kept, 0).decode()]
    assert [each.kind for each in FolderHome(tmp_path).outputs("shop")] == ["main", "dead-letters"]


def test_a_replay_that_breaks_off_leaves_its_letters_in_doubt(
    tmp_path: Path, kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path, kafka.url)
    kafka.make_topic(shop.orders)
    kafka.make_topic(shop.letters)
    kafka.send(shop.orders, [b"bad %d" % n for n in range(4)])
    kafka.send(
        shop.letters,
        [shop.letter(each, number) for number, each in enumerate(shop.source.last(4))],
    )
    monkeypatch.setattr(replaying, "_AT_ONCE", 2)
    told = 0

    def crash(_: object) -> None:
        nonlocal told
        told += 1
        # As a kill would, after the second batch was sent and before that was written down.
        if told == 1:
            monkeypatch.setattr(
                "headgate.jobs.dead_letters.replay_memory.ReplayJournal.finish", fail
            )

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context(), pytest.raises(KeyboardInterrupt):
        shop.replay(progress=crash)
    monkeypatch.undo()
    after = shop.replay()
    assert (after.total, after.skipped, after.in_doubt) == (0, 2, 2)
    assert after.doubts == ("0:2", "0:3")
    assert FolderHome(tmp_path).dead_letter("shop", "0:3").in_doubt
    assert shop.replay(ids=["0:3"], again=True).total == 1
    assert shop.replay().in_doubt == 1


def test_records_on_pulsar_are_replayed_with_key_properties_and_partition(
    tmp_path: Path, pulsar: PulsarBroker
) -> None:
    from headgate.connectors.pulsar.names import EntryId
    from headgate.connectors.pulsar.topics.places import sequence_of

    shop = Shop(tmp_path, pulsar.url)
    assert FolderHome(tmp_path).dead_letters("shop").total == 0
    pulsar.make_topic(shop.orders, partitions=2)
    pulsar.make_topic(shop.letters, partitions=2)
    with shop.source.sending() as send:
        send(
            [
                PlacedRecord(
                    place="",
                    partition=1,
                    timestamp=-1,
                    key="kö".encode(),
                    value=b"bad one",
                    headers=(("trace", b"1"),),
                    event_time=123_000,
                ),
                *(
                    PlacedRecord(place="", partition=1, timestamp=-1, key=None, value=value)
                    for value in (b'{"n": 1}', b"bad two")
                ),
                PlacedRecord(place="", partition=0, timestamp=-1, key=b"gone", value=None),
            ]
        )
    bad = [each for each in shop.source.last(10) if each.value != b'{"n": 1}']
    letters = []
    for each in bad:
        _, ledger, entry, *index = each.place.split(":")
        spot = sequence_of(EntryId(int(ledger), int(entry)), int(index[0]) if index else -1)
        letters.append(shop.letter(each, spot))
    lost = PlacedRecord(place="", partition=0, timestamp=5, key=None, value=b"other")
    letters.append(shop.letter(lost, 1 << 50, "NO_KEY"))
    topic = shop.graph.dead_letters
    with get_connector(topic).open_places(topic).sending() as send:
        send(
            [
                PlacedRecord(place="", partition=n % 2, timestamp=-1, key=None, value=value)
                for n, value in enumerate(letters)
            ]
        )
    found = FolderHome(tmp_path).dead_letters("shop")
    assert {(each.reason, each.count) for each in found.counts} == {("BAD_JSON", 3), ("NO_KEY", 1)}
    for letter in found.letters:
        assert FolderHome(tmp_path).dead_letter("shop", letter.id) == letter
    done = shop.replay()
    assert (done.total, done.refused) == (3, {"no-key": 1})
    assert (again := shop.replay()).total == 0
    assert again.skipped == 3
    told = [
        (each.partition, each.key, each.value, each.headers, each.event_time)
        for each in shop.source.last(20)
    ]
    assert sorted(told, key=str) == sorted(
        [
            *[(1, "kö".encode(), b"bad one", (("trace", b"1"),), 123_000)] * 2,
            (1, None, b'{"n": 1}', (), None),
            *[(1, None, b"bad two", (), None)] * 2,
            *[(0, b"gone", None, (), None)] * 2,
        ],
        key=str,
    )
    assert len(FolderHome(tmp_path).output_records("shop", shop.letters, lines=3)) == 3
