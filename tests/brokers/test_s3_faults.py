"""A store that fails at one request is reported as that, and never taken for missing files."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
from test_s3_homes import home, keep, run_of

from headgate._s3 import S3Files
from headgate.errors import Domain, StoreError
from headgate.jobs.checkpoints.listing import choose_checkpoint, list_past
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.drain import check_not_drained_at, has_begun_drain
from headgate.jobs.startup.attempt_settings import unfinished_since_ms
from headgate.jobs.startup.resuming import find_damage

__all__ = ["home"]


def _check_drained(home: JobFolder) -> None:
    for kept in list_past(home):
        check_not_drained_at(kept, (), job=home.name)


QUESTIONS: tuple[Callable[[JobFolder], object], ...] = (
    lambda home: find_damage(home, run_of(home), quick=True),
    lambda home: [one.id for one in list_past(home)],
    lambda home: choose_checkpoint(home, "chk-20").id,
    lambda home: has_begun_drain(run_of(home).checkpoint),
    lambda home: unfinished_since_ms(run_of(home).checkpoint),
    _check_drained,
)


@pytest.mark.long
def test_no_answer_rests_on_a_request_that_failed(
    home: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(home)
    call = S3Files._call_s3
    left = 0

    async def failing(self: S3Files, method: str, *args: object, **named: object) -> object:
        nonlocal left
        left -= 1
        if left == -1:
            raise StoreError(
                "STORE_UNAVAILABLE", "cannot use S3", domain=Domain.EXTERNAL, retryable=True
            )
        return await call(self, method, *args, **named)

    for number, ask in enumerate(QUESTIONS):
        answer = ask(home)
        with monkeypatch.context() as faulty:
            faulty.setattr(S3Files, "_call_s3", failing)
            for before in count():
                left = before
                try:
                    found = ask(home)
                except StoreError:
                    continue
                # Requests that only read ahead are sent again.
                assert found == answer, f"question {number}, request {before} failed"
                if left >= 0:
                    break
