"""The metrics of a job, one row each; docs/reference/metrics.md lists the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from headgate.engine.attempt.executors import Executor, Executors
from headgate.engine.attempt.vitals import MemoryPool, Vitals
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.metrics.counters import Counters, PortRows
from headgate.jobs.views.job import DEAD, UNREADABLE
from headgate.server.metrics.metric import JobFigures, JobMetric, Kind, Sample

_COUNTER, _GAUGE, _HISTOGRAM = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM
_STATES = (*(state.value for state in JobState), DEAD, UNREADABLE)
_OPERATOR = ("operator", "name")

Read = Callable[[JobFigures], Iterable[Sample]]


def _status(field: str, *, is_operator: bool = False) -> Read:
    """Return the reader of a mapping of the job's status, by source, output or operator."""

    def read(job: JobFigures) -> Iterator[Sample]:
        for part, value in job.of_status(field).items():
            names = (job.name_of(part),) if is_operator else ()
            yield (str(part), *names), float(value)

    return read


def _counts(of: Callable[[Counters], Mapping[str, float]]) -> Read:
    return lambda job: (((part,), float(count)) for part, count in of(job.counters).items())


def _count(of: Callable[[Counters], int]) -> Read:
    return lambda job: [((), float(of(job.counters)))]


def _ports(is_wanted: Callable[[PortRows], bool], *, with_output: bool = False) -> Read:
    def read(job: JobFigures) -> Iterator[Sample]:
        for port in job.counters.ports.values():
            if is_wanted(port):
                outputs = (port.output,) if with_output else ()
                yield (port.operator, job.name_of(port.operator), *outputs), float(port.rows)

    return read


def _optional(value: Callable[[JobFigures], float | None]) -> Read:
    def read(job: JobFigures) -> Iterator[Sample]:
        number = value(job)
        if number is not None:
            yield (), number

    return read


def _states(job: JobFigures) -> Iterator[Sample]:
    return (((state,), float(job.view.state == state)) for state in _STATES)


def _latency(job: JobFigures) -> Iterator[Sample]:
    if job.counters.latency is not None:
        yield (), job.counters.latency


def _uptime(job: JobFigures) -> float | None:
    uptime = job.view.uptime
    return None if uptime is None else max(0.0, uptime.total_seconds())


def _checkpoint_age(job: JobFigures) -> float | None:
    kept = job.checkpoint
    return None if kept is None else max(0.0, (job.now - kept.completed_at).total_seconds())


def _checkpoint_took(job: JobFigures) -> float | None:
    took = None if job.checkpoint is None else job.checkpoint.took
    return None if took is None else took.total_seconds()


def _vitals(of: Callable[[Vitals], float]) -> Read:
    return _optional(lambda job: None if job.vitals is None else float(of(job.vitals)))


def _memory(of: Callable[[MemoryPool], int | None]) -> Read:
    def read(job: JobFigures) -> Iterator[Sample]:
        for name, pool in (job.vitals.pools if job.vitals else {}).items():
            size = of(pool)
            if size is not None:
                yield (name,), float(size)

    return read


def _resident(job: JobFigures) -> Iterator[Sample]:
    if job.vitals is not None:
        yield ("driver",), float(job.vitals.resident)
        yield ("python",), float(sum(job.vitals.workers))


def _executors(of: Callable[[Executors], float]) -> Read:
    return _optional(lambda job: None if job.executors is None else float(of(job.executors)))


def _each_executor(of: Callable[[Executor], Iterable[tuple[tuple[str, ...], float]]]) -> Read:
    """Return the reader of the executors that are there; a lost one has no series."""

    def read(job: JobFigures) -> Iterator[Sample]:
        for executor in job.executors.alive if job.executors else ():
            for labels, value in of(executor):
                yield (executor.id, *labels), float(value)

    return read


def _tasks(executor: Executor) -> Iterator[tuple[tuple[str, ...], float]]:
    yield ("completed",), executor.completed
    yield ("failed",), executor.failed


def _executor_memory(of: Callable[[MemoryPool], int | None]) -> Read:
    def read(executor: Executor) -> Iterator[tuple[tuple[str, ...], float]]:
        for name, pool in (executor.vitals.pools if executor.vitals else {}).items():
            size = of(pool)
            if size is not None:
                yield (name,), size

    return _each_executor(read)


def _executor_processes(executor: Executor) -> Iterator[tuple[tuple[str, ...], float]]:
    if executor.vitals is not None:
        yield ("executor",), executor.vitals.resident
        yield ("python",), sum(executor.vitals.workers)


def _executor_time(of: Callable[[Vitals], float]) -> Read:
    return _each_executor(
        lambda executor: [] if executor.vitals is None else [((), of(executor.vitals))]
    )


def _timestamp(text: Any) -> float | None:
    return datetime.fromisoformat(text).timestamp() if text else None


