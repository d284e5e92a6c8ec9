"""The requests and answers of the REST API, and their description in OpenAPI.

An answer is a value of the service, or one of the values here; fields may be added to them. Where
an answer depends on the flow, its description says so in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from fastapi import Header, Path, Query
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from headgate._codec import JsonValue, Moment, Seconds, alias, decode, shaped
from headgate.checkpoints.checkpoint import AnyCheckpoint
from headgate.connectors.contract.topics import TopicSummary
from headgate.jobs.totals import Totals
from headgate.jobs.values import Consent, OpenBatch
from headgate.jobs.views.exceptions import JobFailure
from headgate.jobs.views.job import JobView
from headgate.jobs.views.log_search import LogLevel, LogMatches
from headgate.jobs.views.logs import Log, LogPage
from headgate.jobs.views.outputs import OutputRecord, OutputView
from headgate.server.actions.flow_folder import FlowFile
from headgate.server.operations import Operation
from headgate.server.security import names
from headgate.server.security.audit_log import AuditLine

_Closed = ConfigDict(extra="forbid")

Job = Annotated[str, Path(pattern=names.JOB, max_length=128, description="The job's name.")]
CheckpointId = Annotated[
    str,
    Path(
        pattern=names.CHECKPOINT,
        max_length=256,
        description="`chk-17`, a savepoint's name, or `latest`.",
    ),
]
RunName = Annotated[
    str | None,
    Query(
        pattern=names.CHECKPOINT,
        max_length=128,
        description="The checkpoint's run, as the list has it; by default the present one first.",
    ),
]
Uid = Annotated[str, Path(pattern=names.UID, max_length=128, description="The operator's uid.")]
OutputId = Annotated[
    str, Path(pattern=names.TOPIC, max_length=249, description="As the list of outputs names it.")
]
TopicName = Annotated[str, Path(pattern=names.TOPIC, max_length=249)]
LetterId = Annotated[str, Path(pattern=names.LETTER, max_length=401)]
OperationId = Annotated[str, Path(pattern=names.OPERATION)]

At = Annotated[
    str | None,
    Query(
        pattern=names.PLACE,
        max_length=256,
        description="`chk-17`, a savepoint's name, or `latest`; without it, the last batch.",
    ),
]
Key = Annotated[
    str,
    Query(
        max_length=8192,
        description='The key as one types it: `42`, `"abc"`, `{"a": 1, "b": 2}` or `[1, "x"]`.',
    ),
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        pattern=r"^[!-~]{1,128}$",
        description="Chosen by the client for one submit, such as a UUID. A repeated request with "
        "the same key and body returns the first answer and submits nothing; with another body "
        "it is rejected with 409. The last 1,000 keys are kept.",
    ),
]
LogText = Annotated[
    str,
    Query(max_length=256, description="Lines that contain it, in upper or lower case."),
]
LeastLevel = Annotated[
    LogLevel | None,
    Query(description="Entries of this level or a more important one; of log `spark` only."),
]
LogExecutor = Annotated[
    str | None,
    Query(max_length=256, description="The id of an executor; of log `executor` only."),
]
LogLength = Annotated[int, Query(ge=0, le=10_000, description="How many, at most.")]


class Problem(BaseModel):
    """What could not be done, why, and what to do next."""

    code: str = Field(description="Stable, in upper snake case; see the reference of errors.")
    message: str
    hint: str = Field(description="The next step; requests are named by method and path.")
    command: str = Field(
        default="", description="The same step on the command line, if it differs."
    )
    domain: Literal["user", "external", "internal"] = Field(description="Whose move it is.")


@dataclass(frozen=True, slots=True)
class JobSummary:
    """One job, in short.

    Attributes:
        kept_up: Whether this server starts it again when it dies.
    """

    view: JobView
    kept_up: bool

    __get_pydantic_core_schema__ = shaped(flatten="view")


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs of the server's home: those that need attention first, then by name."""

    jobs: tuple[JobSummary, ...]


@dataclass(frozen=True, slots=True)
class SettingShown:
    """One setting of a job.

    Attributes:
        value: As a user writes it.
        origin: `flag`, `headgate.toml` or `default`.
    """

    value: JsonValue
    origin: str = field(metadata=alias("from"))


