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
from headgate.jobs.checkpoint_views import (
    CheckpointView,
    get_checkpoint,
    list_checkpoints,
    pin_checkpoint,
    verify_anything,
)
from headgate.jobs.control import (
    LONGEST_WAIT,
    Loss,
    Patience,
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
from headgate.jobs.demo import DemoPlace, DemoResults, prepare_demo, read_demo
from headgate.jobs.detach import Detached, start_detached
from headgate.jobs.doctor import Finding, Status, diagnose
from headgate.jobs.home import DEFAULT_HOME
from headgate.jobs.job import JobSnapshot, RunOptions, Watcher
from headgate.jobs.log_files import Log, follow_log, get_log, tail_log
from headgate.jobs.options import resolve_options
from headgate.jobs.plans import JobPlan, plan_job
from headgate.jobs.portable import PortableSavepoint, take_portable
from headgate.jobs.produce import Produced, StoreOptions, StoreProgress, produce_store
from headgate.jobs.produce_visits import (
    ProducedVisits,
    VisitsOptions,
    VisitsProgress,
    produce_visits,
)
from headgate.jobs.registry import get_home, list_names
from headgate.jobs.restore import RestorePlan
from headgate.jobs.restoring import get_restore, plan_of_restore
from headgate.jobs.setup import FlowSetup, FlowTopic, SetupOptions, set_up
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
    list_jobs,
    show_job,
)

__all__ = [
    "DEAD",
    "DEFAULT_HOME",
    "DEFAULT_LOG",
    "LONGEST_WAIT",
    "Audit",
    "AuditProgress",
    "AuditRequest",
    "Broker",
    "BrokerKind",
    "BrokerOptions",
    "BrokerState",
    "CheckpointView",
    "Delivery",
    "DemoPlace",
    "DemoResults",
    "Detached",
    "Finding",
    "FlowSetup",
    "FlowTopic",
    "JobDetails",
    "JobPlan",
    "JobSnapshot",
    "JobState",
    "JobView",
    "LedgerPart",
    "Log",
    "Loss",
    "MadeTopic",
    "OnDataLoss",
    "Patience",
    "Produced",
    "ProducedVisits",
    "PublishedFile",
    "RestorePlan",
    "RunOptions",
    "Savepoint",
    "SetupOptions",
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
    "create_topic",
    "diagnose",
    "follow_log",
    "follow_topic",
    "foresee_cancel",
    "get_broker_log",
    "get_broker_url",
    "get_checkpoint",
    "get_log",
    "get_restore",
    "get_start",
    "list_checkpoints",
    "list_jobs",
    "list_names",
    "list_topics",
    "pause_job",
    "pin_checkpoint",
    "plan_job",
    "plan_of_restore",
    "prepare_demo",
    "produce_store",
    "produce_visits",
    "read_demo",
    "resolve_options",
    "restart_job",
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
    "stop_broker",
    "stop_job",
    "tail_log",
    "tail_topic",
    "take_portable_savepoint",
    "take_savepoint",
    "verify_anything",
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
