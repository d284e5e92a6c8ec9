"""Creation of topics on Pulsar, with their tenant, namespace and policies."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from headgate.connectors.contract.topics import MadeTopic, Retention, WantedTopic
from headgate.connectors.pulsar.keeping import (
    COMPACTION_BYTES,
    NOTHING,
    Kept,
    differences,
    retention_policies,
    wanted_retention,
)
from headgate.connectors.pulsar.names import full_name, topic_path
from headgate.connectors.pulsar.topics.namespaces import Namespace, Shape, schema_path
from headgate.connectors.pulsar.topics.schemas import (
    JSON,
    can_write,
    json_schema,
    schema_differences,
)
from headgate.errors import HeadgateError

# The cursor in which a partition stores its deduplication state.
_DEDUPLICATION = "pulsar.dedup"
_CONFLICT = 409
# The brokers are loading the policies of a namespace for the first time.
_NOT_READY = frozenset({412, 500, 503})
_PATIENCE_S = 15.0
_PAUSE_S = 0.1


def make_topic(namespace: Namespace, wanted: WantedTopic, usual: Retention) -> MadeTopic:
    """Create a topic if it is missing, and return when its policies apply.

    An existing topic is unchanged, except for missing settings if `wanted` asks to amend it. Only
    such a topic gets a schema: on others the first producer registers the one of its client, and
    with a different one there the brokers would refuse it.

    Args:
        wanted: Without a number of partitions, the topic gets one.
        usual: The retention of a new topic if none is set and its namespace would keep nothing.
    """
    make_namespace(namespace)
    shape, made = _create(namespace, wanted)
    kept = namespace.kept(shape)
    given = _given(wanted, kept, usual) if made else _lacking(wanted, kept)
    _set_policies(namespace, shape, given)
    registered = wanted.amend and _register(namespace, shape, wanted)
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
    """Create the tenant and the namespace if they are missing."""
    admin, tenant = namespace.admin, namespace.name.partition("/")[0]
    try:
        if admin.find(f"namespaces/{namespace.name}") is not None:
            return
    except HeadgateError as error:
        # A user that may create topics may not be allowed to read namespaces.
        if error.code == "BROKER_REFUSED":
            return
        raise
    if admin.find(f"tenants/{tenant}") is None:
        clusters = [cluster for cluster in admin.get("clusters") if cluster != "global"]
        body = {"adminRoles": [], "allowedClusters": clusters}
        admin.put(f"tenants/{tenant}", body, accepts={_CONFLICT})
    admin.put(f"namespaces/{namespace.name}", accepts={_CONFLICT})


def _create(namespace: Namespace, wanted: WantedTopic) -> tuple[Shape, bool]:
    """Return the topic, and whether this call created it."""
    shape = namespace.find(wanted.name)
    if shape is not None:
        return shape, False
    path = topic_path(full_name(namespace.name, wanted.name))
    answer = namespace.admin.send(
        "PUT", f"{path}/partitions", wanted.partitions or 1, accepts={_CONFLICT}
    )
    return namespace.get(wanted.name), answer.status != _CONFLICT


def _given(wanted: WantedTopic, kept: Kept, usual: Retention) -> WantedTopic:
    """Return the policies of a new topic."""
    retention = wanted_retention(wanted)
    if retention is None and kept.retention == NOTHING:
        # A job's readers hold nothing back, so records would be deleted before they are read.
        retention = usual
    return replace(wanted, retention=retention)


def _lacking(wanted: WantedTopic, kept: Kept) -> WantedTopic:
    """Return the policies to add to an existing topic."""
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
    """Return when policies apply; brokers learn of them a moment later.

    The caller reports policies that still do not apply as a difference.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while not _apply(namespace, shape, given) and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)


def _apply(namespace: Namespace, shape: Shape, given: WantedTopic) -> bool:
    if differences(replace(given, partitions=None), partitions=0, kept=namespace.kept(shape)):
        return False
    if not given.deduplicate:
        return True
    # An active partition learns of it later than the queried one; a new partition starts with it.
    return all(
        _DEDUPLICATION in part.cursors or not part.counts for part in namespace.ledgers(shape)
    )


def _register(namespace: Namespace, shape: Shape, wanted: WantedTopic) -> bool:
    """Set the wanted schema on a topic without one; return whether it has it now."""
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
        yield "it got a JSON schema"


def _odd_schema(wanted: WantedTopic, schema: tuple[str, str] | None) -> Iterator[str]:
    if wanted.schema is None or schema is None:
        return
    kind, definition = schema
    if kind == JSON:
        yield from schema_differences(definition, wanted.schema)
    else:
        yield f"its schema is of kind {kind}, and records are JSON"