def show_settings(settings: Mapping[str, Mapping[str, Any]]) -> dict[str, SettingShown]:
    """Return the settings of a job by their names in headgate.toml."""
    return {name: decode(SettingShown, setting) for name, setting in settings.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """The last report of a job's supervisor; a job that never ran has none of it.

    Attributes:
        totals: Counts since the last start.
        at: When it was written.
        lineage: The run.
        resumed_from: The checkpoint from which the last start resumed.
        restart: The restart strategy.
        held: Whether it is paused.
        pid: The supervisor's process.
        child: The driver's process.
        intent: The number of the last request that it followed.
        intent_error: Why it refused that request.
        names: The names that the flow gives its operators, by uid.
    """

    totals: Totals
    at: Moment | None
    lineage: str | None
    resumed_from: str | None
    loading_tables: bool
    elapsed_s: float
    notice: str
    restarts: int
    restart: str
    restart_after: Seconds | None = field(metadata=alias("restart_after_s"))
    started_at: Moment | None
    healthy_since: Moment | None
    held: bool
    last_failure: JobFailure | None
    pid: int
    child: int | None
    intent: int
    intent_error: Mapping[str, str] | None
    names: Mapping[str, str] = field(default_factory=dict)

    # Releases differ in what they report.
    __get_pydantic_core_schema__ = shaped(flatten="totals", absent=lambda _: ())


@dataclass(frozen=True, slots=True, kw_only=True)
class JobShown:
    """One job, all of it but its checkpoints: counts by source, output and operator, settings.

    Attributes:
        state: A state of jobs, DEAD or UNREADABLE.
        uptime_s: None if it is not alive, or restarts after a failure.
        failures: Failures in a row.
        todo: The command that helps; empty if none is needed.
        flow: The flow's file of the last run; None if the job never ran.
        settings: By their names in headgate.toml.
        kept_up: Whether this server starts it again when it dies.
    """

    status: JobStatus
    job: str
    state: str
    alive: bool
    attempt: int
    since: Moment | None
    uptime_s: int | None
    failures: int
    failing: bool
    checkpoint: str | None
    checkpoint_at: Moment | None
    reason: str
    todo: str
    folder: str
    flow: str | None
    settings: Mapping[str, SettingShown]
    kept_up: bool

    __get_pydantic_core_schema__ = shaped(flatten="status")


@dataclass(frozen=True, slots=True)
class Config:
    """How a job was last started: each setting with its value and where it came from."""

    job: str
    flow: str | None
    settings: Mapping[str, SettingShown]


class Savepoints(BaseModel):
    """Savepoints, newest first."""

    savepoints: list[AnyCheckpoint]


@dataclass(frozen=True, slots=True)
class CheckpointSettings:
    """The settings that say when a checkpoint is kept, and for how long."""

    job: str
    settings: Mapping[str, SettingShown]


@dataclass(frozen=True, slots=True)
class LogLines:
    """A page of a log, oldest line first."""

    job: str
    log: Log
    page: LogPage

    __get_pydantic_core_schema__ = shaped(flatten="page")


@dataclass(frozen=True, slots=True)
class LogFound:
    """The last lines of a log that match, oldest first, and the number of all that do."""

    job: str
    log: Log
    matches: LogMatches

    __get_pydantic_core_schema__ = shaped(flatten="matches")


@dataclass(frozen=True, slots=True)
class OperationList:
    """Operations, newest first."""

    operations: list[Operation]


@dataclass(frozen=True, slots=True)
class Flows:
    """The flows of the flows folder.

    Attributes:
        settings: What a submit may set.
    """

    flows: list[FlowFile]
    settings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AuditLines:
    """The newest lines of the audit log, oldest first."""

    lines: list[AuditLine]


@dataclass(frozen=True, slots=True)
class TopicList:
    """The topics of the server's log."""

    topics: list[TopicSummary]


@dataclass(frozen=True, slots=True)
class TopicRecords:
    """The last records of a topic, oldest first, as text."""

    topic: str
    records: list[str]


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs of a job: side outputs first, dead letters last."""

    outputs: tuple[OutputView, ...]


@dataclass(frozen=True, slots=True)
class OutputRecords:
    """The last records of an output, newest last."""

    output: str
    records: tuple[OutputRecord, ...]


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the server is well."""

    status: Literal["ok", "not ready"]
    problems: list[str]


# What is asked for.

SettingName = Annotated[str, Field(max_length=64)]
SettingText = Annotated[StrictStr, Field(max_length=1024)]
Setting = SettingText | StrictInt | StrictFloat | StrictBool | None
Place = Annotated[str, Field(pattern=names.PLACE, max_length=256)]
UidText = Annotated[str, Field(pattern=names.UID, max_length=128)]
MomentText = Annotated[str, Field(min_length=1, max_length=64)]


class Start(BaseModel):
    """What the user agrees to, for one start alone."""

    model_config = _Closed
    open_batch: OpenBatch | None = Field(
        default=None,
        description="What a start makes of a batch that was begun and not finished: `repeat` it "
        "in a new run, or `skip` it.",
    )

    allow_repeats: StrictBool = Field(
        default=False,
        description="Go back to an older checkpoint where the newest is damaged, even if rows "
        "are written again by that.",
    )

    def consent(self) -> Consent:
        """Return it as a start takes it."""
        return Consent(open_batch=self.open_batch, allow_repeats=self.allow_repeats)


class Submit(Start):
    """A flow to be started as a job."""

    model_config = _Closed
    flow: str = Field(
        min_length=1, max_length=512, description="As GET /v1/flows names it.", examples=["orders"]
    )
    settings: dict[SettingName, Setting] = Field(
        default_factory=dict,
        max_length=64,
        description=f"By the names of headgate.toml; of these: {', '.join(names.SETTINGS)}.",
    )
    fresh: StrictBool = Field(default=False, description="Start empty, in a new run.")
    restore_from: Place | None = Field(
        default=None,
        description="Go back to `chk-17`, `latest` or a savepoint's name, in a new run.",
    )


class Stop(BaseModel):
    """How a job is stopped."""

    model_config = _Closed
    drain: StrictBool = Field(default=False, description="Read what is there first.")
    savepoint: StrictBool = Field(default=False, description="Take a savepoint at the end.")


class Cancel(BaseModel):
    """How a job is ended."""

    model_config = _Closed
    dry_run: StrictBool = Field(default=False, description="Answer 200 with what would be lost.")


class Prune(BaseModel):
    """What is removed of old runs."""

    model_config = _Closed
    drop_checkpoints: StrictBool = Field(
        default=False,
        description="Also remove unpinned checkpoints of runs that the present run does not "
        "descend from.",
    )
    dry_run: StrictBool = Field(default=False, description="Answer 200 with what would go.")


class TakeSavepoint(BaseModel):
    """What kind of savepoint is taken."""

    model_config = _Closed
    portable: StrictBool = Field(default=False, description="State as Parquet, by operator.")


class Restore(BaseModel):
    """Where a job goes back to."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    source: Place | None = Field(
        default=None,
        alias="from",
        description="`chk-17`, `latest`, a savepoint's name, or `LINEAGE/chk-17`.",
    )
    at: MomentText | None = Field(
        default=None, description="`2026-11-15 10:05` (local) or `10m ago`."
    )
    drop_state: list[UidText] = Field(
        default_factory=list, max_length=100, description="Operators whose state is left behind."
    )
    dry_run: StrictBool = Field(default=False, description="Answer 200 with what would happen.")
    stop: StrictBool = Field(default=False, description="Stop the job first if it is running.")


class StateQuery(BaseModel):
    """A question to a job's state in SQL."""

    model_config = _Closed
    sql: str = Field(min_length=1, max_length=16_384, examples=["select count(*) from state"])
    uid: UidText | None = Field(
        default=None, description="The operator; needed where there are several."
    )
    at: Place | None = None
    limit: StrictInt = Field(default=1000, ge=1, le=10_000)


class Replay(BaseModel):
    """Which dead letters are sent again; without any word, all."""

    model_config = _Closed
    ids: list[Annotated[str, Field(pattern=names.LETTER, max_length=401)]] = Field(
        default_factory=list, max_length=10_000
    )
    reason: Annotated[str, Field(max_length=256)] | None = None
    again: StrictBool = Field(
        default=False, description="Those too that were or may have been sent."
    )
    without_key: StrictBool = Field(
        default=False, description="Send values without a key where the record is gone."
    )
    into_tables: StrictBool = Field(
        default=False, description="Those of tables without a version too, over newer rows."
    )
    dry_run: StrictBool = Field(
        default=False, description="Count what would be sent, and send nothing."
    )
