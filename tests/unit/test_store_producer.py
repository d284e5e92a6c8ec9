"""The made-up store: the same bytes every time, of the shape asked for, at the rate asked for."""

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fake_clock import FakeClock

from headgate.connectors.files.folder.topic import TopicFolder
from headgate.errors import HeadgateError
from headgate.producers import _chunks, _words
from headgate.producers._damage import KINDS, damage
from headgate.producers._draws import Column, Draws
from headgate.producers.pace import Pace, Sent, send_store
from headgate.producers.store import Chunk, StoreShape, StoreTopic, generate, key_values

USERS, ITEMS, ORDERS = StoreTopic.USERS, StoreTopic.ITEMS, StoreTopic.ORDERS
SMALL = StoreShape(users=500, items=60, orders=3000)
CLEAN = replace(SMALL, bad=0.0)
YEAR_MS = 365 * 86_400_000
BASE_MS = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)

Row = dict[str, Any]


def lines_of(shape: StoreShape, topic: StoreTopic) -> bytes:
    return b"".join(chunk.lines for chunk in generate(shape) if chunk.topic is topic)


def rows_of(shape: StoreShape, topic: StoreTopic) -> list[Row]:
    return [json.loads(line) for line in lines_of(shape, topic).splitlines()]


def is_order(line: bytes) -> bool:
    """Say what a strict reader of orders says."""
    whole = {"invoiceId", "lineItemId", "userId", "itemId", "createdAt", "paidAt"}
    try:
        row = json.loads(line.decode())
    except ValueError:
        return False
    return (
        isinstance(row, dict)
        and all(type(row.get(name)) is int for name in whole)
        and all(type(row.get(name)) is str for name in ("itemName", "itemCategory"))
        and type(row.get("price")) is float
    )


# Determinism


def test_the_same_shape_gives_the_same_bytes_in_every_release() -> None:
    shape = StoreShape(users=300, items=40, orders=2500, bad=0.01, updates=50, deletes=0.1)
    digest = hashlib.sha256()
    for chunk in itertools.chain(generate(shape), generate(replace(shape, round=1))):
        digest.update(chunk.topic.encode() + chunk.lines)
    expected = "270d35e3e0d29e4b2bdc82bdd80dfcdbd4c2f27aee2cb41f350f5be6edf6ecd6"
    assert digest.hexdigest() == expected


def test_another_seed_gives_another_store() -> None:
    for topic in StoreTopic:
        assert lines_of(SMALL, topic) != lines_of(replace(SMALL, seed=8), topic)


@pytest.mark.parametrize("records", [1, 7, 999, 100_000])
def test_data_does_not_depend_on_how_it_is_cut(
    monkeypatch: pytest.MonkeyPatch, records: int
) -> None:
    shape = StoreShape(users=90, items=30, orders=400, unknown=0.3, bad=0.2, updates=50, round=0)
    shapes = [shape, replace(shape, round=3, deletes=0.4)]
    expected = [lines_of(each, topic) for each in shapes for topic in StoreTopic]
    bad = [sum(chunk.bad for chunk in generate(each)) for each in shapes]
    monkeypatch.setattr(_chunks, "CHUNK_RECORDS", records)
    assert [lines_of(each, topic) for each in shapes for topic in StoreTopic] == expected
    assert [sum(chunk.bad for chunk in generate(each)) for each in shapes] == bad
    assert max(chunk.records for chunk in generate(shape)) <= records


# Counts


def test_round_0_brings_users_items_and_orders_in_that_order() -> None:
    chunks = list(generate(StoreShape(users=25_000, items=3, orders=45_000)))
    assert [(chunk.topic, chunk.records) for chunk in chunks] == [
        (USERS, 20_000),
        (USERS, 5_000),
        (ITEMS, 3),
        (ORDERS, 20_000),
        (ORDERS, 20_000),
        (ORDERS, 5_000),
    ]
    for chunk in chunks:
        assert chunk.lines.count(b"\n") == chunk.records
        assert chunk.lines.endswith(b"\n")


