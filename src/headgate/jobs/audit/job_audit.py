"""Auditing a job: are its records in its outputs, and each as often as it ought to be?

Records are read, never inferred: offsets are not counts on topics with transactions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.connectors.audit import AuditProgress, Meter
from headgate.errors import HeadgateError
from headgate.flow.names import did_you_mean
from headgate.flow.operators import Source
from headgate.jobs.audit.report import Audit
from headgate.jobs.audit.scope import find_scope
from headgate.jobs.job_folder import JobFolder

if TYPE_CHECKING:
    from headgate.jobs.audit.scope import Scope

__all__ = ["Audit", "AuditProgress", "AuditRequest", "audit_job"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequest:
    """What is to be audited.

    Attributes:
        lineage: A run of the job; its present one where left out.
        at: A kept checkpoint to which the run counts; its last committed batch where left out.
        key: Columns to compare; positions are compared where there are none.
        source: A stream of the flow; all of them where left out, by key the only one.
        outputs: By key: those that are looked at; all where left out.
    """

    lineage: str | None = None
    at: str | None = None
    key: tuple[str, ...] = ()
    source: str | None = None
    outputs: tuple[str, ...] = ()


def audit_job(
    home: JobFolder,
    request: AuditRequest,
    *,
    progress: Callable[[AuditProgress], None] = lambda _: None,
) -> Audit:
    """Return what of a job's records is lost and what is doubled. The job may run meanwhile.

    Args:
        progress: Told now and then, topic by topic.

    Raises:
        HeadgateError: What cannot be audited, and why; what reading raises.
    """
    scope = find_scope(home, lineage=request.lineage, at=request.at)
    streams = _choose(scope, request.source)
    meter = Meter(progress)
    # These bring numpy and Kafka's client, which the other verbs do not wait for.
    if not request.key:
        from headgate.jobs.audit.by_position import audit_positions

        return audit_positions(scope, streams, meter)
    from headgate.jobs.audit.by_key import audit_keys

    if len(streams) > 1:
        raise HeadgateError(
            "AUDIT_NEEDS_SOURCE",
            f"cannot audit job {home.name!r} by key: its flow reads "
            f"{', '.join(node.id for node in streams)}, so the source must be named",
            hint=f"headgate audit {home.name} --source {streams[0].id} "
            f"--key {','.join(request.key)}",
        )
    return audit_keys(scope, streams[0], request.key, request.outputs, meter)


def _choose(scope: Scope, wanted: str | None) -> tuple[Source, ...]:
    streams = scope.flow.streams()
    chosen = tuple(node for node in streams if wanted in (None, node.id))
    if not chosen:
        known = [node.id for node in streams]
        raise HeadgateError(
            "NODE_UNKNOWN",
            f"cannot audit source {wanted!r} of job {scope.job!r}: the flow reads the streams "
            f"{', '.join(known)}",
            hint=did_you_mean(str(wanted), known),
        )
    return chosen
