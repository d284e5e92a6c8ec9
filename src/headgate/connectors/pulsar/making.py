"""Topics made on Pulsar, with the tenant and the namespace they need, and their policies."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from headgate.connectors.pulsar.keeping import (
    COMPACTION_BYTES,
    NOTHING,
    Kept,
    differences,
    retention_policies,
    wanted_retention,
)
from headgate.connectors.pulsar.names import full_name, topic_path
from headgate.connectors.pulsar.namespaces import Namespace, Shape, schema_path
from headgate.connectors.pulsar.schemas import JSON, can_write, json_schema, schema_differences
from headgate.connectors.topics import MadeTopic, Retention, WantedTopic
from headgate.errors import HeadgateError

# The deduplication of a partition keeps its books in a cursor of this name.
_DEDUPLICATION = "pulsar.dedup"
_CONFLICT = 409
# The policies of a namespace are being read by the brokers, for the first time.
_NOT_READY = frozenset({412, 500, 503})
_PATIENCE_S = 15.0
_PAUSE_S = 0.1


def make_topic(namespace: Namespace, wanted: WantedTopic, usual: Retention) -> MadeTopic:
    """Make a topic unless it is there, and return once its policies apply.

    One that is there stays as it is, but for what it lacks where `wanted` says to amend it.

    Args:
        wanted: Without a number of partitions, one is made.
        usual: What a new topic keeps where nothing is said, if its namespace would keep nothing.
    """
    make_namespace(namespace)
    shape, made = _create(namespace, wanted)
    kept = namespace.kept(shape)
    given = _given(wanted, kept, usual) if made else _lacking(wanted, kept)
    _set_policies(namespace, shape, given)
    registered = (made or wanted.amend) and _register(namespace, shape, wanted)
    kept = namespace.kept(shape)
    schema = namespace.find_schema(shape)
    return MadeTopic(
        wanted.name,
        shape.partitions,
        namespace.where,
        existed=not made,
        differences=() if made else differences(wanted, partitions=shape.partitions, kept=kept),
        retention=kept.retention,
        compacted=kept.compacted,
        deduplicated=kept.deduplicated,
        schema=None if schema is None else schema[0],
        changes=() if made else tuple(_changes(given, registered=registered)),
        warnings=() if registered else tuple(_odd_schema(wanted, schema)),
    )


def make_namespace(namespace: Namespace) -> None:
    """Make the tenant and the namespace where they are missing."""
    admin, tenant = namespace.admin, namespace.name.partition("/")[0]
    try:
        if admin.find(f"namespaces/{namespace.name}") is not None:
            return
    except HeadgateError as error:
        # Who may make topics need not be allowed to look at namespaces.
        if error.code == "BROKER_REFUSED":
            return
        raise
    if admin.find(f"tenants/{tenant}") is None:
        clusters = [each for each in admin.get("clusters") if each != "global"]
        body = {"adminRoles": [], "allowedClusters": clusters}
        admin.put(f"tenants/{tenant}", body, accepts={_CONFLICT})
    admin.put(f"namespaces/{namespace.name}", accepts={_CONFLICT})


def _create(namespace: Namespace, wanted: WantedTopic) -> tuple[Shape, bool]:
    """Return the topic, and whether this call made it."""
    found = namespace.find(wanted.name)
    if found is not None:
        return found, False
    path = topic_path(full_name(namespace.name, wanted.name))
    answer = namespace.admin.send(
        "PUT", f"{path}/partitions", wanted.partitions or 1, accepts={_CONFLICT}
    )
    return namespace.get(wanted.name), answer.status != _CONFLICT


def _given(wanted: WantedTopic, kept: Kept, usual: Retention) -> WantedTopic:
    """Return what a new topic gets."""
    retention = wanted_retention(wanted)
    if retention is None and kept.retention == NOTHING:
        # A job's readers hold nothing back, so that records would be gone before they are read.
        retention = usual
    return replace(wanted, retention=retention)


def _lacking(wanted: WantedTopic, kept: Kept) -> WantedTopic:
    """Return what a topic that is there gets."""
    deduplicate = wanted.amend and wanted.deduplicate and not kept.deduplicated
    return WantedTopic(name=wanted.name, deduplicate=deduplicate)


def _set_policies(namespace: Namespace, shape: Shape, given: WantedTopic) -> None:
    path = topic_path(shape.full)
    policies: dict[str, object] = {}
    if given.retention is not None:
        policies["retention"] = retention_policies(given.retention)
    if given.compact:
        policies["compactionThreshold"] = COMPACTION_BYTES
    if given.deduplicate:
        policies["deduplicationEnabled"] = True
    for name, value in policies.items():
        _set_policy(namespace, f"{path}/{name}", value)
    _wait(namespace, shape, given)


def _set_policy(namespace: Namespace, path: str, value: object) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        late = time.monotonic() > deadline
        answer = namespace.admin.send("POST", path, value, accepts=() if late else _NOT_READY)
        if answer.status < 300:
            return
        time.sleep(_PAUSE_S)


def _wait(namespace: Namespace, shape: Shape, given: WantedTopic) -> None:
    """Return when policies apply; brokers hear of them a moment after they were set.

    What does not apply after a while is told of as a difference by the caller.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while not _apply(namespace, shape, given) and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)


def _apply(namespace: Namespace, shape: Shape, given: WantedTopic) -> bool:
    if differences(replace(given, partitions=None), partitions=0, kept=namespace.kept(shape)):
        return False
    if not given.deduplicate:
        return True
    # A partition that is in use hears of it later than the one that was asked; one that is not
    # there yet begins with it.
    return all(
        _DEDUPLICATION in part.cursors or not part.counts for part in namespace.ledgers(shape)
    )


def _register(namespace: Namespace, shape: Shape, wanted: WantedTopic) -> bool:
    """Give a topic without a schema the wanted one; return whether it has it now."""
    schema = wanted.schema
    if schema is None or not can_write(schema) or namespace.find_schema(shape) is not None:
        return False
    body = json_schema(wanted.name, schema)
    answer = namespace.admin.send("POST", schema_path(shape.full), body, accepts={_CONFLICT})
    return answer.status != _CONFLICT


def _changes(given: WantedTopic, *, registered: bool) -> Iterator[str]:
    if given.deduplicate:
        yield "its deduplication was turned on"
    if registered:
        yield "it was given a JSON schema"


def _odd_schema(wanted: WantedTopic, found: tuple[str, str] | None) -> Iterator[str]:
    if wanted.schema is None or found is None:
        return
    kind, definition = found
    if kind == JSON:
        yield from schema_differences(definition, wanted.schema)
    else:
        yield f"its schema is of kind {kind}, and records are JSON"
