"""The life of a job: every event in every state, and what follows."""

from collections import deque
from dataclasses import replace
from datetime import timedelta

import pytest
from fake_clock import NOON, FakeClock
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import Domain, HeadgateError
from headgate.jobs.lifecycle.failures import Failure
from headgate.jobs.lifecycle.machine import Machine, refusal, step
from headgate.jobs.lifecycle.restart import parse_strategy
from headgate.jobs.lifecycle.states import TRANSITIONS, JobState
from headgate.jobs.lifecycle.vocabulary import (
    AbandonSavepoint,
    Action,
    AttemptEnded,
    AttemptFailed,
    AttemptRunning,
    Event,
    Finish,
    HostStopWanted,
    Interrupted,
    KillAttempt,
    LaunchAttempt,
    Order,
    OrderAttempt,
    RestartDue,
    SavepointEnded,
    ScheduleRestart,
    Submitted,
    TakeSavepoint,
    Verb,
    Wanted,
)

FINAL = {JobState.STOPPED, JobState.CANCELED, JobState.FAILED, JobState.FINISHED}


def failure(*, retryable: bool = True, code: str = "DRIVER_DIED") -> Failure:
    return Failure(NOON, code, "the driver was killed", "SIGKILL", "driver", retryable)


def machine(strategy: str = "fixed-delay:2,10s") -> Machine:
    return Machine(job="orders", strategy=parse_strategy(strategy))


def feed(job: Machine, *events: Event) -> tuple[Machine, tuple[Action, ...]]:
    """Return the job after all events, and the actions of the last."""
    actions: tuple[Action, ...] = ()
    for event in events:
        job, actions = step(job, event)
    return job, actions


def at(state: JobState, strategy: str = "fixed-delay:2,10s") -> Machine:
    """Return a job that has come into a state on the shortest way."""
    begun, running = Submitted(NOON), AttemptRunning(NOON)
    ways: dict[JobState, tuple[Event, ...]] = {
        JobState.STARTING: (),
        JobState.RUNNING: (running,),
        JobState.RESTARTING: (running, AttemptFailed(NOON, failure())),
        JobState.PAUSED: (running, Wanted(NOON, Verb.PAUSE)),
        JobState.STOPPING: (running, Wanted(NOON, Verb.STOP)),
        JobState.STOPPED: (running, Wanted(NOON, Verb.STOP), AttemptEnded(NOON, caught_up=False)),
        JobState.CANCELING: (running, Wanted(NOON, Verb.CANCEL)),
        JobState.CANCELED: (running, Wanted(NOON, Verb.CANCEL), AttemptFailed(NOON, failure())),
        JobState.FAILED: (running, AttemptFailed(NOON, failure(retryable=False))),
        JobState.FINISHED: (running, AttemptEnded(NOON, caught_up=True)),
    }
    job, _ = feed(machine(strategy), begun, *ways[state])
    assert job.state is state
    return job


def refused(job: Machine, event: Event) -> HeadgateError:
    with pytest.raises(HeadgateError) as caught:
        step(job, event)
    assert caught.value.code == "ILLEGAL_TRANSITION"
    return caught.value


# Starting and running


def test_a_submitted_job_launches_its_first_attempt() -> None:
    job, actions = feed(machine(), Submitted(NOON))
    assert (job.state, job.attempt, job.restarts) == (JobState.STARTING, 1, 0)
    assert job.started_at == job.since == NOON
    assert actions == (LaunchAttempt(1),)


def test_a_job_runs_once_its_attempt_does() -> None:
    clock = FakeClock()
    job, actions = feed(machine(), Submitted(clock.now()), AttemptRunning(clock.advance(seconds=7)))
    assert (job.state, actions) == (JobState.RUNNING, ())
    assert job.healthy_since == job.since == clock.now()
    assert job.started_at == NOON


def test_a_job_that_has_caught_up_is_finished() -> None:
    job, actions = feed(at(JobState.RUNNING), AttemptEnded(NOON, caught_up=True))
    assert (job.state, actions) == (JobState.FINISHED, (Finish(JobState.FINISHED),))
    assert job.reason == "all that was there has been read"


def test_an_attempt_that_ends_unasked_leaves_a_stopped_job_that_says_so() -> None:
    job, actions = feed(at(JobState.RUNNING), AttemptEnded(NOON, caught_up=False))
    assert (job.state, actions) == (JobState.STOPPED, (Finish(JobState.STOPPED),))
    assert job.reason == "attempt 1 ended without a request"


