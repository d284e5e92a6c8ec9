"""The service: all that the CLI and the server may ask of jobs.

Importing it brings neither Spark nor numpy, so that a verb that needs none starts at once; what
needs them imports them when it is called.
"""

from collections.abc import Callable
from pathlib import Path

from headgate.brokers.broker import Broker, BrokerOptions, BrokerState
from headgate.checkpoints.checkpoint import (
    AnyCheckpoint,
    Checkpoint,
    UnreadableCheckpoint,
    parse_checkpoint,
)
from headgate.connectors.logs import DEFAULT_LOG
from headgate.connectors.setup import SetupOptions
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
from headgate.jobs.audit.job_audit import Audit, AuditProgress, AuditRequest, audit_job
from headgate.jobs.checkpoints.listing import (
    by_age,
    get_checkpoint,
    list_checkpoints,
    pin_checkpoint,
    verify_anything,
)
from headgate.jobs.checkpoints.portable import PortableSavepoint, take_portable
from headgate.jobs.checkpoints.restore_plan import RestorePlan, SealedPlan
from headgate.jobs.control.requests import (
    LONGEST_WAIT,
    Patience,
    check_at_rest,
    check_running,
    waited_too_long,
)
from headgate.jobs.control.restore_start import RestoreStart, hold_checkpoint, prepare_restore
from headgate.jobs.control.verbs import (
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
from headgate.jobs.dead_letters.letter import DeadLetter
from headgate.jobs.dead_letters.listing import (
    DeadLetters,
    LetterCount,
    get_dead_letter,
    list_dead_letters,
)
from headgate.jobs.dead_letters.replay import (
    Refused,
    Replayed,
    ReplayProgress,
    replay_dead_letters,
)
from headgate.jobs.flow_file import LoadedFlow, name_of_flow
from headgate.jobs.home import DEFAULT_HOME
from headgate.jobs.host.doctor import Finding, Status, diagnose
from headgate.jobs.host.preparation import Prepared, list_fetched, prepare
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.options import resolve_options
from headgate.jobs.registry import get_home, list_names
from headgate.jobs.sandbox.brokers import (
    BrokerKind,
    broker_folder,
    get_broker_log,
    get_broker_url,
    show_broker,
    start_broker,
    stop_broker,
)
from headgate.jobs.sandbox.demo import DemoPlace, DemoResults, prepare_demo, read_demo
from headgate.jobs.sandbox.store import Produced, StoreOptions, StoreProgress, produce_store
from headgate.jobs.sandbox.visits import (
    ProducedVisits,
    VisitsOptions,
    VisitsProgress,
    produce_visits,
)
from headgate.jobs.setting_table import SETTINGS, Panel, Scope, Setting, parse_typed
from headgate.jobs.startup.background import Detached, start_detached
from headgate.jobs.startup.plan import JobPlan, plan_job
from headgate.jobs.state.client import StateDesk, open_state_desk
from headgate.jobs.state.overview import list_state
from headgate.jobs.state.values import (
    HistoryEntry,
    StateHistory,
    StateOperator,
    StateOverview,
    StateRows,
    StateValue,
)
from headgate.jobs.topics.listing import (
    create_topic,
    follow_topic,
    list_topics,
    show_topic,
    tail_topic,
)
from headgate.jobs.topics.setup import FlowSetup, FlowTopic, set_up
from headgate.jobs.totals import Totals
from headgate.jobs.upkeep.kept_jobs import KeptJob, Session
from headgate.jobs.upkeep.orders import (
    resolve_apart,
    restart_kept,
    restore_kept,
    start_kept,
    submit_flow,
)
from headgate.jobs.upkeep.watch import BackOff, SessionWatch
from headgate.jobs.values import NO_CONSENT, Consent, JobSnapshot, OpenBatch, RunOptions, Watcher
from headgate.jobs.views.checkpoint_history import (
    CheckpointEvent,
    CheckpointHistory,
    list_checkpoint_history,
)
from headgate.jobs.views.events import Events, JobEvent, list_events
from headgate.jobs.views.exceptions import Exceptions, JobAttempt, JobFailure, list_exceptions
from headgate.jobs.views.graph import GraphEdge, GraphNode, GraphView, NodeFacts, view_graph
from headgate.jobs.views.job import (
    DEAD,
    JobDetails,
    JobView,
    last_checkpoint_took,
    list_jobs,
    look_at,
    show_job,
)
from headgate.jobs.views.logs import Log, LogPage, follow_log, get_log, read_log, tail_log
from headgate.jobs.views.outputs import (
    OutputKind,
    OutputRecord,
    OutputView,
    list_outputs,
    tail_output,
)
from headgate.jobs.views.past import Past, PastRestore, view_past
from headgate.jobs.views.samples import Samples, read_samples
from headgate.jobs.views.secrets import find_secrets, hide_secrets

__all__ = [
    "DEAD",
    "DEFAULT_HOME",
    "DEFAULT_LOG",
    "LONGEST_WAIT",
    "NO_CONSENT",
    "SETTINGS",
    "AnyCheckpoint",
    "Audit",
    "AuditProgress",
    "AuditRequest",
    "BackOff",
    "Broker",
    "BrokerKind",
    "BrokerOptions",
    "BrokerState",
    "Checkpoint",
    "CheckpointEvent",
    "CheckpointHistory",
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
    "LoadedFlow",
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
    "Panel",
    "Past",
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
    "RestoreStart",
    "RunOptions",
    "Samples",
    "Savepoint",
    "Scope",
    "SealedPlan",
    "Session",
    "SessionWatch",
    "Setting",
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
    "UnreadableCheckpoint",
    "VisitsOptions",
    "VisitsProgress",
    "Watcher",
    "audit_job",
    "broker_folder",
    "by_age",
    "cancel_job",
    "check_at_rest",
    "check_running",
    "create_topic",
    "diagnose",
    "find_secrets",
    "follow_log",
    "follow_topic",
    "foresee_cancel",
    "get_broker_log",
    "get_broker_url",
    "get_checkpoint",
    "get_dead_letter",
    "get_log",
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
    "parse_checkpoint",
    "parse_typed",
    "pause_job",
    "pin_checkpoint",
    "plan_job",
    "prepare",
    "prepare_demo",
    "prepare_restore",
    "produce_store",
    "produce_visits",
    "read_demo",
    "read_log",
    "read_samples",
    "replay_dead_letters",
    "resolve_apart",
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


def run_job(
    flow: str | LoadedFlow,
    options: RunOptions,
    watcher: Watcher,
    *,
    restore: SealedPlan | None = None,
) -> JobSnapshot:
    """Run a job until it has caught up, is stopped by a signal, or fails."""
    from headgate.jobs.startup.foreground import run_job as run

    return run(flow, options, watcher, restore=restore)


def run_watched(
    flow: str, options: RunOptions, watcher: Watcher, *, told: Callable[[str], None]
) -> JobSnapshot:
    """Run a job, and run it again each time its flow's file changes."""
    from headgate.jobs.startup.watched_flow import run_watched as run

    return run(flow, options, watcher, told=told)


def take_portable_savepoint(root: Path, name: str, *, to: Path | None) -> PortableSavepoint:
    """Write the state of a job's last committed batch as Parquet, by operator."""
    return take_portable(get_home(root, name, verb="take a savepoint of"), to=to)
