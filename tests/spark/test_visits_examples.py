"""The flows of examples/visits on embedded topics: their lines are what plain Python counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from bench import Bench
from store_reference import lines_of
from visits_reference import (
    Cell,
    Count,
    Event,
    assert_counts_never_go_down,
    assert_lateness,
    count_by_cell,
    finals,
    read_count,
    read_event,
    watermark,
)

from headgate.jobs.sandbox.visits import VisitsOptions, produce_visits

FLOWS = Path(__file__).parents[2] / "examples" / "visits"


@dataclass(frozen=True, slots=True)
class Example:
    """One of the flows, and what it is to do."""

    file: str
    suffix: str
    window: timedelta
    behind: timedelta
    every: int | None


EXAMPLES = (
    Example("flow.py", "", timedelta(minutes=15), timedelta(minutes=5), None),
    Example("every_four.py", "every_four", timedelta(minutes=15), timedelta(minutes=5), 4),
    Example("short.py", "short", timedelta(seconds=45), timedelta(minutes=1), 4),
)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.file)
def test_an_example_counts_every_visit_once_or_finds_it_late(
    bench: Bench, example: Example
) -> None:
    rounds = []
    for number in range(2):
        options = VisitsOptions(
            count=600, visits=4, late=0.05, span=timedelta(minutes=20), round=number
        )
        produce_visits(f"files:{bench.topics}", options)
        bench.run(FLOWS / example.file)
        rounds.append(_events(bench, example))
    before, events = rounds
    late = Counter(read_event(value).id for value in lines_of(bench.topics / _late(example)))
    assert late
    assert_lateness(late, before, events, behind=example.behind)
    counts = _counts(bench, example)
    assert_counts_never_go_down(counts)
    counted = count_by_cell(events, late=late)
    over = watermark(events, behind=example.behind)
    assert finals(counts) == {cell: n for cell, n in counted.items() if cell[1] <= over}
    if example.every is None:
        # Windows that are open are told early, for the watermark has passed two minutes.
        assert {each.cell for each in counts if each.partial} >= counted.keys() - finals(counts)
    else:
        assert _partials(counts) == _multiples(counted, example.every)


def _events(bench: Bench, example: Example) -> list[Event]:
    lines = lines_of(bench.topics / "visits")
    return [read_event(line, window=example.window) for line in lines]


def _counts(bench: Bench, example: Example) -> list[Count]:
    topic = "_".join(filter(None, ("visits_counter", example.suffix)))
    lines = (line.decode() for line in lines_of(bench.topics / topic))
    found = [read_count(line, window=example.window) for line in lines]
    return sorted(found, key=lambda each: (each.made, each.visits))


def _late(example: Example) -> str:
    return "-".join(filter(None, ("late-visits", example.suffix.replace("_", "-"))))


def _partials(counts: list[Count]) -> Counter[tuple[Cell, int]]:
    return Counter((each.cell, each.visits) for each in counts if each.partial)


def _multiples(counted: dict[Cell, int], every: int) -> Counter[tuple[Cell, int]]:
    return Counter(
        (cell, number) for cell, n in counted.items() for number in range(every, n + 1, every)
    )