@pytest.mark.parametrize(
    "shape",
    [
        SMALL,
        replace(SMALL, updates=70),
        replace(SMALL, updates=70, round=2),
        StoreShape(users=1, items=1, orders=1, updates=30),
        StoreShape(users=0, items=0, orders=0),
    ],
)
def test_a_shape_tells_beforehand_how_many_records_come(shape: StoreShape) -> None:
    found: Counter[StoreTopic] = Counter()
    for chunk in generate(shape):
        found[chunk.topic] += chunk.records
    assert {topic: found[topic] for topic in StoreTopic} == {
        topic: shape.count(topic) for topic in StoreTopic
    }
    assert shape.records == found.total()


@pytest.mark.parametrize(
    "change",
    [
        {"users": -1},
        {"orders": -5},
        {"round": -1},
        {"unknown": 1.5},
        {"bad": -0.1},
        {"deletes": float("nan")},
        {"items": 0},
        {"users": 0},
    ],
)
def test_a_shape_that_cannot_be_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(HeadgateError) as caught:
        replace(SMALL, **change)
    assert caught.value.code == "BAD_STORE_SHAPE"
    assert caught.value.hint


# Users and items


def test_users_have_every_id_once_and_believable_fields() -> None:
    rows = rows_of(StoreShape(users=5000, items=0, orders=0), USERS)
    assert [row["id"] for row in rows] == list(range(1, 5001))
    for row in rows:
        assert list(row) == [
            "id",
            "firstName",
            "lastName",
            "emailAddress",
            "createdAt",
            "deletedAt",
            "mergedAt",
            "parentUserId",
        ]
        assert row["emailAddress"].isascii()
        assert row["emailAddress"].rsplit(".", 1)[0].endswith("example")
        assert BASE_MS - YEAR_MS <= row["createdAt"] < BASE_MS
        for name in ("deletedAt", "mergedAt"):
            assert row[name] == -1 or row["createdAt"] <= row[name] < BASE_MS
        assert (row["mergedAt"] == -1) == (row["parentUserId"] == -1)
        assert row["parentUserId"] != row["id"]
        assert row["parentUserId"] == -1 or 1 <= row["parentUserId"] <= 5000
    assert len({row["emailAddress"] for row in rows}) == 5000
    assert 50 < sum(row["deletedAt"] != -1 for row in rows) < 150
    assert 20 < sum(row["mergedAt"] != -1 for row in rows) < 90


def test_items_have_a_name_made_of_their_words_and_a_price_of_their_category() -> None:
    lines = lines_of(StoreShape(users=0, items=2000, orders=0), ITEMS).splitlines()
    categories = {category.name: category for category in _words.CATEGORIES}
    for number, line in enumerate(lines, start=1):
        row = json.loads(line)
        assert list(row) == [
            "id",
            "createdAt",
            "adjective",
            "category",
            "modifier",
            "name",
            "price",
        ]
        assert row["id"] == number
        category = categories[row["category"]]
        assert row["name"].startswith(f"{row['adjective']} {row['modifier']} ")
        assert row["name"].endswith(category.products)
        assert category.low - 100 <= row["price"] * 100 <= category.high + 100
        assert line.split(b'"price":')[1].removesuffix(b"}").split(b".")[1].isdigit()
        assert len(line.split(b'"price":')[1].removesuffix(b"}").split(b".")[1]) == 2


def test_no_word_needs_escaping_in_json() -> None:
    products = itertools.chain.from_iterable(c.products for c in _words.CATEGORIES)
    names = [category.name for category in _words.CATEGORIES]
    texts: Iterable[str] = (
        *_words.FIRST_NAMES,
        *_words.LAST_NAMES,
        *_words.ADJECTIVES,
        *_words.MODIFIERS,
        *products,
        *names,
    )
    for text in texts:
        assert json.dumps(text, ensure_ascii=False) == f'"{text}"'


# Orders


def test_an_order_repeats_its_item_and_belongs_to_a_known_user() -> None:
    shape = replace(CLEAN, unknown=0.0)
    items = {row["id"]: row for row in rows_of(shape, ITEMS)}
    for row in rows_of(shape, ORDERS):
        assert list(row) == [
            "invoiceId",
            "lineItemId",
            "userId",
            "itemId",
            "itemName",
            "itemCategory",
            "price",
            "createdAt",
            "paidAt",
        ]
        item = items[row["itemId"]]
        assert (row["itemName"], row["itemCategory"], row["price"]) == (
            item["name"],
            item["category"],
            item["price"],
        )
        assert 1 <= row["userId"] <= shape.users
        assert BASE_MS - YEAR_MS <= row["createdAt"] < BASE_MS
        assert 5_000 <= row["paidAt"] - row["createdAt"] < 1_200_000