# Failures


@pytest.mark.parametrize("state", [JobState.STARTING, JobState.RUNNING, JobState.PAUSED])
def test_a_failure_is_followed_by_the_wait_of_the_strategy(state: JobState) -> None:
    job, actions = feed(at(state), AttemptFailed(NOON, failure()))
    assert job.state is JobState.RESTARTING
    assert actions == (ScheduleRestart(timedelta(seconds=10)),)
    assert job.restart_after == timedelta(seconds=10)
    assert job.reason == "attempt 1 failed: DRIVER_DIED the driver was killed"


def test_the_next_attempt_follows_the_wait_and_the_job_still_tells_of_the_last() -> None:
    job, actions = feed(at(JobState.RESTARTING), RestartDue(NOON))
    assert (job.state, job.attempt, job.restarts) == (JobState.STARTING, 2, 1)
    assert actions == (LaunchAttempt(2),)
    job, _ = feed(job, AttemptRunning(NOON))
    told = job.to_json()
    assert (told["state"], told["attempt"], told["restarts"]) == ("RUNNING", 2, 1)
    assert told["reason"] == "attempt 1 failed: DRIVER_DIED the driver was killed"
    assert told["last_failure"]["attempt"] == 1
    assert told["last_failure"]["root_cause"] == "SIGKILL"
    assert told["restart_after_s"] is None


def test_a_job_fails_when_the_strategy_gives_up() -> None:
    job = at(JobState.RUNNING)
    for _ in range(2):
        job, _ = feed(job, AttemptFailed(NOON, failure()), RestartDue(NOON), AttemptRunning(NOON))
    job, actions = feed(job, AttemptFailed(NOON, failure()))
    assert (job.state, actions) == (JobState.FAILED, (Finish(JobState.FAILED),))
    assert [each.attempt for each in job.failures] == [1, 2, 3]
    assert job.reason == (
        "attempt 3 failed: DRIVER_DIED the driver was killed; "
        "the strategy fixed-delay:2,10s allows no other attempt"
    )


def test_a_failure_that_waiting_does_not_mend_ends_the_job_at_once() -> None:
    broken = failure(retryable=False, code="SCHEMA_CHANGED")
    job, actions = feed(at(JobState.STARTING), AttemptFailed(NOON, broken))
    assert (job.state, actions) == (JobState.FAILED, (Finish(JobState.FAILED),))
    assert job.reason.endswith("; a later attempt cannot succeed")


def test_the_wait_starts_again_after_ten_minutes_of_health() -> None:
    clock = FakeClock()
    job, _ = feed(machine("exponential:1s,60s,2"), Submitted(clock.now()))
    waits = []
    for minutes in (1, 1, 1, 10, 1):
        job, _ = feed(job, AttemptRunning(clock.now()))
        job, actions = feed(job, AttemptFailed(clock.advance(minutes=minutes), failure()))
        waits += [each.after.seconds for each in actions if isinstance(each, ScheduleRestart)]
        job, _ = feed(job, RestartDue(clock.advance(seconds=waits[-1])))
    assert waits == [1, 2, 4, 1, 2]


def test_health_is_counted_from_when_the_attempt_ran_not_from_its_launch() -> None:
    clock = FakeClock()
    job, _ = feed(machine(), Submitted(clock.now()), AttemptRunning(clock.advance(minutes=9)))
    job, _ = feed(job, AttemptFailed(clock.advance(minutes=2), failure()), RestartDue(clock.now()))
    job, _ = feed(job, AttemptFailed(clock.advance(minutes=30), failure()))
    assert [each.healthy for each in job.failures] == [timedelta(minutes=2), timedelta(0)]


def test_a_clock_that_was_put_back_takes_no_health_away() -> None:
    job, _ = feed(at(JobState.RUNNING), AttemptFailed(NOON - timedelta(hours=1), failure()))
    assert job.failures[-1].healthy == timedelta(0)


def test_failures_in_a_row_are_counted_until_an_attempt_was_healthy() -> None:
    job, _ = feed(machine("exponential:1s,1m,2"), Submitted(NOON))
    for _ in range(30):
        job, _ = feed(job, AttemptFailed(NOON, failure()), RestartDue(NOON))
    assert (job.state, job.to_json()["failures"]) == (JobState.STARTING, 30)
    assert job.to_json()["reason"] == "attempt 30 failed: DRIVER_DIED the driver was killed"
    later = NOON + timedelta(minutes=10)
    job, _ = feed(job, AttemptRunning(NOON), AttemptFailed(later, failure()))
    assert job.to_json()["failures"] == 1


