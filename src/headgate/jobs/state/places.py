"""Where a job's state lies: of the last batch, or of a checkpoint or savepoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

# Registers the kinds of topics that a flow's JSON may name.
import headgate.connectors  # noqa: F401
from headgate._locations import Location
from headgate.checkpoints.catalog import read_manifest
from headgate.checkpoints.checkpoint import AnyCheckpoint, Checkpoint, UnreadableCheckpoint
from headgate.checkpoints.manifest import StateFacts
from headgate.checkpoints.sparklog import read_batch, read_commit
from headgate.checkpoints.state_format import STATE_FORMAT, check_state_format
from headgate.engine.session.stores import stores_of
from headgate.errors import Domain, HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.flow.names import did_you_mean, split_path
from headgate.flow.operators.nodes import Dedupe, Enrich, Join, Label, Node, Process, Window
from headgate.flow.schemas.schema import Schema, type_to_ddl
from headgate.jobs.checkpoints.listing import choose_checkpoint, list_checkpoints
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.registry import get_job, list_job_names
from headgate.jobs.runs.lineage import get_committed
from headgate.jobs.runs.store_record import list_stores
from headgate.jobs.state.values import Held, StateQuestion

NOW = "now"
# The most checkpoints of a history.
MOST_CHECKPOINTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The location of a job's state after one batch.

    Attributes:
        checkpoint: The checkpoint's id, or `now`.
        moment: When its batch was committed; of `now`, when it began.
        folder: The checkpoint's, or Spark's own, in which files appear and disappear.
        operators: Uids of the operators that hold state, in Spark's order.
        history: All schemas that each table has had, by source id.
        keys: The key columns of each table, by source id.
        sizes: The size of each operator's state, by uid; None for `now`.
    """

    job: str
    checkpoint: str
    moment: datetime
    folder: Location
    batch: int
    flow: Graph
    operators: tuple[str, ...]
    history: Mapping[str, tuple[Schema, ...]]
    keys: Mapping[str, tuple[str, ...]]
    sizes: Mapping[str, StateFacts] | None = None
    state_format: int = STATE_FORMAT

    def ids(self) -> dict[int, tuple[str, ...]]:
        """Return the unique ids of the state, by Spark's number of the operator and partition."""
        ids = read_commit(self.folder, self.batch).state_ids
        return {
            number: tuple(stores[0] for stores in partitions) for number, partitions in ids.items()
        }


@dataclass(frozen=True, slots=True)
class Places:
    """The locations of an operator's state over time.

    Attributes:
        kept: Checkpoints and savepoints, oldest first; a problem for each that cannot be read.
        left_off: The number of older ones.
    """

    kept: tuple[Place | Held, ...]
    now: Place
    left_off: int


def find_stores(root: Path) -> tuple[str, ...]:
    """Return the object stores that have checkpoints of a home's jobs."""
    homes = (JobFolder(root, name) for name in list_job_names(root))
    return stores_of(store for home in homes for store in list_stores(home))


def find_asked(root: Path, question: StateQuestion) -> Place:
    """Return the location of the state that a question is about.

    Raises:
        HeadgateError: JOB_NOT_FOUND, or an error of `find_place` or `check_operator`.
    """
    place = find_place(get_job(root, question.job, verb="read the state of"), question.at)
    if question.uid is None:
        check_form(place)
    else:
        check_operator(place, question.uid)
    return place


def find_place(home: JobFolder, at: str | None) -> Place:
    """Return the location of a job's state.

    Args:
        at: None or `now` for the last committed batch; `chk-17`, `17`, a savepoint's name, or
            `latest` for the newest of them.

    Raises:
        HeadgateError: NOTHING_COMMITTED, CHECKPOINT_NOT_FOUND or CHECKPOINT_DAMAGED.
    """
    if at is None or at == NOW:
        return _find_now(home)
    return _kept(choose_checkpoint(home, at))