def test_an_invoice_has_1_to_5_line_items_of_one_user_at_one_time() -> None:
    rows = rows_of(replace(CLEAN, unknown=0.0), ORDERS)
    invoices = [list(group) for _, group in itertools.groupby(rows, key=lambda r: r["invoiceId"])]
    assert [invoice[0]["invoiceId"] for invoice in invoices] == list(range(1, len(invoices) + 1))
    assert {len(invoice) for invoice in invoices} == {1, 2, 3, 4, 5}
    for invoice in invoices:
        assert [row["lineItemId"] for row in invoice] == list(range(1, len(invoice) + 1))
        assert len({(row["userId"], row["createdAt"], row["paidAt"]) for row in invoice}) == 1


def test_orders_are_out_of_order_by_less_than_five_seconds() -> None:
    latest, worst = 0, 0
    for row in rows_of(CLEAN, ORDERS):
        latest = max(latest, row["createdAt"])
        worst = max(worst, latest - row["createdAt"])
    assert 0 < worst < 5000


def test_some_users_order_more_than_others() -> None:
    orders = rows_of(replace(CLEAN, orders=20_000, unknown=0.0), ORDERS)
    front = sum(row["userId"] <= CLEAN.users // 10 for row in orders)
    assert 0.15 < front / len(orders) < 0.35


@pytest.mark.parametrize("share", [0.01, 0.3, 1.0])
def test_half_of_the_unknown_share_has_no_user_and_half_no_item(share: float) -> None:
    shape = replace(CLEAN, unknown=share)
    rows = rows_of(shape, ORDERS)
    no_user = sum(row["userId"] > shape.users for row in rows)
    no_item = sum(row["itemId"] > shape.items for row in rows)
    assert sum(row["userId"] > shape.users and row["itemId"] > shape.items for row in rows) == 0
    assert no_user + no_item == pytest.approx(shape.orders * share, abs=1)
    assert no_user == pytest.approx(no_item, abs=1)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.5, 1.0])
def test_the_bad_share_is_what_a_strict_reader_refuses(share: float) -> None:
    chunks = list(generate(replace(SMALL, bad=share)))
    refused = [
        line
        for chunk in chunks
        if chunk.topic is ORDERS
        for line in chunk.lines.split(b"\n")[:-1]
        if not is_order(line)
    ]
    assert len(refused) == sum(chunk.bad for chunk in chunks)
    assert len(refused) == pytest.approx(SMALL.orders * share, abs=1)
    assert all(line.strip() for line in refused)


def test_bad_lines_take_turns_through_every_kind() -> None:
    line = lines_of(replace(CLEAN, orders=1), ORDERS).decode().removesuffix("\n")
    assert is_order(line.encode())
    bad = [
        damage(line, ordinal).encode(errors="surrogateescape") for ordinal in range(2 * len(KINDS))
    ]
    first_turn = bad[: len(KINDS)]
    assert bad == first_turn * 2
    assert len(set(first_turn)) == len(KINDS) == 9
    assert not any(is_order(each) for each in first_turn)
    parsed = [json.loads(each) for each in first_turn[1:8]]
    assert [type(each) for each in parsed] == [dict, dict, dict, dict, dict, list, int]
    text_price, number_name, fraction_user, no_user, null_item = parsed[:5]
    assert type(text_price["price"]) is str
    assert type(number_name["itemName"]) is int
    assert fraction_user["userId"] % 1 == 0.5
    assert "userId" not in no_user
    assert null_item["itemId"] is None
    with pytest.raises(json.JSONDecodeError):
        json.loads(first_turn[0])
    with pytest.raises(UnicodeDecodeError):
        first_turn[8].decode()


@pytest.mark.parametrize("share", [0.0003, 0.01, 0.37, 0.5, 0.9, 1.0])
def test_picks_hold_their_share_and_never_meet(share: float) -> None:
    places, ordinals = Draws(3).picks(Column.ORDER_BAD, share, 0, 50_000)
    assert len(set(places.tolist())) == len(places)
    assert len(places) == pytest.approx(50_000 * share, abs=1)
    assert ordinals.tolist() == list(range(len(places)))