def test_a_job_that_fails_for_ever_remembers_only_its_last_failures() -> None:
    job = at(JobState.STARTING, "exponential:1s,60s,1.5")
    for _ in range(200):
        job, _ = feed(job, AttemptFailed(NOON, failure()), RestartDue(NOON))
    assert job.attempt == 201
    assert [each.attempt for each in job.failures] == list(range(181, 201))


def test_a_strategy_with_many_restarts_is_given_all_the_failures_it_counts() -> None:
    job = at(JobState.STARTING, "fixed-delay:100,0s")
    for _ in range(100):
        job, actions = feed(job, AttemptFailed(NOON, failure()))
        assert actions == (ScheduleRestart(timedelta(0)),)
        job, _ = feed(job, RestartDue(NOON))
    job, _ = feed(job, AttemptFailed(NOON, failure()))
    assert (job.state, job.attempt) == (JobState.FAILED, 101)


# Pause and resume


def test_a_running_job_pauses_and_resumes() -> None:
    paused, held = feed(at(JobState.RUNNING), Wanted(NOON, Verb.PAUSE))
    assert (paused.state, held) == (JobState.PAUSED, (OrderAttempt(Order.HOLD),))
    running, opened = feed(paused, Wanted(NOON, Verb.RESUME))
    assert (running.state, opened) == (JobState.RUNNING, (OrderAttempt(Order.OPEN),))
    assert not running.held


def test_a_paused_job_that_fails_is_paused_again_after_its_restart() -> None:
    job, _ = feed(at(JobState.PAUSED), AttemptFailed(NOON, failure()))
    job, actions = feed(job, RestartDue(NOON))
    assert actions == (LaunchAttempt(2), OrderAttempt(Order.HOLD))
    job, actions = feed(job, AttemptRunning(NOON))
    assert (job.state, actions) == (JobState.PAUSED, ())


def test_a_job_can_be_paused_before_it_runs() -> None:
    job, actions = feed(at(JobState.STARTING), Wanted(NOON, Verb.PAUSE))
    assert (job.state, actions) == (JobState.STARTING, (OrderAttempt(Order.HOLD),))
    assert feed(job, AttemptRunning(NOON))[0].state is JobState.PAUSED
    job, actions = feed(job, Wanted(NOON, Verb.RESUME))
    assert (job.state, actions) == (JobState.STARTING, (OrderAttempt(Order.OPEN),))
    assert feed(job, AttemptRunning(NOON))[0].state is JobState.RUNNING


def test_a_job_between_two_attempts_is_paused_and_resumed_without_an_order() -> None:
    job, actions = feed(at(JobState.RESTARTING), Wanted(NOON, Verb.PAUSE))
    assert (job.state, job.held, actions) == (JobState.RESTARTING, True, ())
    job, actions = feed(job, Wanted(NOON, Verb.RESUME))
    assert (job.state, job.held, actions) == (JobState.RESTARTING, False, ())


# Stop


@pytest.mark.parametrize("state", [JobState.STARTING, JobState.RUNNING, JobState.PAUSED])
def test_a_stop_ends_the_attempt_before_its_next_batch(state: JobState) -> None:
    job, actions = feed(at(state), Wanted(NOON, Verb.STOP))
    assert (job.state, actions) == (JobState.STOPPING, (OrderAttempt(Order.STOP),))
    job, actions = feed(job, AttemptEnded(NOON, caught_up=False))
    assert (job.state, actions) == (JobState.STOPPED, (Finish(JobState.STOPPED),))
    assert job.reason == ""


def test_an_attempt_that_begins_to_run_while_it_is_stopped_changes_nothing() -> None:
    job, _ = feed(at(JobState.STARTING), Wanted(NOON, Verb.STOP))
    assert feed(job, AttemptRunning(NOON)) == (job, ())


def test_a_drain_reads_what_is_there_and_stops() -> None:
    job, actions = feed(at(JobState.RUNNING), Wanted(NOON, Verb.STOP, drain=True))
    assert (job.state, actions) == (JobState.STOPPING, (OrderAttempt(Order.DRAIN),))
    job, _ = feed(job, AttemptEnded(NOON, caught_up=True))
    assert job.state is JobState.STOPPED


