"""From where to where a topic is audited, and what is judged within: no broker is asked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.connectors import Kafka
from headgate.connectors.contract.audit import InputRecord, Standing, TopicRange
from headgate.connectors.contract.topics import FOREVER, TopicPart
from headgate.connectors.kafka.access.admin import TopicFacts
from headgate.connectors.kafka.runs import audit
from headgate.connectors.kafka.runs.audit import doubts_of, input_of, range_of, same_topic
from headgate.connectors.kafka.runs.positions import TopicPosition
from headgate.jobs.audit.position_counts import SourceCounts
from headgate.jobs.audit.shape import Shape

ID = "HY_hVD2gR1yGSHSZuI2lIA"


def topic(*bounds: tuple[int, int], compacted: bool = False) -> TopicFacts:
    parts = tuple(
        TopicPart(number, first, following, 1, 1, 1, None)
        for number, (first, following) in enumerate(bounds)
    )
    return TopicFacts("orders", ID, parts, FOREVER, compacted)


def ends(facts: TopicFacts) -> dict[int, int]:
    return {part.number: part.next for part in facts.parts}


def test_a_range_goes_from_where_the_run_began_to_where_it_came() -> None:
    facts = topic((0, 50), (0, 60))
    begin, end = TopicPosition(ID, (5, 6)), TopicPosition(ID, (40, 6))
    found, notes = range_of(facts, ends(facts), begin, end)
    assert (found.starts, found.ends, found.kept) == ({0: 5, 1: 6}, {0: 40, 1: 6}, {0: 40, 1: 6})
    assert found.total == 35
    assert notes == []


def test_a_partition_that_was_added_later_is_audited_from_its_beginning() -> None:
    facts = topic((0, 50), (0, 60))
    begin, end = TopicPosition(ID, (5,)), TopicPosition(ID, (40, 30))
    found, notes = range_of(facts, ends(facts), begin, end)
    assert found.starts == {0: 5, 1: 0}
    assert notes == []


def test_records_that_are_not_kept_are_left_out_and_told() -> None:
    facts = topic((10, 50), (45, 60))
    begin, end = TopicPosition(ID, (5, 50)), TopicPosition(ID, (40, 55))
    found, notes = range_of(facts, ends(facts), begin, end)
    assert found.starts == {0: 10, 1: 50}
    assert len(notes) == 1
    assert "orders/0 before offset 10" in notes[0]


def test_a_run_of_which_nobody_knows_where_it_began_is_audited_from_the_first_record() -> None:
    facts = topic((10, 50))
    found, notes = range_of(facts, ends(facts), None, TopicPosition(ID, (40,)))
    assert (found.starts, notes) == ({0: 10}, [])


def test_a_range_that_has_expired_as_a_whole_is_empty() -> None:
    facts = topic((45, 50))
    found, notes = range_of(facts, ends(facts), TopicPosition(ID, (5,)), TopicPosition(ID, (40,)))
    assert found.starts == found.kept == {0: 40}
    assert len(notes) == 1


def test_a_topic_is_read_no_further_than_what_is_committed() -> None:
    facts = topic((0, 50))
    found, notes = range_of(facts, {0: 30}, None, TopicPosition(ID, (40,)))
    assert (found.ends, found.kept) == ({0: 40}, {0: 30})
    assert notes == ["orders/0 ends at offset 30, and was read to 40"]


class OneTopic:
    """A cluster with the topic `orders`."""

    def __init__(self, facts: TopicFacts) -> None:
        self.facts = facts

    def describe(self, _names: Sequence[str]) -> list[TopicFacts]:
        return [self.facts]

    def committed_ends(self, facts: TopicFacts) -> dict[int, int]:
        return ends(facts)


@pytest.mark.parametrize(
    ("options", "compacted", "gaps"),
    [
        ({}, False, ""),
        ({}, True, "topic 'orders' is compacted"),
        ({"isolation.level": "read_uncommitted"}, False, "the job reads uncommitted records"),
        ({"consumer.isolation.level": "read_uncommitted"}, False, "the job reads uncommitted"),
    ],
)
def test_records_that_may_be_gone_are_reported(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, str], compacted: bool, gaps: str
) -> None:
    cluster = OneTopic(topic((0, 50), compacted=compacted))
    monkeypatch.setattr(audit, "Cluster", lambda *_args, **_more: cluster)
    position = json.dumps({"format": 1, "topics": {"orders": {"id": ID, "next": [40]}}})
    kafka = Kafka("orders", servers="h", options=options)
    reported = audit.open_input("store", kafka, None, position).gaps
    assert reported.startswith(gaps)
    assert bool(reported) is bool(gaps)


def test_ids_of_topics_are_compared_whatever_alphabet_they_are_written_in() -> None:
    assert same_topic("HY/hVD2gR1+GSHSZuI2lIA", "HY_hVD2gR1-GSHSZuI2lIA")
    assert not same_topic("HY/hVD2gR1+GSHSZuI2lIA", "HY_hVD2gR1-GSHSZuI2lIB")


def test_reasons_why_rows_may_not_be_seen_are_told() -> None:
    facts = topic((0, 50), (3, 60), compacted=True)
    expired, compacted, hidden = doubts_of(facts, {0: 49, 1: 60})
    assert "partition 1, have been deleted" in expired
    assert "compacted" in compacted
    assert "partition 0, hides" in hidden
    assert list(doubts_of(topic((0, 50)), {0: 50})) == []


PLACES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30)), max_size=50)


@given(PLACES, st.lists(st.tuples(st.sampled_from(["a", "b"]), PLACES), max_size=3))
def test_a_source_is_judged_as_a_plain_count_would(
    records: list[tuple[int, int]], outputs: list[tuple[str, list[tuple[int, int]]]]
) -> None:
    limits = {0: 20, 1: 25}
    starts = {0: 5, 1: 0}
    there = {(p, o) for p, o in records if p in limits and starts[p] <= o < limits[p]}
    kafka = Kafka("orders", servers="localhost")
    one = TopicRange("orders", starts, limits, limits)
    read = input_of(kafka, [one])
    shape = Shape("orders", ("a", "b"))
    counts = SourceCounts(shape, read)
    counts.expect(InputRecord(p, "orders", p, o, None) for p, o in sorted(there))
    rows = [place for _, places in outputs for place in places]
    for name, places in outputs:
        for place in places:
            counts.take(*place, shape.group(name))
    found = counts.result()
    times = Counter(place for place in rows if place in there)
    assert found.lost == len(there - set(rows))
    assert found.doubled == sum(count - 1 for count in times.values())
    assert found.all_ahead == sum(read.standing(*place) is Standing.AHEAD for place in rows)
    within = {place for place in rows if read.standing(*place) is Standing.WITHIN}
    assert found.all_unknown == len(within - there)
    named = {str(each) for each in counts.examples()}
    assert bool(named) == bool(found.lost or found.doubled or found.all_unknown)
