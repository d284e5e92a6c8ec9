"""The service: all that the CLI and the server may ask of jobs.

Importing it brings neither Spark nor numpy, so that a verb that needs none starts at once; what
needs them imports them when it is called.
"""

from headgate.connectors.logs import DEFAULT_LOG
from headgate.jobs.demo import DemoPlace, DemoResults, prepare_demo, read_demo
from headgate.jobs.doctor import Finding, Status, diagnose
from headgate.jobs.home import DEFAULT_HOME
from headgate.jobs.job import JobSnapshot, RunOptions, Watcher
from headgate.jobs.plans import JobPlan, plan_job
from headgate.jobs.produce import Produced, StoreOptions, StoreProgress, produce_store
from headgate.jobs.states import JobState
from headgate.jobs.topics import (
    CreatedTopic,
    PublishedFile,
    TopicDetails,
    TopicSummary,
    create_topic,
    follow_topic,
    list_topics,
    show_topic,
    tail_topic,
)

__all__ = [
    "DEFAULT_HOME",
    "DEFAULT_LOG",
    "CreatedTopic",
    "DemoPlace",
    "DemoResults",
    "Finding",
    "JobPlan",
    "JobSnapshot",
    "JobState",
    "Produced",
    "PublishedFile",
    "RunOptions",
    "Status",
    "StoreOptions",
    "StoreProgress",
    "TopicDetails",
    "TopicSummary",
    "Watcher",
    "create_topic",
    "diagnose",
    "follow_topic",
    "list_topics",
    "plan_job",
    "prepare_demo",
    "produce_store",
    "read_demo",
    "run_job",
    "show_topic",
    "tail_topic",
]


def run_job(flow: str, options: RunOptions, watcher: Watcher) -> JobSnapshot:
    """Run a job until it has caught up, is stopped by a signal, or fails."""
    from headgate.jobs.run import run_job as run

    return run(flow, options, watcher)