def test_a_paused_job_is_opened_before_it_is_drained() -> None:
    _, actions = feed(at(JobState.PAUSED), Wanted(NOON, Verb.STOP, drain=True))
    assert actions == (OrderAttempt(Order.OPEN), OrderAttempt(Order.DRAIN))


def test_a_plain_stop_cuts_a_drain_short_and_keeps_its_savepoint() -> None:
    job, _ = feed(at(JobState.RUNNING), Wanted(NOON, Verb.STOP, drain=True, savepoint="/save"))
    job, actions = feed(job, Wanted(NOON, Verb.STOP))
    assert (job.state, job.savepoint, actions) == (
        JobState.STOPPING,
        "/save",
        (OrderAttempt(Order.STOP),),
    )
    assert refused(job, Wanted(NOON, Verb.STOP)).hint == "headgate cancel orders"


@pytest.mark.parametrize("to", ["/backups/orders", ""])
def test_a_savepoint_is_taken_once_the_attempt_has_ended(to: str) -> None:
    job, actions = feed(at(JobState.RUNNING), Wanted(NOON, Verb.STOP, savepoint=to))
    assert actions == (OrderAttempt(Order.STOP),)
    job, actions = feed(job, AttemptEnded(NOON, caught_up=False))
    assert (job.state, actions) == (JobState.STOPPING, (TakeSavepoint(to),))
    job, actions = feed(job, SavepointEnded(NOON))
    assert (job.state, actions) == (JobState.STOPPED, (Finish(JobState.STOPPED),))


def test_a_failure_while_stopping_fails_the_job_and_tells_of_the_savepoint() -> None:
    job, _ = feed(at(JobState.RUNNING), Wanted(NOON, Verb.STOP, savepoint="/save"))
    job, actions = feed(job, AttemptFailed(NOON, failure()))
    assert (job.state, actions) == (JobState.FAILED, (Finish(JobState.FAILED),))
    assert job.reason == (
        "attempt 1 failed: DRIVER_DIED the driver was killed; it was being stopped, "
        "and the savepoint that was asked for was not taken"
    )


def test_a_failure_ends_a_plain_stop_which_wanted_no_more_and_the_reason_is_told() -> None:
    job, actions = feed(at(JobState.STOPPING), AttemptFailed(NOON, failure()))
    assert (job.state, actions) == (JobState.STOPPED, (Finish(JobState.STOPPED),))
    assert job.reason.endswith("the driver was killed; it was being stopped")


def test_a_failure_while_draining_fails_the_job_since_records_are_left() -> None:
    job, _ = feed(at(JobState.RUNNING), Wanted(NOON, Verb.STOP, drain=True))
    job, _ = feed(job, AttemptFailed(NOON, failure()))
    assert job.state is JobState.FAILED


def test_a_job_between_two_attempts_stops_at_once() -> None:
    job, actions = feed(at(JobState.RESTARTING), Wanted(NOON, Verb.STOP))
    assert (job.state, actions) == (JobState.STOPPED, (Finish(JobState.STOPPED),))


@pytest.mark.parametrize(
    ("wanted", "flag"),
    [
        (Wanted(NOON, Verb.STOP, drain=True), "--drain"),
        (Wanted(NOON, Verb.STOP, savepoint=""), "--savepoint"),
    ],
)
def test_a_job_between_two_attempts_has_no_batch_to_drain_or_save(
    wanted: Wanted, flag: str
) -> None:
    error = refused(at(JobState.RESTARTING), wanted)
    assert error.message.startswith(f"cannot stop job 'orders' with {flag}: it is RESTARTING")
    assert error.hint == "headgate stop orders"


# Cancel


@pytest.mark.parametrize(
    "state", [JobState.STARTING, JobState.RUNNING, JobState.PAUSED, JobState.STOPPING]
)
def test_a_cancel_kills_the_attempt_at_once(state: JobState) -> None:
    job, actions = feed(at(state), Wanted(NOON, Verb.CANCEL))
    assert (job.state, actions) == (JobState.CANCELING, (KillAttempt(),))


@pytest.mark.parametrize(
    "end", [AttemptFailed(NOON, failure()), AttemptEnded(NOON, caught_up=True)]
)
def test_a_cancelled_job_is_done_once_its_attempt_is_gone(end: Event) -> None:
    job, _ = feed(at(JobState.CANCELING), AttemptRunning(NOON))
    job, actions = feed(job, end)
    assert (job.state, actions) == (JobState.CANCELED, (Finish(JobState.CANCELED),))
    assert (job.failures, job.reason) == ((), "")