# Rounds and updates


def test_a_later_round_continues_invoices_and_times_where_the_last_one_ended() -> None:
    shape = StoreShape(users=50, items=20, orders=333, bad=0.0)
    rounds = [rows_of(replace(shape, round=number), ORDERS) for number in range(4)]
    for before, after in itertools.pairwise(rounds):
        assert after[0]["invoiceId"] == before[-1]["invoiceId"] + 1
        assert after[0]["lineItemId"] == 1
        assert min(r["createdAt"] for r in after) > max(r["createdAt"] for r in before)
    assert len({tuple(row["itemId"] for row in rows) for rows in rounds}) == 4


def test_a_later_round_brings_no_users_and_items_but_updates() -> None:
    later = replace(SMALL, round=1, updates=10)
    assert [(chunk.topic, chunk.records) for chunk in generate(later)] == [
        (USERS, 10),
        (ORDERS, 3000),
    ]


def test_updates_follow_the_users_they_change() -> None:
    shape = replace(SMALL, updates=40)
    rows = rows_of(shape, USERS)
    assert rows[: shape.users] == rows_of(SMALL, USERS)
    assert len(rows) == shape.users + 40


def test_every_update_changes_a_user_that_exists() -> None:
    shape = replace(SMALL, updates=1000)
    first = {row["id"]: row for row in rows_of(SMALL, USERS)}
    changed: Counter[str] = Counter()
    for row in rows_of(shape, USERS)[shape.users :]:
        before = first[row["id"]]
        names = [name for name in row if row[name] != before[name]]
        assert names, "an update that changes nothing"
        changed.update(names)
        assert row["parentUserId"] != row["id"]
    assert changed.keys() == {"lastName", "emailAddress", "mergedAt", "parentUserId"}


def test_rounds_bring_different_updates() -> None:
    shape = replace(SMALL, updates=20, orders=0)
    rounds = [lines_of(replace(shape, round=number), USERS) for number in (1, 2)]
    assert rounds[0] != rounds[1]


def test_the_deleted_share_of_updates_are_tombstones() -> None:
    shape = replace(SMALL, updates=200, deletes=0.25, round=1)
    rows = rows_of(shape, USERS)
    tombstones = [row for row in rows if "$deleted" in row]
    assert len(tombstones) == pytest.approx(50, abs=1)
    for row in tombstones:
        assert row == {"id": row["id"], "$deleted": True}
        assert 1 <= row["id"] <= shape.users


# Keys for logs that have them


def test_users_and_items_are_keyed_by_id_and_deletions_have_no_value() -> None:
    shape = replace(SMALL, updates=100, deletes=0.5, round=1)
    lines = lines_of(shape, USERS)
    pairs = list(key_values(USERS, lines))
    for (key, value), line in zip(pairs, lines.splitlines(), strict=True):
        row = json.loads(line)
        assert key == str(row["id"]).encode()
        assert value == (None if "$deleted" in row else line)
    assert {key for key, _ in key_values(ITEMS, lines_of(SMALL, ITEMS))} == {
        str(number).encode() for number in range(1, 61)
    }


def test_orders_are_keyed_by_invoice_and_bad_ones_keep_their_bytes() -> None:
    lines = lines_of(replace(SMALL, bad=0.1), ORDERS)
    pairs = list(key_values(ORDERS, lines))
    assert b"".join(value + b"\n" for _, value in pairs if value is not None) == lines
    for key, value in pairs:
        assert value is not None
        if is_order(value):
            assert key == str(json.loads(value)["invoiceId"]).encode()
    assert any(key is None for key, _ in pairs)
    assert list(key_values(ORDERS, b"")) == []


# Sending


def test_sending_counts_a_record_once_it_is_acknowledged() -> None:
    taken: Counter[StoreTopic] = Counter()
    counts: list[Sent] = []

    def sink(topic: StoreTopic, lines: bytes, records: int) -> None:
        assert lines.count(b"\n") == records
        assert counts[-1:] == ([Sent(taken[USERS], taken[ITEMS], taken[ORDERS])] if taken else [])
        taken[topic] += records

    sent = send_store(SMALL, sink, clock=FakeClock(), progress=counts.append)
    assert sent == counts[-1] == Sent(users=500, items=60, orders=3000)
    assert sent.records == SMALL.records


