"""Restart strategies: when a job is tried again, and when it is given up."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate._codec import encode
from headgate.errors import HeadgateError
from headgate.jobs.lifecycle.failures import Failure as JobFailure
from headgate.jobs.lifecycle.restart import (
    HEALTHY,
    Exponential,
    FixedDelay,
    RestartStrategy,
    parse_strategy,
)

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
NEVER_HEALTHY = timedelta(0)


class FailingJob:
    """A job on a fake clock that fails when it is told to, and waits as the strategy says."""

    def __init__(self, strategy: str) -> None:
        self.strategy = parse_strategy(strategy)
        self.now = NOON
        self.failures: list[JobFailure] = []

    def fail(self, *, after: timedelta = NEVER_HEALTHY, retryable: bool = True) -> timedelta | None:
        """Run for a while, fail, and return the wait, once it is over."""
        self.now += after
        self.failures.append(failed(self.now, healthy=after, retryable=retryable))
        wait = self.strategy.next_delay(self.failures)
        self.now += wait or timedelta(0)
        return wait


def failed(
    at: datetime = NOON, *, healthy: timedelta = NEVER_HEALTHY, retryable: bool = True
) -> JobFailure:
    return JobFailure(at, "DRIVER_DIED", "killed", "SIGKILL", "driver", retryable, 1, healthy)


def seconds(wait: timedelta | None) -> float | None:
    return None if wait is None else wait.total_seconds()


# Exponential


def test_exponential_waits_grow_up_to_the_longest_and_never_end() -> None:
    job = FailingJob("exponential:1s,60s,1.5")
    waits = [seconds(job.fail()) for _ in range(300)]
    assert waits[:5] == [1, 1.5, 2.25, 3.375, 5.0625]
    assert waits[10:] == [pytest.approx(57.665), *[60] * 289]


def test_exponential_starts_again_after_ten_minutes_of_health() -> None:
    job = FailingJob("exponential:1s,60s,2")
    assert [seconds(job.fail()) for _ in range(4)] == [1, 2, 4, 8]
    assert seconds(job.fail(after=HEALTHY - timedelta(microseconds=1))) == 16
    assert seconds(job.fail(after=HEALTHY)) == 1
    assert [seconds(job.fail()) for _ in range(2)] == [2, 4]
    assert seconds(job.fail(after=timedelta(days=3))) == 1


def test_exponential_with_factor_one_waits_the_same_each_time() -> None:
    job = FailingJob("exponential:3s,60s,1")
    assert {seconds(job.fail()) for _ in range(50)} == {3}


# Fixed delay


def test_fixed_delay_gives_up_after_its_restarts() -> None:
    job = FailingJob("fixed-delay:5,10s")
    assert [seconds(job.fail()) for _ in range(6)] == [10, 10, 10, 10, 10, None]


def test_fixed_delay_counts_over_the_whole_life_of_the_job() -> None:
    job = FailingJob("fixed-delay:1,0s")
    assert seconds(job.fail()) == 0
    assert job.fail(after=timedelta(days=9)) is None


# Failure rate


def test_failure_rate_gives_up_on_one_failure_too_many_in_the_interval() -> None:
    job = FailingJob("failure-rate:3,5m,10s")
    assert [seconds(job.fail(after=SECOND)) for _ in range(4)] == [10, 10, 10, None]


def test_failure_rate_bears_any_number_of_failures_that_come_slowly() -> None:
    job = FailingJob("failure-rate:3,5m,10s")
    # With the wait of 10 s, four of these never lie within five minutes.
    assert {seconds(job.fail(after=timedelta(seconds=90))) for _ in range(40)} == {10}


def test_failure_rate_forgets_what_is_as_old_as_the_interval() -> None:
    job = FailingJob("failure-rate:1,1m,0s")
    assert seconds(job.fail()) == 0
    assert seconds(job.fail(after=timedelta(seconds=60))) == 0
    assert job.fail(after=timedelta(seconds=59)) is None


# None, and what waiting does not mend


def test_none_never_restarts() -> None:
    assert FailingJob("none").fail() is None


@pytest.mark.parametrize(
    "strategy", ["exponential:1s,60s,1.5", "fixed-delay:5,10s", "failure-rate:3,5m,10s", "none"]
)
def test_no_strategy_retries_what_waiting_does_not_mend(strategy: str) -> None:
    assert FailingJob(strategy).fail(retryable=False) is None


# Text


def test_the_strategies_are_read_as_they_are_written() -> None:
    minute = timedelta(minutes=1)
    assert parse_strategy("exponential:1s,60s,1.5") == Exponential(SECOND, minute, 1.5)
    assert parse_strategy("fixed-delay:5,10s") == FixedDelay(5, 10 * SECOND)
    assert parse_strategy("failure-rate:3,5m,10s") == FixedDelay(3, 10 * SECOND, 5 * minute)
    assert parse_strategy(" none ") == FixedDelay(0)
    assert parse_strategy("fixed-delay: 5, 10s") == FixedDelay(5, 10 * SECOND)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "there is no strategy ''"),
        ("always", "there is no strategy 'always'"),
        ("fixed", "there is no strategy 'fixed'"),
        ("none:1", "none takes no values, got 1"),
        ("exponential", "exponential takes 3 values, got 0"),
        ("exponential:1s,60s", "exponential takes 3 values, got 2"),
        ("fixed-delay:5,10s,1", "fixed-delay takes 2 values, got 3"),
        ("fixed-delay:0,10s", "restarts must be a positive integer, got '0'"),
        ("fixed-delay:-1,10s", "restarts must be a positive integer, got '-1'"),
        ("fixed-delay:²,10s", "restarts must be a positive integer, got '²'"),
        ("fixed-delay:10s,5", "restarts must be a positive integer, got '10s'"),
        ("fixed-delay:5,10", "a duration must look like 500ms, 10s or 5m, got '10'"),
        ("failure-rate:3,0s,10s", "a wait must be greater than zero, got 0s"),
        ("exponential:0s,60s,1.5", "a wait must be greater than zero, got 0s"),
        ("exponential:60s,1s,1.5", "the longest wait must be at least the first, 60s, got 1s"),
        ("exponential:1s,60s,0.5", "factor must be a number from 1 to 100, got '0.5'"),
        ("exponential:1s,60s,nan", "factor must be a number from 1 to 100, got 'nan'"),
        ("exponential:1s,60s,1e9", "factor must be a number from 1 to 100, got '1e9'"),
        ("exponential:1s,60s,101", "factor must be a number from 1 to 100, got '101'"),
    ],
)
def test_a_strategy_that_cannot_be_is_refused_and_told_why(text: str, told: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        parse_strategy(text)
    assert caught.value.code == "BAD_RESTART"
    assert caught.value.message.startswith(f"cannot read restart strategy {text!r}: {told}")
    assert "fixed-delay:5,10s" in caught.value.hint


DURATIONS = st.timedeltas(timedelta(0), timedelta(days=400))
SOME_TIME = st.timedeltas(timedelta(microseconds=1), timedelta(days=400))
COUNTS = st.integers(1, 30)


@st.composite
def exponentials(draw: st.DrawFn) -> Exponential:
    first, longest = sorted([draw(SOME_TIME), draw(SOME_TIME)])
    return Exponential(first, longest, draw(st.floats(1, 100)))


STRATEGIES: st.SearchStrategy[RestartStrategy] = st.one_of(
    exponentials(),
    st.builds(FixedDelay, COUNTS, DURATIONS),
    st.builds(FixedDelay, COUNTS, DURATIONS, SOME_TIME),
    st.just(FixedDelay(0)),
)


@given(STRATEGIES)
def test_a_strategy_is_read_back_as_it_was_written(strategy: RestartStrategy) -> None:
    assert parse_strategy(str(strategy)) == strategy


@st.composite
def histories(draw: st.DrawFn) -> list[JobFailure]:
    now, failures = NOON, []
    healths = st.timedeltas(timedelta(0), 2 * HEALTHY)
    for healthy in draw(st.lists(healths, min_size=1, max_size=60)):
        now += healthy
        failures.append(failed(now, healthy=healthy))
    return failures


@given(exponentials(), histories())
def test_exponential_waits_lie_between_the_first_and_the_longest_and_only_grow(
    strategy: Exponential, failures: list[JobFailure]
) -> None:
    before = timedelta(0)
    for count, failure in enumerate(failures, start=1):
        wait = strategy.next_delay(failures[:count])
        assert wait is not None
        assert strategy.first <= wait <= strategy.longest
        if failure.healthy >= HEALTHY:
            assert wait == strategy.first
        else:
            assert wait >= before
        before = wait


@given(STRATEGIES, histories())
def test_what_lies_beyond_a_strategys_memory_changes_nothing(
    strategy: RestartStrategy, failures: list[JobFailure]
) -> None:
    remembered = failures[-strategy.memory :]
    assert strategy.next_delay(remembered) == strategy.next_delay(failures)


@given(STRATEGIES, histories())
def test_a_strategy_decides_the_same_each_time_it_is_asked(
    strategy: RestartStrategy, failures: list[JobFailure]
) -> None:
    assert strategy.next_delay(failures) == strategy.next_delay(failures)


def test_a_failure_is_told_as_json() -> None:
    assert encode(failed(healthy=timedelta(seconds=90))) == {
        "attempt": 1,
        "at": "2026-11-15T12:00:00+00:00",
        "code": "DRIVER_DIED",
        "message": "killed",
        "root_cause": "SIGKILL",
        "where": "driver",
        "retryable": True,
        "healthy_s": 90.0,
        "hint": "",
        "domain": "",
    }