def test_a_job_between_two_attempts_is_cancelled_at_once() -> None:
    job, actions = feed(at(JobState.RESTARTING), Wanted(NOON, Verb.CANCEL))
    assert (job.state, actions) == (JobState.CANCELED, (Finish(JobState.CANCELED),))


def test_a_cancel_gives_up_the_savepoint_of_the_stop_before() -> None:
    job, _ = feed(
        at(JobState.RUNNING), Wanted(NOON, Verb.STOP, savepoint=""), Wanted(NOON, Verb.CANCEL)
    )
    _, actions = feed(job, AttemptEnded(NOON, caught_up=False))
    assert actions == (Finish(JobState.CANCELED),)


# Signals, the host, a restart


@pytest.mark.parametrize("state", [JobState.STARTING, JobState.RUNNING, JobState.PAUSED])
def test_the_first_signal_stops_the_second_cancels_and_more_change_nothing(
    state: JobState,
) -> None:
    job, actions = feed(at(state), Interrupted(NOON))
    assert (job.state, actions) == (JobState.STOPPING, (OrderAttempt(Order.STOP),))
    job, actions = feed(job, Interrupted(NOON))
    assert (job.state, actions) == (JobState.CANCELING, (KillAttempt(),))
    for _ in range(3):
        assert feed(job, Interrupted(NOON)) == (job, ())


def test_a_signal_after_a_cancel_changes_nothing() -> None:
    job = at(JobState.CANCELING)
    assert feed(job, Interrupted(NOON)) == (job, ())


@pytest.mark.parametrize("event", [Interrupted(NOON), HostStopWanted(NOON)])
@pytest.mark.parametrize("state", sorted(FINAL))
def test_a_job_that_has_ended_ignores_signals_and_its_host(state: JobState, event: Event) -> None:
    job = at(state)
    assert feed(job, event) == (job, ())


def test_a_signal_between_two_attempts_stops_the_job_at_once() -> None:
    job, actions = feed(at(JobState.RESTARTING), Interrupted(NOON))
    assert (job.state, actions) == (JobState.STOPPED, (Finish(JobState.STOPPED),))


def test_a_signal_to_a_job_whose_attempt_fails_then_leaves_it_stopped() -> None:
    job, _ = feed(at(JobState.STARTING), Interrupted(NOON))
    job, _ = feed(job, AttemptFailed(NOON, failure(retryable=False)))
    assert job.state is JobState.STOPPED
    assert job.reason.startswith("attempt 1 failed: DRIVER_DIED")


def test_the_host_stops_a_job_once_and_leaves_one_that_ends_alone() -> None:
    job, actions = feed(at(JobState.RUNNING), HostStopWanted(NOON))
    assert (job.state, actions) == (JobState.STOPPING, (OrderAttempt(Order.STOP),))
    assert feed(job, HostStopWanted(NOON)) == (job, ())


def test_a_restart_stops_the_job_and_its_refusal_says_restart() -> None:
    job, actions = feed(at(JobState.RUNNING), Wanted(NOON, Verb.RESTART))
    assert (job.state, actions) == (JobState.STOPPING, (OrderAttempt(Order.STOP),))
    error = refused(job, Wanted(NOON, Verb.RESTART))
    assert error.message == "cannot restart job 'orders': it is STOPPING"


# Savepoints

SAVE, SAVED = Wanted(NOON, Verb.SAVEPOINT, savepoint="/save"), SavepointEnded(NOON)


def saving(state: JobState = JobState.RUNNING) -> Machine:
    """Return a job in a state while a savepoint of it is being taken."""
    job, actions = feed(at(state), SAVE)
    assert actions == (TakeSavepoint("/save"),)
    return job


@pytest.mark.parametrize(
    "state",
    [
        JobState.STARTING,
        JobState.RUNNING,
        JobState.PAUSED,
        JobState.RESTARTING,
        JobState.STOPPING,
    ],
)
def test_a_savepoint_is_taken_while_the_job_goes_on(state: JobState) -> None:
    job = saving(state)
    assert (job.state, job.saving) == (state, True)
    assert feed(job, SAVED) == (at(state), ())


@pytest.mark.parametrize("state", [JobState.CANCELING, *sorted(FINAL)])
def test_a_job_that_is_canceled_or_has_ended_takes_no_savepoint(state: JobState) -> None:
    assert refused(at(state), SAVE).message == (
        f"cannot take a savepoint of job 'orders': it is {state}"
    )


