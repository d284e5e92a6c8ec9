"""What is shown of jobs, without the secrets that their texts may hold; reads disk."""

from __future__ import annotations

from dataclasses import replace

from headgate.errors import HeadgateError
from headgate.jobs.service import Events, Exceptions, JobView
from headgate.server.context import ServerContext


def hide_job(context: ServerContext, job: JobView) -> JobView:
    """Return a job whose texts can be shown."""
    return replace(
        job,
        reason=context.hide(job.reason),
        todo=context.hide(job.todo),
        status=context.hide_in(dict(job.status)),
    )


def hide_exceptions(context: ServerContext, found: Exceptions) -> Exceptions:
    """Return failures and attempts whose texts can be shown."""
    hide = context.hide
    failures = tuple(
        replace(
            each,
            message=hide(each.message),
            root_cause=hide(each.root_cause),
            hint=hide(each.hint),
        )
        for each in found.failures
    )
    attempts = tuple(replace(each, reason=hide(each.reason)) for each in found.attempts)
    return replace(found, failures=failures, attempts=attempts)


def hide_events(context: ServerContext, found: Events) -> Events:
    """Return events whose facts can be shown."""
    events = (replace(each, facts=context.hide_in(dict(each.facts))) for each in found.events)
    return replace(found, events=tuple(events))


def hide_error(context: ServerContext, error: HeadgateError) -> HeadgateError:
    """Return an error whose texts can be shown."""
    return HeadgateError(
        error.code,
        context.hide(error.message),
        hint=context.hide(error.hint),
        domain=error.domain,
        retryable=error.retryable,
    )
