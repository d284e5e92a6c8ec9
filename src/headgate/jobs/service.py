"""The service: all that the CLI and the server may ask of jobs.

Importing it brings neither Spark nor numpy, so that a verb that needs none starts at once; what
needs them imports them when it is called.
"""

from collections.abc import Callable
from pathlib import Path

from headgate.brokers.broker import Broker, BrokerOptions, BrokerState
from headgate.connectors.logs import DEFAULT_LOG
from headgate.connectors.topics import (
    LedgerPart,
    MadeTopic,
    PublishedFile,
    TopicDetails,
    TopicPart,
    TopicSubscription,
    TopicSummary,
)
from headgate.engine.settings import Delivery, OnDataLoss
from headgate.jobs.asking import (
    LONGEST_WAIT,
    Patience,
    check_at_rest,
    check_running,
    waited_too_long,
)
from headgate.jobs.audit import Audit, AuditProgress, AuditRequest, audit_job
from headgate.jobs.brokers import (
    BrokerKind,
    broker_folder,
    get_broker_log,
    get_broker_url,
    show_broker,
    start_broker,
    stop_broker,
)
from headgate.jobs.checkpoint_history import (
    CheckpointHistory,
    PastCheckpoint,
    list_checkpoint_history,
)
from headgate.jobs.checkpoint_pages import CheckpointPage, page_checkpoints
from headgate.jobs.checkpoint_views import (
    CheckpointView,
    get_checkpoint,
    list_checkpoints,
    pin_checkpoint,
    verify_anything,
)
from headgate.jobs.control import (
    Loss,
    Savepoint,
    Stopped,
    cancel_job,
    foresee_cancel,
    get_start,
    pause_job,
    restart_job,
    resume_job,
    start_job,
    stop_job,
    take_savepoint,
)
from headgate.jobs.dead_letters import (
    DeadLetters,
    LetterCount,
    get_dead_letter,
    list_dead_letters,
)
from headgate.jobs.demo import DemoPlace, DemoResults, prepare_demo, read_demo
from headgate.jobs.detach import Detached, start_detached
from headgate.jobs.doctor import Finding, Status, diagnose
from headgate.jobs.event_views import Events, JobEvent, list_events
from headgate.jobs.exceptions import Exceptions, JobAttempt, JobFailure, list_exceptions
from headgate.jobs.graph_view import GraphEdge, GraphNode, GraphView, NodeFacts, view_graph
from headgate.jobs.home import DEFAULT_HOME
from headgate.jobs.job import NO_CONSENT, Consent, JobSnapshot, OpenBatch, RunOptions, Watcher
from headgate.jobs.letters.letter import DeadLetter
from headgate.jobs.letters.replaying import (
    Refused,
    Replayed,
    ReplayProgress,
    replay_dead_letters,
)
from headgate.jobs.loading import name_of_flow
from headgate.jobs.log_files import Log, LogPage, follow_log, get_log, read_log, tail_log
from headgate.jobs.options import resolve_options
from headgate.jobs.outputs import (
    OutputKind,
    OutputRecord,
    OutputView,
    list_outputs,
    tail_output,
)
from headgate.jobs.past import Past, PastMoment, PastRestore, view_past
from headgate.jobs.plans import JobPlan, plan_job
from headgate.jobs.portable import PortableSavepoint, take_portable
from headgate.jobs.prepare import Prepared, list_fetched, prepare
from headgate.jobs.produce import Produced, StoreOptions, StoreProgress, produce_store
from headgate.jobs.produce_visits import (
    ProducedVisits,
    VisitsOptions,
    VisitsProgress,
    produce_visits,
)
from headgate.jobs.registry import get_home, list_names
from headgate.jobs.restore_plan import RestorePlan, RestorePreview
from headgate.jobs.restoring import get_restore, hold_checkpoint, plan_of_restore
from headgate.jobs.samples import Samples, read_samples
from headgate.jobs.secrets import find_secrets, hide_secrets
from headgate.jobs.session import KeptJob, Session
from headgate.jobs.session_orders import (
    foresee_restore,
    restart_kept,
    restore_kept,
    start_kept,
    submit_flow,
)
from headgate.jobs.session_watch import BackOff, SessionWatch
from headgate.jobs.setup import FlowSetup, FlowTopic, SetupOptions, set_up
from headgate.jobs.state import list_state
from headgate.jobs.state_desk import StateDesk, open_state_desk
from headgate.jobs.state_values import (
    HistoryEntry,
    StateHistory,
    StateOperator,
    StateOverview,
    StateRows,
    StateValue,
)
from headgate.jobs.states import JobState
from headgate.jobs.topics import (
    create_topic,
    follow_topic,
    list_topics,
    show_topic,
    tail_topic,
)
from headgate.jobs.totals import Totals
from headgate.jobs.views import (
    DEAD,
    JobDetails,
    JobView,
    last_checkpoint_took,
    list_jobs,
    look_at,
    show_job,
)

