"""Where the state of a job lies that somebody asks for: now, or at a checkpoint or savepoint."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# Registers the kinds of topics that a flow's JSON may name.
import headgate.connectors  # noqa: F401
from headgate.checkpoints.catalog import read_manifest
from headgate.checkpoints.checkpoint import AnyCheckpoint, Checkpoint, UnreadableCheckpoint
from headgate.checkpoints.manifest import StateFacts
from headgate.checkpoints.sparklog import read_batch, read_commit
from headgate.checkpoints.state_format import STATE_FORMAT, check_state_format
from headgate.errors import Domain, HeadgateError
from headgate.flow.graph import Graph
from headgate.flow.names import did_you_mean, split_path
from headgate.flow.operators import Dedupe, Enrich, Node, Window
from headgate.flow.schema import Schema, type_to_ddl
from headgate.jobs.checkpoints.listing import checkpoint_not_found, list_checkpoints
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import get_committed

NOW = "now"
# A history of more takes too long, and nobody reads it.
MOST_CHECKPOINTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A job's state as of one batch, and where it lies.

    Attributes:
        checkpoint: The checkpoint's id, or `now`.
        moment: When its batch was committed; of `now`, when it began.
        folder: The checkpoint's, or Spark's own, in which files may come and go.
        operators: Uids of the operators that hold state, in Spark's order.
        history: Every schema each table has had, by source id.
        keys: The key columns of each table, by source id.
        sizes: What each operator held, by uid; None for `now`.
        state_format: Of what form the state is.
    """

    job: str
    checkpoint: str
    moment: datetime
    folder: Path
    batch: int
    flow: Graph
    operators: tuple[str, ...]
    history: Mapping[str, tuple[Schema, ...]]
    keys: Mapping[str, tuple[str, ...]]
    sizes: Mapping[str, StateFacts] | None = None
    state_format: int = STATE_FORMAT

    def ids(self) -> dict[int, tuple[str, ...]]:
        """Return the unique ids of the state, by Spark's number of the operator and partition."""
        found = read_commit(self.folder, self.batch).state_ids
        return {
            number: tuple(stores[0] for stores in partitions)
            for number, partitions in found.items()
        }


@dataclass(frozen=True, slots=True)
class Unread:
    """A checkpoint whose state cannot be read: not what it means, or not its form."""

    checkpoint: str
    moment: datetime
    problem: str


@dataclass(frozen=True, slots=True)
class Places:
    """Where an operator's state lies over time.

    Attributes:
        kept: Checkpoints and savepoints, oldest first.
        left_off: How many older ones there are.
    """

    kept: tuple[Place | Unread, ...]
    now: Place
    left_off: int


def find_place(home: JobFolder, at: str | None) -> Place:
    """Return where a job's state lies.

    Args:
        at: None or `now` for the last committed batch; `chk-17`, `17`, a savepoint's name, or
            `latest` for the newest of them.

    Raises:
        HeadgateError: NOTHING_COMMITTED, CHECKPOINT_NOT_FOUND or CHECKPOINT_DAMAGED.
    """
    if at is None or at == NOW:
        return _find_now(home)
    return _kept(_get_checkpoint(home, at))


def list_places(home: JobFolder, uid: str) -> Places:
    """Return the retained checkpoints and savepoints that hold an operator's state, and now.

    Those of the present run, and savepoints of any; the newest ones, where there are many.

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
    kept = tuple(_kept_or_unread(each) for each in newest)
    return Places(kept, now, len(holding) - len(newest))


def check_form(place: Place) -> None:
    """Refuse state of a form that this release does not read.

    Raises:
        HeadgateError: STATE_FORMAT_UNSUPPORTED.
    """
    if place.operators:
        check_state_format(
            place.state_format,
            what=f"cannot read the state of job {place.job!r} at {place.checkpoint}",
            hint="read it with headgate 0.6",
        )


def check_operator(place: Place, uid: str) -> Node:
    """Return an operator that holds state which can be read.

    Raises:
        HeadgateError: STATE_OPERATOR_NOT_FOUND with those there are; STATE_FORMAT_UNSUPPORTED.
    """
    if uid in place.operators:
        check_form(place)
        return place.flow.node(uid)
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
    """Return the columns of an operator's key with their types; `?` where only a run can tell."""
    match node:
        case Enrich(table=table):
            schema = place.history[table][-1]
            found = [(name, schema.find_column(name)) for name in place.keys[table]]
        case Window(key=paths) | Dedupe(by=paths):
            schema = place.flow.schema_of(node.input)
            found = [((split_path(path) or (path,))[-1], schema.find(path)) for path in paths]
        case _:
            return []
    return [(name, "?" if each is None else type_to_ddl(each.type)) for name, each in found]


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


def _get_checkpoint(home: JobFolder, at: str) -> AnyCheckpoint:
    wanted = f"chk-{at}" if at.isdigit() else at
    present = list_checkpoints(home)
    chosen = _find_by_id(present, wanted)
    if chosen is None:
        chosen = _find_by_id(list_checkpoints(home, every_run=True), wanted)
    if chosen is not None:
        return chosen
    raise checkpoint_not_found(at, present, home.name)


def _find_by_id(checkpoints: Sequence[AnyCheckpoint], wanted: str) -> AnyCheckpoint | None:
    for checkpoint in reversed(checkpoints):
        is_latest = wanted == "latest" and isinstance(checkpoint, Checkpoint)
        if checkpoint.id == wanted or is_latest:
            return checkpoint
    return None


def _holds_state(checkpoint: Checkpoint, uid: str) -> bool:
    try:
        return uid in read_manifest(checkpoint.folder).facts.operators
    except HeadgateError:
        # The job has removed it meanwhile.
        return False


def _kept_or_unread(checkpoint: Checkpoint) -> Place | Unread:
    try:
        place = _kept(checkpoint)
        check_form(place)
        return place
    except HeadgateError as error:
        return Unread(checkpoint.id, checkpoint.completed_at, error.message)


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
        history={name: _schemas(all_) for name, all_ in facts.tables.items()},
        keys={name: tuple(key) for name, key in facts.keys.items()},
        sizes=checkpoint.state,
        state_format=facts.state_format,
    )


def _schemas(content: Any) -> tuple[Schema, ...]:
    return tuple(Schema.from_json(each) for each in content)
