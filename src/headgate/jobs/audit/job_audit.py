"""The audit of a job: whether each of its records is in its outputs, and no more than once.

Records are read, never inferred: offsets are not counts on topics with transactions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headgate.connectors.contract.audit import AuditProgress, Meter
from headgate.errors import HeadgateError
from headgate.flow.names import did_you_mean
from headgate.flow.operators.nodes import Source
from headgate.jobs.audit.report import Audit
from headgate.jobs.audit.scope import Scope, find_scope
from headgate.jobs.job_folder import JobFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequest:
    """What is to be audited.

    Attributes:
        lineage: A run of the job; by default its present one.
        at: The last kept checkpoint that counts; by default the last committed batch.
        key: Columns to compare; by default positions are compared.
        source: A stream of the flow; by default all of them, or by key the only one.
        outputs: By key: the outputs to read; by default all.
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
    """Return the lost and duplicated records of a job, which may be running.

    Args:
        progress: Called now and then, topic by topic.
    """
    scope = find_scope(home, lineage=request.lineage, at=request.at)
    streams = _choose(scope, request.source)
    meter = Meter(progress)
    # These import numpy and Kafka's client, which other verbs do not need.
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