def test_a_second_savepoint_is_refused_while_the_first_is_taken() -> None:
    for job in (saving(), feed(at(JobState.RUNNING), Wanted(NOON, Verb.STOP, savepoint=""))[0]):
        with pytest.raises(HeadgateError) as caught:
            step(job, SAVE)
        assert (caught.value.code, caught.value.retryable) == ("JOB_BUSY", True)
    again, actions = feed(saving(), SAVED, SAVE)
    assert (again, actions) == (saving(), (TakeSavepoint("/save"),))


def test_pause_and_resume_are_followed_while_a_savepoint_is_taken() -> None:
    job, actions = feed(saving(), Wanted(NOON, Verb.PAUSE))
    assert (job.state, job.saving, actions) == (JobState.PAUSED, True, (OrderAttempt(Order.HOLD),))
    job, actions = feed(job, Wanted(NOON, Verb.RESUME))
    assert (job, actions) == (saving(), (OrderAttempt(Order.OPEN),))


def test_an_attempt_that_dies_during_a_savepoint_is_restarted_and_the_savepoint_goes_on() -> None:
    job, actions = feed(saving(), AttemptFailed(NOON, failure()))
    assert (job.state, job.saving) == (JobState.RESTARTING, True)
    assert actions == (ScheduleRestart(timedelta(seconds=10)),)
    job, actions = feed(job, RestartDue(NOON))
    assert (job.state, job.saving, actions) == (JobState.STARTING, True, (LaunchAttempt(2),))
    assert feed(job, SAVED)[0] == replace(job, saving=False)


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (AttemptFailed(NOON, failure(retryable=False)), JobState.FAILED),
        (AttemptEnded(NOON, caught_up=True), JobState.FINISHED),
        (AttemptEnded(NOON, caught_up=False), JobState.STOPPED),
    ],
)
def test_a_job_that_ends_during_a_savepoint_waits_for_it(end: Event, state: JobState) -> None:
    job, actions = feed(saving(), end)
    assert (job.state, actions) == (JobState.STOPPING, ())
    assert refused(job, Wanted(NOON, Verb.STOP)).hint == "headgate cancel orders"
    done, actions = feed(job, SAVED)
    assert (done.state, done.ending, actions) == (state, None, (Finish(state),))
    assert done.reason == job.reason


def test_a_signal_during_a_savepoint_stops_the_job_which_waits_for_the_savepoint() -> None:
    job, actions = feed(saving(), Interrupted(NOON))
    assert (job.state, actions) == (JobState.STOPPING, (OrderAttempt(Order.STOP),))
    job, actions = feed(job, AttemptEnded(NOON, caught_up=False))
    assert (job.state, actions) == (JobState.STOPPING, ())
    assert feed(job, SAVED)[0].state is JobState.STOPPED
    # A second one gives the savepoint up; there is no attempt left to kill.
    job, actions = feed(job, Interrupted(NOON))
    assert (job.state, actions) == (JobState.CANCELING, (AbandonSavepoint(),))
    assert feed(job, SAVED)[1] == (Finish(JobState.CANCELED),)


@pytest.mark.parametrize(
    ("first", "second"),
    [(AttemptFailed(NOON, failure()), SAVED), (SAVED, AttemptFailed(NOON, failure()))],
)
def test_a_cancel_during_a_savepoint_ends_both_and_is_done_when_both_have_ended(
    first: Event, second: Event
) -> None:
    job, actions = feed(saving(), Wanted(NOON, Verb.CANCEL))
    assert (job.state, actions) == (JobState.CANCELING, (KillAttempt(), AbandonSavepoint()))
    job, actions = feed(job, first)
    assert (job.state, actions) == (JobState.CANCELING, ())
    job, actions = feed(job, second)
    assert (job.state, actions) == (JobState.CANCELED, (Finish(JobState.CANCELED),))


@pytest.mark.parametrize(
    ("request_", "actions", "waits", "state"),
    [
        (Wanted(NOON, Verb.STOP), (), JobState.STOPPING, JobState.STOPPED),
        (Wanted(NOON, Verb.CANCEL), (AbandonSavepoint(),), JobState.CANCELING, JobState.CANCELED),
    ],
)
def test_a_job_between_two_attempts_ends_after_its_savepoint_and_its_timer_is_ignored(
    request_: Event, actions: tuple[Action, ...], waits: JobState, state: JobState
) -> None:
    job, done = feed(saving(JobState.RESTARTING), request_)
    assert (job.state, done) == (waits, actions)
    assert feed(job, RestartDue(NOON)) == (job, ())
    assert feed(job, SAVED)[0].state is state