__all__ = [
    "DEAD",
    "DEFAULT_HOME",
    "DEFAULT_LOG",
    "LONGEST_WAIT",
    "NO_CONSENT",
    "Audit",
    "AuditProgress",
    "AuditRequest",
    "BackOff",
    "Broker",
    "BrokerKind",
    "BrokerOptions",
    "BrokerState",
    "CheckpointHistory",
    "CheckpointPage",
    "CheckpointView",
    "Consent",
    "DeadLetter",
    "DeadLetters",
    "Delivery",
    "DemoPlace",
    "DemoResults",
    "Detached",
    "Events",
    "Exceptions",
    "Finding",
    "FlowSetup",
    "FlowTopic",
    "GraphEdge",
    "GraphNode",
    "GraphView",
    "HistoryEntry",
    "JobAttempt",
    "JobDetails",
    "JobEvent",
    "JobFailure",
    "JobPlan",
    "JobSnapshot",
    "JobState",
    "JobView",
    "KeptJob",
    "LedgerPart",
    "LetterCount",
    "Log",
    "LogPage",
    "Loss",
    "MadeTopic",
    "NodeFacts",
    "OnDataLoss",
    "OpenBatch",
    "OutputKind",
    "OutputRecord",
    "OutputView",
    "Past",
    "PastCheckpoint",
    "PastMoment",
    "PastRestore",
    "Patience",
    "PortableSavepoint",
    "Prepared",
    "Produced",
    "ProducedVisits",
    "PublishedFile",
    "Refused",
    "ReplayProgress",
    "Replayed",
    "RestorePlan",
    "RestorePreview",
    "RunOptions",
    "Samples",
    "Savepoint",
    "Session",
    "SessionWatch",
    "SetupOptions",
    "StateDesk",
    "StateHistory",
    "StateOperator",
    "StateOverview",
    "StateRows",
    "StateValue",
    "Status",
    "Stopped",
    "StoreOptions",
    "StoreProgress",
    "TopicDetails",
    "TopicPart",
    "TopicSubscription",
    "TopicSummary",
    "Totals",
    "VisitsOptions",
    "VisitsProgress",
    "Watcher",
    "audit_job",
    "broker_folder",
    "cancel_job",
    "check_at_rest",
    "check_running",
    "create_topic",
    "diagnose",
    "find_secrets",
    "follow_log",
    "follow_topic",
    "foresee_cancel",
    "foresee_restore",
    "get_broker_log",
    "get_broker_url",
    "get_checkpoint",
    "get_dead_letter",
    "get_log",
    "get_restore",
    "get_start",
    "hide_secrets",
    "hold_checkpoint",
    "last_checkpoint_took",
    "list_checkpoint_history",
    "list_checkpoints",
    "list_dead_letters",
    "list_events",
    "list_exceptions",
    "list_fetched",
    "list_jobs",
    "list_names",
    "list_outputs",
    "list_state",
    "list_topics",
    "look_at",
    "name_of_flow",
    "open_state_desk",
    "page_checkpoints",
    "pause_job",
    "pin_checkpoint",
    "plan_job",
    "plan_of_restore",
    "prepare",
    "prepare_demo",
    "produce_store",
    "produce_visits",
    "read_demo",
    "read_log",
    "read_samples",
    "replay_dead_letters",
    "resolve_options",
    "restart_job",
    "restart_kept",
    "restore_kept",
    "resume_job",
    "run_job",
    "run_watched",
    "set_up",
    "show_broker",
    "show_job",
    "show_topic",
    "start_broker",
    "start_detached",
    "start_job",
    "start_kept",
    "stop_broker",
    "stop_job",
    "submit_flow",
    "tail_log",
    "tail_output",
    "tail_topic",
    "take_portable_savepoint",
    "take_savepoint",
    "verify_anything",
    "view_graph",
    "view_past",
    "waited_too_long",
]


def run_job(flow: str, options: RunOptions, watcher: Watcher) -> JobSnapshot:
    """Run a job until it has caught up, is stopped by a signal, or fails."""
    from headgate.jobs.run import run_job as run

    return run(flow, options, watcher)


def run_watched(
    flow: str, options: RunOptions, watcher: Watcher, *, told: Callable[[str], None]
) -> JobSnapshot:
    """Run a job, and run it again each time its flow's file changes."""
    from headgate.jobs.watch import run_watched as run

    return run(flow, options, watcher, told=told)


def take_portable_savepoint(root: Path, name: str, *, to: Path | None) -> PortableSavepoint:
    """Write the state of a job's last committed batch as Parquet, by operator."""
    return take_portable(get_home(root, name, verb="take a savepoint of"), to=to)
