"""The verdict of an audit: what is an error, what is told, what is left open."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate._codec import encode
from headgate.connectors.contract.audit import Passed
from headgate.engine.settings import Delivery
from headgate.jobs.audit.report import Audit, By, PartitionAudit, SourceAudit

GOOD: dict[str, Any] = {"records": 10, "written": 10, "lost": 0, "doubled": 0}
WHERE = ("where 'w' drops rows",)


def audit(*, delivery: Delivery = Delivery.EXACTLY_ONCE, gaps: str = "", **found: Any) -> Audit:
    partition = PartitionAudit(**{**GOOD, **found})
    unjudged = WHERE if partition.lost is None else ()
    source = SourceAudit(topic="t", partitions={"0": partition}, unjudged=unjudged, gaps=gaps)
    return Audit(
        job="shop",
        lineage="run",
        checkpoint="chk-1",
        by=By.POSITION,
        delivery=delivery,
        sources={"orders": source},
        outputs={"copies": Passed(rows=10)},
    )


@pytest.mark.parametrize(
    ("found", "ok", "verdict"),
    [
        ({}, True, "Each of 10 records is in exactly one output row."),
        ({"ahead": 3}, True, "Each of 10 records is in exactly one output row."),
        ({"written": 9, "lost": 1}, False, "1 record is lost."),
        ({"doubled": 2}, False, "2 rows are there too often."),
        ({"unknown": 1}, False, "1 row has no record."),
        ({"unknown": 1, "gaps": "compacted"}, True, "1 row has no record."),
        (
            {"written": 8, "lost": 2, "doubled": 1},
            False,
            "2 records are lost and 1 row is there too often.",
        ),
        (
            {"doubled": 1, "delivery": Delivery.AT_LEAST_ONCE},
            True,
            "1 row is there too often. Delivery is at-least-once, which allows doubled rows.",
        ),
        (
            {"written": 9, "lost": 1, "delivery": Delivery.AT_LEAST_ONCE},
            False,
            "1 record is lost.",
        ),
        (
            {"written": 4, "lost": None},
            True,
            "No row is there too often. Losses of orders were not judged.",
        ),
        (
            {"written": 4, "lost": None, "doubled": 1},
            False,
            "1 row is there too often. Losses of orders were not judged.",
        ),
        (
            {"records": 0, "written": 0},
            True,
            "There is nothing to audit: no record was read in the range.",
        ),
    ],
)
def test_the_verdict_says_what_was_found(found: dict[str, Any], ok: bool, verdict: str) -> None:
    result = audit(**found)
    assert result.verdict == verdict
    assert result.ok is ok


def test_losses_that_nobody_judged_are_null_and_no_zero() -> None:
    told = json.loads(json.dumps(encode(audit(written=4, lost=None))))
    assert told["lost"] is None
    assert told["sources"]["orders"]["lost"] is None
    assert told["sources"]["orders"]["unjudged"] == list(WHERE)