def _source_watermarks(job: JobFigures) -> Iterator[Sample]:
    for source, times in job.of_status("event_times").items():
        at = _timestamp(times.get("watermark"))
        if at is not None:
            yield (str(source),), at


JOB_METRICS = (
    JobMetric("job_state", _GAUGE, ("state",),
        "1 for the job's state, 0 for the others.", _states),
    JobMetric("job_up", _GAUGE, (),
        "1 while a process supervises the job.",
        lambda job: [((), float(job.view.is_alive))]),
    JobMetric("job_uptime_seconds", _GAUGE, (),
        "Time since the job began to run; missing while it restarts after a failure.",
        _optional(_uptime)),
    JobMetric("job_attempt", _GAUGE, (),
        "Attempts since the job was started.",
        lambda job: [((), float(job.view.attempt))]),
    JobMetric("job_restarts", _COUNTER, ("cause",),
        "Attempts that followed a failed one, by the code of the failure; SUPERVISOR_DIED for a "
        "start after the job's supervisor was killed.",
        _counts(lambda counters: counters.restarts)),
    JobMetric("records_in", _COUNTER, ("source",),
        "Records read.", _counts(lambda counters: counters.records_in)),
    JobMetric("records_out", _COUNTER, ("output",),
        "Rows by output, including dead letters and unused side outputs.",
        _counts(lambda counters: counters.records_out)),
    JobMetric("operator_records_out", _COUNTER, (*_OPERATOR, "output"),
        "Rows that left each output of an operator; `out` if it has a single one.",
        _ports(lambda port: port.output != "!", with_output=True)),
    JobMetric("operator_late_records", _COUNTER, _OPERATOR,
        "Rows that left the output `late` of an operator.",
        _ports(lambda port: port.output == "late")),
    JobMetric("operator_dead_letters", _COUNTER, _OPERATOR,
        "Records that a source or an operator turned into dead letters.",
        _ports(lambda port: port.output == "!")),
    JobMetric("operator_busy_ratio", _GAUGE, _OPERATOR,
        "Share of their time that the tasks of an operator with state were busy in the last five "
        "batches.", _status("busy", is_operator=True)),
    JobMetric("records_per_second", _GAUGE, (),
        "Records read per second in the last five batches; 0 for an idle job.",
        lambda job: [((), float(job.view.records_per_s))]),
    JobMetric("lag_records", _GAUGE, ("source",),
        "Unread records after the last batch; an estimate on Pulsar.", _status("lag_records")),
    JobMetric("lag_bytes", _GAUGE, ("source",),
        "Unread bytes after the last batch, on logs that count bytes.", _status("lag_bytes")),
    JobMetric("lag_seconds", _GAUGE, ("source",),
        "Age of the oldest unread record after the last batch.", _status("lag_s")),
    JobMetric("watermark_timestamp_seconds", _GAUGE, (),
        "The watermark of the last batch, in seconds since 1970.",
        _optional(lambda job: _timestamp(job.view.status.get("watermark")))),
    JobMetric("source_watermark_timestamp_seconds", _GAUGE, ("source",),
        "The limit that a stream sets for the watermark, in seconds since 1970.",
        _source_watermarks),
    JobMetric("batch_duration_seconds", _HISTOGRAM, (),
        "Duration of batches.", lambda job: [((), job.counters.batches)]),
    JobMetric("batch_phase_seconds", _COUNTER, ("phase",),
        "Time of all batches by phase: waiting, planning, processing, committing.",
        _counts(lambda counters: counters.phase_seconds)),
    JobMetric("last_batch_timestamp_seconds", _GAUGE, (),
        "When the last batch was committed, in seconds since 1970.",
        _optional(lambda job: _timestamp(job.view.status.get("committed_at")))),
    JobMetric("record_latency_seconds", _HISTOGRAM, (),
        "Time from a record's timestamp to the commit of its rows.", _latency),
    JobMetric("checkpoints", _COUNTER, (),
        "Checkpoints that were kept.", _count(lambda counters: counters.checkpoints)),
    JobMetric("checkpoint_failures", _COUNTER, (),
        "Checkpoints that could not be kept.",
        _count(lambda counters: counters.checkpoint_failures)),
    JobMetric("checkpoint_age_seconds", _GAUGE, (),
        "Time since the batch of the newest checkpoint was committed.",
        _optional(_checkpoint_age)),
    JobMetric("checkpoint_duration_seconds", _GAUGE, (),
        "How long it took to keep the newest checkpoint.", _optional(_checkpoint_took)),
    JobMetric("checkpoint_size_bytes", _GAUGE, (),
        "Size of all files of the newest checkpoint.",
        _optional(lambda job: None if job.checkpoint is None else job.checkpoint.full_bytes)),
    JobMetric("checkpoint_new_bytes", _GAUGE, (),
        "Size of the files of the newest checkpoint that the one before does not have.",
        _optional(lambda job: None if job.checkpoint is None else job.checkpoint.new_bytes)),
    JobMetric("savepoints", _COUNTER, (),
        "Savepoints that were taken.", _count(lambda counters: counters.savepoints)),
    JobMetric("savepoint_failures", _COUNTER, (),
        "Savepoints that could not be taken.",
        _count(lambda counters: counters.savepoint_failures)),
    JobMetric("state_rows", _GAUGE, _OPERATOR,
        "Rows in the state of an operator.", _status("state_rows", is_operator=True)),
    JobMetric("state_bytes", _GAUGE, _OPERATOR,
        "Estimated size of these rows.", _status("state_bytes", is_operator=True)),
    JobMetric("driver_memory_used_bytes", _GAUGE, ("pool",),
        "Memory of the driver's JVM by pool: heap, metaspace, compiled-code, direct, mapped, "
        "execution, storage, state.",
        _memory(lambda pool: pool.used)),
    JobMetric("driver_memory_live_bytes", _GAUGE, ("pool",),
        "What the last full collection left in the heap.", _memory(lambda pool: pool.live)),
    JobMetric("driver_memory_limit_bytes", _GAUGE, ("pool",),
        "The limits of these pools that have one.", _memory(lambda pool: pool.limit)),
    JobMetric("process_resident_memory_bytes", _GAUGE, ("process",),
        "Resident memory of the driver's JVM, and of all its Python workers.", _resident),
    JobMetric("driver_threads", _GAUGE, (),
        "Threads of the driver's JVM.", _vitals(lambda vitals: vitals.threads)),
    JobMetric("driver_cpu_seconds", _COUNTER, (),
        "Processor time of the driver's JVM.",
        lambda job: [((), job.counters.cpu_seconds)]),
    JobMetric("driver_gc_seconds", _COUNTER, (),
        "Time of garbage collections of the driver's JVM.",
        lambda job: [((), job.counters.gc_seconds)]),
    JobMetric("driver_gc_collections", _COUNTER, (),
        "Garbage collections of the driver's JVM.", _count(lambda counters: counters.gc_count)),
    JobMetric("python_workers", _GAUGE, (),
        "Processes beside the driver that call Python functions.",
        _vitals(lambda vitals: len(vitals.workers))),
    JobMetric("executors", _GAUGE, (),
        "Executors that are registered; 0 with a local master.",
        _executors(lambda executors: executors.registered)),
    JobMetric("executors_lost", _GAUGE, (),
        "Executors that the present attempt has lost.",
        _executors(lambda executors: executors.lost)),
    JobMetric("executor_slots", _GAUGE, ("executor",),
        "Tasks that an executor can run at a time; `driver` with a local master.",
        _each_executor(lambda executor: [((), executor.slots)])),
    JobMetric("executor_tasks_running", _GAUGE, ("executor",),
        "Tasks that it runs now.", _each_executor(lambda executor: [((), executor.running)])),
    JobMetric("executor_tasks", _COUNTER, ("executor", "result"),
        "Tasks that it has ended in this attempt: completed, failed.", _each_executor(_tasks)),
    JobMetric("executor_shuffle_read_bytes", _COUNTER, ("executor",),
        "Bytes that its tasks have read from other stages.",
        _each_executor(lambda executor: [((), executor.shuffle_read)])),
    JobMetric("executor_shuffle_written_bytes", _COUNTER, ("executor",),
        "Bytes that its tasks have written for other stages.",
        _each_executor(lambda executor: [((), executor.shuffle_written)])),
    JobMetric("executor_memory_used_bytes", _GAUGE, ("executor", "pool"),
        "Memory of an executor's JVM, by the pools of the driver.",
        _executor_memory(lambda pool: pool.used)),
    JobMetric("executor_memory_live_bytes", _GAUGE, ("executor", "pool"),
        "What the last full collection left in its heap.",
        _executor_memory(lambda pool: pool.live)),
    JobMetric("executor_memory_limit_bytes", _GAUGE, ("executor", "pool"),
        "The limits of these pools that have one.", _executor_memory(lambda pool: pool.limit)),
    JobMetric("executor_resident_memory_bytes", _GAUGE, ("executor", "process"),
        "Resident memory of an executor's JVM, and of all its Python workers.",
        _each_executor(_executor_processes)),
    JobMetric("executor_cpu_seconds", _COUNTER, ("executor",),
        "Processor time of an executor's JVM.", _executor_time(lambda vitals: vitals.cpu_seconds)),
    JobMetric("executor_gc_seconds", _COUNTER, ("executor",),
        "Time of its garbage collections.", _executor_time(lambda vitals: vitals.gc_seconds)),
)  # fmt: skip