def test_the_savepoint_of_a_stop_follows_the_one_that_is_being_taken() -> None:
    wanted = Wanted(NOON, Verb.STOP, savepoint="/last", intent=7)
    job, _ = feed(saving(), wanted, AttemptEnded(NOON, caught_up=False))
    job, actions = feed(job, SAVED)
    assert (job.state, actions) == (JobState.STOPPING, (TakeSavepoint("/last", 7),))
    assert feed(job, SAVED)[1] == (Finish(JobState.STOPPED),)


# Refusals

STOP, CANCEL, PAUSE, RESUME = (
    Wanted(NOON, Verb.STOP),
    Wanted(NOON, Verb.CANCEL),
    Wanted(NOON, Verb.PAUSE),
    Wanted(NOON, Verb.RESUME),
)


@pytest.mark.parametrize(
    ("state", "wanted", "told", "hint"),
    [
        (JobState.STOPPED, PAUSE, "cannot pause job 'orders': it is STOPPED", "start"),
        (JobState.FAILED, RESUME, "cannot resume job 'orders': it is FAILED", "start"),
        (JobState.PAUSED, PAUSE, "cannot pause job 'orders': it is PAUSED", "resume"),
        (JobState.RUNNING, RESUME, "cannot resume job 'orders': it is RUNNING", "show"),
        (JobState.STOPPING, PAUSE, "cannot pause job 'orders': it is STOPPING", "show"),
        (JobState.STOPPING, STOP, "cannot stop job 'orders': it is STOPPING", "cancel"),
        (JobState.CANCELING, STOP, "cannot stop job 'orders': it is CANCELING", "show"),
        (JobState.CANCELING, CANCEL, "cannot cancel job 'orders': it is CANCELING", "show"),
        (JobState.FINISHED, STOP, "cannot stop job 'orders': it is FINISHED", "show"),
        (JobState.CANCELED, CANCEL, "cannot cancel job 'orders': it is CANCELED", "show"),
    ],
)
def test_what_cannot_be_done_now_is_refused_in_the_users_words(
    state: JobState, wanted: Event, told: str, hint: str
) -> None:
    error = refused(at(state), wanted)
    assert (error.message, error.domain) == (told, Domain.USER)
    assert error.hint == f"headgate {hint} orders"


def test_a_verb_is_refused_alike_where_no_machine_is_at_hand() -> None:
    error = refusal("orders", "pause", JobState.STOPPED)
    assert str(error) == str(refused(at(JobState.STOPPED), Wanted(NOON, Verb.PAUSE)))


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (JobState.RUNNING, Submitted(NOON)),
        (JobState.RUNNING, AttemptRunning(NOON)),
        (JobState.RUNNING, RestartDue(NOON)),
        (JobState.RESTARTING, AttemptFailed(NOON, failure())),
        (JobState.RESTARTING, AttemptEnded(NOON, caught_up=True)),
        (JobState.RESTARTING, AttemptRunning(NOON)),
    ],
)
def test_an_event_that_cannot_be_is_a_bug_and_raises(state: JobState, event: Event) -> None:
    assert refused(at(state), event).domain is Domain.INTERNAL


def test_nothing_happens_to_a_job_before_it_is_submitted() -> None:
    assert refused(machine(), AttemptRunning(NOON)).domain is Domain.INTERNAL
    assert refused(machine(), Wanted(NOON, Verb.PAUSE)).domain is Domain.USER


def test_a_move_that_is_not_in_the_table_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    job = at(JobState.RUNNING)
    monkeypatch.setattr(
        "headgate.jobs.lifecycle.machine.TRANSITIONS", {JobState.RUNNING: frozenset()}
    )
    error = refused(job, Wanted(NOON, Verb.PAUSE))
    assert error.domain is Domain.INTERNAL
    assert error.message.startswith("cannot move job 'orders' from RUNNING to PAUSED")


# All of it

