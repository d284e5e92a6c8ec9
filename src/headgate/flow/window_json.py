"""Windows, triggers and aggregates as JSON."""

from __future__ import annotations

from datetime import timedelta

from headgate._units import format_duration, parse_duration
from headgate.flow.aggregates import Aggregate, AggregateKind, NamedAggregate
from headgate.flow.json_values import (
    Json,
    JsonObject,
    as_object,
    bad_json,
    find_text,
    get_int,
    get_list,
    get_text,
    get_value,
)
from headgate.flow.triggers import EveryEvents, EveryEventTime, EveryProcessingTime, Trigger
from headgate.flow.windowing import Session, Sliding, Tumbling, Windows


def windows_to_json(windows: Windows) -> JsonObject:
    """Return windows as a JSON object."""
    match windows:
        case Tumbling(size):
            return {"type": "tumbling", "size": format_duration(size)}
        case Sliding(size, every):
            return {
                "type": "sliding",
                "size": format_duration(size),
                "every": format_duration(every),
            }
        case Session(gap):
            return {"type": "session", "gap": format_duration(gap)}


def windows_from_json(value: Json) -> Windows:
    """Return the windows that `windows_to_json` wrote."""
    holder = as_object(value, "windows")
    match get_text(holder, "type"):
        case "tumbling":
            return Tumbling(_span(holder, "size"))
        case "sliding":
            return Sliding(_span(holder, "size"), _span(holder, "every"))
        case "session":
            return Session(_span(holder, "gap"))
        case other:
            raise bad_json(f"{other!r} is not a type of windows")


def trigger_to_json(trigger: Trigger) -> JsonObject:
    """Return a trigger as a JSON object."""
    match trigger:
        case EveryEvents(n):
            return {"type": "events", "n": n}
        case EveryEventTime(span):
            return {"type": "event-time", "every": format_duration(span)}
        case EveryProcessingTime(span):
            return {"type": "processing-time", "every": format_duration(span)}


def trigger_from_json(value: Json) -> Trigger:
    """Return the trigger that `trigger_to_json` wrote."""
    holder = as_object(value, "a trigger")
    match get_text(holder, "type"):
        case "events":
            return EveryEvents(get_int(holder, "n"))
        case "event-time":
            return EveryEventTime(_span(holder, "every"))
        case "processing-time":
            return EveryProcessingTime(_span(holder, "every"))
        case other:
            raise bad_json(f"{other!r} is not a type of trigger")


def aggregate_to_json(named: NamedAggregate) -> JsonObject:
    """Return an aggregate as a JSON object."""
    aggregate = named.aggregate
    return {
        "name": named.name,
        "kind": aggregate.kind.value,
        "column": aggregate.column,
        "limit": aggregate.limit,
    }


def aggregates_from_json(holder: JsonObject) -> tuple[NamedAggregate, ...]:
    """Return the aggregates that `aggregate_to_json` wrote."""
    holders = [as_object(value, "an aggregate") for value in get_list(holder, "aggregates")]
    return tuple(NamedAggregate(get_text(entry, "name"), _aggregate(entry)) for entry in holders)


def _aggregate(holder: JsonObject) -> Aggregate:
    kind = get_text(holder, "kind")
    if kind not in list(AggregateKind):
        raise bad_json(f"{kind!r} is not an aggregate; known: {', '.join(AggregateKind)}")
    limit = None if get_value(holder, "limit") is None else get_int(holder, "limit")
    return Aggregate(AggregateKind(kind), find_text(holder, "column"), limit)


def _span(holder: JsonObject, key: str) -> timedelta:
    return parse_duration(get_text(holder, key))
