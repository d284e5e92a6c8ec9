"""A process as a node: what its class declares, checked against the rows that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headgate.errors import HeadgateError
from headgate.flow.building.broadcasting import check_has_table
from headgate.flow.building.builder import Builder
from headgate.flow.building.computed_columns import compute_columns
from headgate.flow.names import check_side_name, parse_member
from headgate.flow.operators.nodes import OnError, Port, Process, WithColumns
from headgate.flow.operators.process_parts import KeptState, SideOutput
from headgate.flow.schemas.dataclass_fields import field_of_hint
from headgate.flow.schemas.schema import Schema, schema_of
from headgate.flow.schemas.signatures import process_schema, read_process, rule_type
from headgate.functions.declared import DeclaredProcess, DeclaredState, describe_process
from headgate.functions.keyed import KeyedCoProcess, KeyedProcess
from headgate.functions.stored import BroadcastCallback, ProcessCallback, describe, stored_states


def add_process(
    builder: Builder,
    port: Port,
    key: Sequence[str],
    *,
    uid: str,
    function: KeyedProcess[Any, Any],
    schema: type | str | Schema | None,
    on_error: str,
    name: str | None,
    table: str | None = None,
) -> None:
    """Add a process to a flow, and the columns of its key that are expressions.

    Args:
        port: Where its events come from.
        key: As the user wrote it: columns, dotted paths or SQL expressions.
        table: The broadcast table whose rows it sees.
    """
    check_process_uid(builder, uid)
    what = builder.cannot_add(f"process {uid!r}")
    _check_function(function, uid, what)
    declared = describe_process(function, what=what)
    check_has_table(declared, table, what=what)
    rows = builder.schemas[port]
    signature = read_process(declared, rows, what=what)
    computed = compute_columns(key, rows, reserved=(), what=what)
    before: tuple[WithColumns, ...] = ()
    if computed.columns:
        node_id = builder.free_id(port, WithColumns.operator)
        before = (WithColumns(node_id, port, computed.columns),)
    node = Process(
        uid,
        Port(before[-1].id, "out") if before else port,
        tuple(computed.name(column) for column in key),
        describe(function, what=what),
        process_schema(signature, schema, what=what),
        kept_states(declared, function),
        columns=signature.columns,
        timers=declared.has_timers,
        on_error=parse_member(OnError, on_error, name="on_error", code="BAD_FUNCTION", what=what),
        table=table,
    )
    builder.add(*before, node, name=name)
    states = stored_states(declared.states)
    builder.callbacks[uid] = (
        ProcessCallback(function, signature.argument, states)
        if table is None
        else BroadcastCallback(
            function,
            signature.argument,
            states,
            rule_type(declared.rule, builder.schemas[Port(table, "out")], what=what),
        )
    )


def add_side(builder: Builder, uid: str, name: str, schema: type | str | Schema | None) -> None:
    """Add a side output to a process, unless it has one of that name with the same columns."""
    node = builder.nodes[uid]
    assert isinstance(node, Process)
    given = None if schema is None else schema_of(schema)
    known = next((side for side in node.sides if side.name == name), None)
    if known is None:
        side = SideOutput(check_side_name(name), node.schema if given is None else given)
        builder.extend(replace(node, sides=(*node.sides, side)))
    elif given not in (None, known.schema):
        raise HeadgateError(
            "DUPLICATE_OUTPUT",
            f"cannot declare side output {name!r} of process {uid!r}: it was declared with other "
            "columns",
            hint=f"declare the columns once: .side({name!r}, schema=...)",
        )


def check_process_uid(builder: Builder, uid: str) -> None:
    """Refuse a uid that is something else, such as the process."""
    if not isinstance(uid, str):
        raise HeadgateError(
            "BAD_FUNCTION",
            f"{builder.cannot_add('process')}: its first argument is its uid, got {uid!r:.100}",
            hint=".process('fraud', Fraud())",
        )


def _check_function(function: Any, uid: str, what: str) -> None:
    if isinstance(function, KeyedProcess):
        return
    if isinstance(function, type):
        name = function.__name__
        problem, hint = f"it needs an object, got the class {name}", f"pass an object: {name}()"
    elif isinstance(function, KeyedCoProcess):
        problem = "it needs a KeyedProcess, got a KeyedCoProcess, which takes two streams"
        hint = ".key_by('id').connect(payments.key_by('orderId')).process('match', Match())"
    elif callable(function):
        problem = "it needs a KeyedProcess, got a function"
        hint = (
            f"for a function of one row: .map({uid!r}, my_function) without key_by; for state or "
            "timers derive a class from headgate.KeyedProcess"
        )
    else:
        problem = f"it needs a KeyedProcess, got {function!r:.100}"
        hint = "derive a class from headgate.KeyedProcess, and pass an object of it"
    raise HeadgateError("BAD_FUNCTION", f"{what}: {problem}", hint=hint)


def kept_states(declared: DeclaredProcess, function: object) -> tuple[KeptState, ...]:
    """Return what a process keeps, as a node has it."""
    name = type(function).__name__
    return tuple(_kept(state, f"{name}.{state.name}") for state in declared.states)


def _kept(state: DeclaredState, where: str) -> KeptState:
    return KeptState(
        state.name,
        state.kind,
        field_of_hint("value", state.value, where),
        None if state.key is None else field_of_hint("key", state.key, where),
        state.ttl,
    )