def test_a_refused_slice_is_not_counted_and_ends_the_sending() -> None:
    counts: list[Sent] = []

    def sink(topic: StoreTopic, lines: bytes, records: int) -> None:
        if topic is ITEMS:
            raise ConnectionError("the broker is gone")

    with pytest.raises(ConnectionError):
        send_store(SMALL, sink, clock=FakeClock(), progress=counts.append)
    assert counts == [Sent(users=500)]


def test_with_a_rate_orders_go_in_slices_of_a_tenth_of_a_second() -> None:
    clock = FakeClock()
    calls: list[tuple[float, StoreTopic, int]] = []

    def sink(topic: StoreTopic, lines: bytes, records: int) -> None:
        calls.append((round(clock.seconds, 6), topic, records))

    send_store(SMALL, sink, clock=clock, rate=2000)
    assert calls[:2] == [(0, USERS, 500), (0, ITEMS, 60)]
    assert calls[2:] == [(round(0.1 * number, 6), ORDERS, 200) for number in range(15)]


@pytest.mark.parametrize("rate", [1, 7, 333, 2000, 150_000])
def test_slices_put_together_are_the_orders_and_never_ahead_of_the_rate(rate: float) -> None:
    clock = FakeClock()
    shape = StoreShape(users=5, items=5, orders=60 if rate < 100 else 45_000)
    parts: list[bytes] = []
    sent = 0

    def sink(topic: StoreTopic, lines: bytes, records: int) -> None:
        nonlocal sent
        if topic is ORDERS:
            assert clock.seconds == pytest.approx(sent / rate, abs=1e-3)
            parts.append(lines)
            sent += records

    send_store(shape, sink, clock=clock, rate=rate)
    assert b"".join(parts) == lines_of(shape, ORDERS)
    assert min(clock.slept) > timedelta(0)


def test_a_sender_that_fell_behind_catches_up() -> None:
    clock = FakeClock()
    times: list[float] = []

    def sink(topic: StoreTopic, lines: bytes, records: int) -> None:
        if topic is ORDERS:
            times.append(round(clock.seconds, 6))
            if len(times) == 2:
                clock.advance(seconds=0.35)

    send_store(replace(SMALL, orders=1200), sink, clock=clock, rate=2000)
    assert times == [0, 0.1, 0.45, 0.45, 0.45, 0.5]
    assert min(clock.slept) > timedelta(0)


def test_full_speed_never_sleeps_and_never_cuts() -> None:
    clock = FakeClock()
    chunk = Chunk(ORDERS, b"1\n2\n", 2)
    assert list(Pace(None, clock).slices(chunk)) == [(b"1\n2\n", 2)]
    assert clock.slept == []


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_a_rate_that_is_not_above_0_is_refused(rate: float) -> None:
    with pytest.raises(HeadgateError) as caught:
        Pace(rate, FakeClock())
    assert caught.value.code == "BAD_RATE"


@pytest.mark.parametrize(
    ("sent", "summary"),
    [
        (Sent(117178, 2198), "Sent '117178' user records and '2198' item records"),
        (Sent(orders=5), "Sent '5' order records"),
        (Sent(1, 2, 3), "Sent '1' user records, '2' item records and '3' order records"),
        (Sent(), "Sent no records"),
    ],
)
def test_what_was_sent_reads_as_a_sentence(sent: Sent, summary: str) -> None:
    assert sent.summary == summary


def test_a_store_sent_to_embedded_topics_is_all_there(tmp_path: Path) -> None:
    folders = {topic: TopicFolder(tmp_path / topic) for topic in StoreTopic}
    for folder in folders.values():
        folder.create()
    shape = replace(SMALL, updates=30)

    def sink(topic: StoreTopic, lines: bytes, records: int) -> None:
        folders[topic].publish(lines)

    send_store(shape, sink, clock=FakeClock(), rate=2000)
    for topic, folder in folders.items():
        content = b"".join(file.path.read_bytes() for file in folder.files())
        assert content == lines_of(shape, topic)