EVERY_EVENT: list[Event] = [
    AttemptRunning(NOON),
    AttemptFailed(NOON, failure()),
    AttemptFailed(NOON, failure(retryable=False)),
    AttemptEnded(NOON, caught_up=True),
    AttemptEnded(NOON, caught_up=False),
    RestartDue(NOON),
    Wanted(NOON, Verb.STOP),
    Wanted(NOON, Verb.STOP, drain=True),
    Wanted(NOON, Verb.STOP, savepoint=""),
    Wanted(NOON, Verb.CANCEL),
    Wanted(NOON, Verb.PAUSE),
    Wanted(NOON, Verb.RESUME),
    Wanted(NOON, Verb.RESTART),
    Wanted(NOON, Verb.SAVEPOINT),
    SavepointEnded(NOON),
    Interrupted(NOON),
    HostStopWanted(NOON),
    Submitted(NOON),
]


def test_the_moves_that_events_make_are_those_of_the_table() -> None:
    first, _ = feed(machine("fixed-delay:1,1s"), Submitted(NOON))
    seen, todo = {first}, deque([first])
    moves = set()
    while todo:
        job = todo.popleft()
        for event in EVERY_EVENT:
            try:
                after, _ = step(job, event)
            except HeadgateError:
                continue
            if after.state is not job.state:
                moves.add((job.state, after.state))
            if after not in seen:
                seen.add(after)
                todo.append(after)
    declared = {(before, after) for before, moves in TRANSITIONS.items() for after in moves}
    assert moves == {move for move in declared if JobState.RESCALING not in move}


def test_every_state_is_in_the_table_and_the_final_ones_lead_nowhere() -> None:
    assert set(TRANSITIONS) == set(JobState)
    assert {state for state in JobState if state.is_final} == FINAL


def attempt_step(job: Machine, event: Event) -> tuple[Machine, tuple[Action, ...], str]:
    """Return what a step gives, or the code it is refused with; a move outside the table raises."""
    try:
        return *step(job, event), ""
    except HeadgateError as error:
        if "no such transition" in error.message:
            raise
        return job, (), error.code


def alive(actions: tuple[Action, ...], before: bool, event: Event) -> bool:
    """Tell whether an attempt is alive after a step, as the supervisor would know it."""
    ended = isinstance(event, AttemptFailed | AttemptEnded)
    launched = any(isinstance(action, LaunchAttempt) for action in actions)
    return launched or (before and not ended)


ORDERS = (OrderAttempt, KillAttempt)


@given(
    st.sampled_from(["exponential:1s,60s,1.5", "fixed-delay:3,1s", "failure-rate:2,1m,1s", "none"]),
    st.lists(st.tuples(st.sampled_from(EVERY_EVENT), st.integers(0, 900)), max_size=60),
)
def test_no_sequence_of_events_breaks_a_promise(
    strategy: str, events: list[tuple[Event, int]]
) -> None:
    clock = FakeClock()
    job, actions = step(machine(strategy), Submitted(clock.now()))
    has_attempt = True
    for event, seconds in events:
        event = replace(event, at=clock.advance(seconds=seconds))
        after, actions, code = attempt_step(job, event)
        if code:
            assert code in ("ILLEGAL_TRANSITION", "JOB_BUSY")
            assert not isinstance(event, Interrupted | HostStopWanted), "never refused"
            continue
        if job.state in FINAL:
            assert isinstance(event, Interrupted | HostStopWanted)
            assert (after, actions) == (job, ()), "a job that is done does nothing more"
            continue
        assert after.state is job.state or after.state in TRANSITIONS[job.state]
        launches = [each.attempt for each in actions if isinstance(each, LaunchAttempt)]
        assert after.attempt == job.attempt + len(launches)
        assert launches in ([], [after.attempt])
        assert not (has_attempt and launches), "two attempts never live at once"
        has_attempt = alive(actions, has_attempt, event)
        assert has_attempt or not any(isinstance(each, ORDERS) for each in actions)
        assert not (has_attempt and after.state in FINAL)
        finishes = [each.state for each in actions if isinstance(each, Finish)]
        assert finishes == ([after.state] if after.state in FINAL else [])
        saves = sum(isinstance(each, TakeSavepoint) for each in actions)
        ended = isinstance(event, SavepointEnded)
        assert after.saving == (job.saving + saves - ended), "one savepoint at a time"
        assert not (after.saving and after.state in FINAL), "the end waits for a savepoint"
        waits = any(isinstance(each, ScheduleRestart) for each in actions)
        assert waits is (after.state is JobState.RESTARTING is not job.state)
        assert after.since == (event.at if after.state is not job.state else job.since)
        job = after