def list_places(home: JobFolder, uid: str) -> Places:
    """Return the locations of an operator's state: in the present run and in all savepoints.

    Raises:
        HeadgateError: As `find_place`; STATE_OPERATOR_NOT_FOUND if it holds none now.
    """
    holding = [
        checkpoint
        for checkpoint in list_checkpoints(home)
        if isinstance(checkpoint, Checkpoint) and _holds_state(checkpoint, uid)
    ]
    newest = holding[-MOST_CHECKPOINTS:]
    now = find_place(home, None)
    check_operator(now, uid)
    kept = tuple(_kept_or_problem(checkpoint) for checkpoint in newest)
    return Places(kept, now, len(holding) - len(newest))


def check_form(place: Place) -> None:
    """Refuse state that this release does not read, with STATE_FORMAT_UNSUPPORTED."""
    if place.operators:
        check_state_format(
            place.state_format,
            what=f"cannot read the state of job {place.job!r} at {place.checkpoint}",
            hint="read it with headgate 0.6",
        )


def check_operator(place: Place, uid: str) -> None:
    """Refuse an operator without state, or state that this release does not read.

    Raises:
        HeadgateError: STATE_OPERATOR_NOT_FOUND, STATE_FORMAT_UNSUPPORTED.
    """
    if uid in place.operators:
        check_form(place)
        return
    known = ", ".join(place.operators)
    raise HeadgateError(
        "STATE_OPERATOR_NOT_FOUND",
        f"cannot read the state of operator {uid!r} of job {place.job!r}: "
        + (
            f"the operators with state are {known}"
            if known
            else "none of its operators holds state"
        ),
        hint=did_you_mean(uid, place.operators) if known else f"headgate plan {place.job}",
    )


def key_columns(place: Place, node: Node) -> list[tuple[str, str]]:
    """Return the columns of an operator's key with their types; `?` if only a run knows."""
    match node:
        case Enrich(table=table) | Label(table=table):
            schema = place.history[table][-1]
            columns = [(name, schema.find_column(name)) for name in place.keys[table]]
        case Window(key=paths) | Dedupe(by=paths) | Join(on=paths) | Process(key=paths):
            schema = place.flow.schema_of(node.input)
            columns = [((split_path(path) or (path,))[-1], schema.find(path)) for path in paths]
        case _:
            return []
    return [(name, type_to_ddl(column.type) if column else "?") for name, column in columns]


def _find_now(home: JobFolder) -> Place:
    run, batch = get_committed(home, verb="read the state")
    began = read_batch(run.checkpoint, batch).timestamp_ms
    return Place(
        job=home.name,
        checkpoint=NOW,
        moment=datetime.fromtimestamp(began / 1000, UTC),
        folder=run.checkpoint,
        batch=batch,
        flow=run.flow,
        operators=run.operators,
        history=run.history,
        keys=run.keys,
        state_format=run.state_format,
    )


def _holds_state(checkpoint: Checkpoint, uid: str) -> bool:
    try:
        return uid in read_manifest(checkpoint.folder).facts.operators
    except HeadgateError:
        # The job has removed it meanwhile.
        return False


def _kept_or_problem(checkpoint: Checkpoint) -> Place | Held:
    try:
        place = _kept(checkpoint)
        check_form(place)
        return place
    except HeadgateError as error:
        return Held(checkpoint.id, checkpoint.completed_at, problem=error.message)


def _kept(checkpoint: AnyCheckpoint) -> Place:
    if isinstance(checkpoint, UnreadableCheckpoint):
        raise HeadgateError(
            "CHECKPOINT_DAMAGED",
            f"cannot read the state of {checkpoint.id}: "
            + "; ".join(str(problem) for problem in checkpoint.problems),
            hint=f"headgate verify {checkpoint.folder}",
            domain=Domain.EXTERNAL,
        )
    facts = read_manifest(checkpoint.folder).facts
    return Place(
        job=facts.job,
        checkpoint=checkpoint.id,
        moment=checkpoint.completed_at,
        folder=checkpoint.folder,
        batch=checkpoint.batch,
        flow=Graph.from_json(json.dumps(facts.flow)),
        operators=facts.operators,
        history={
            name: tuple(Schema.from_json(schema) for schema in schemas)
            for name, schemas in facts.tables.items()
        },
        keys={name: tuple(key) for name, key in facts.keys.items()},
        sizes=checkpoint.state,
        state_format=facts.state_format,
    )
