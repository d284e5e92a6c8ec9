"""Functions that an earlier release stored name modules by the paths of that release."""

from __future__ import annotations

import pickle
import zlib
from typing import Any

import pytest

from headgate.flow.operators import windowing
from headgate.functions.moved import unpickle
from headgate.functions.stored import Callback, load

# What release 0.11 exported, by the modules that its pickles name.
OLD_NAMES = {
    "headgate.errors": "HeadgateError",
    "headgate.flow.aggregates": "Aggregate NamedAggregate avg count sum",
    "headgate.flow.builder": "Builder",
    "headgate.flow.connecting": "ConnectedStreams",
    "headgate.flow.graph": "Graph",
    "headgate.flow.operators": "Map Port Source Window",
    "headgate.flow.outputs": "Deduped Enriched Joined Labelled Processed Windowed",
    "headgate.flow.process_parts": "KeptState SideOutput",
    "headgate.flow.schema": "Schema schema_of",
    "headgate.flow.stream": "Broadcast KeyedStream Stream Table WindowedStream",
    "headgate.flow.topics": "LogicalTopic Topic",
    "headgate.flow.types": "Field Primitive Struct",
    "headgate.flow.windowing": "every_event_time session sliding tumbling",
    "headgate.functions.broadcast": "BroadcastContext BroadcastProcess",
    "headgate.functions.keyed": "Context KeyedCoProcess KeyedProcess ListOf MapOf Timer Value",
    "headgate.interactive.flow": "Flow",
    "headgate.interactive.places": "connect",
    "headgate.testing": "CrashAt run_flow",
    "headgate.connectors.console": "Console",
    "headgate.connectors.files.descriptor": "Files",
    "headgate.connectors.kafka.descriptor": "Kafka",
    "headgate.connectors.pulsar.descriptor": "Pulsar",
    "headgate.functions.processes.harness": "DeadLetter Harness",
}


@pytest.mark.parametrize("module", OLD_NAMES)
def test_functions_stored_by_release_0_11_find_what_they_use(module: str) -> None:
    for name in OLD_NAMES[module].split():
        present = pickle.dumps(Callback(Marked), protocol=0)
        old = present.replace(
            f"c{Marked.__module__}\nMarked\n".encode(), f"c{module}\n{name}\n".encode()
        )
        assert old != present
        callback = load(zlib.compress(old))
        assert isinstance(callback, Callback)
        assert callback.function.__name__ == name


class Marked:
    """Takes the place of a class of release 0.11 in a pickle."""

    def __new__(cls, *_: Any) -> Any:
        raise AssertionError("never created")


def test_stored_functions_find_modules_that_have_moved() -> None:
    named = f"ccloudpickle.cloudpickle\nsubimport\n(V{'headgate.flow.windowing'}\ntR."
    assert unpickle(named.encode()) is windowing
