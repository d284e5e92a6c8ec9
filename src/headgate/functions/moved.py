"""Reads pickles of earlier releases, which name modules that have moved since."""

from __future__ import annotations

import importlib
import io
import pickle
from typing import Any

# Since 0.12. A function of the user's may use all that `headgate`, `headgate.windows` and
# `headgate.testing` export, and the values that these consist of.
_MOVED = {
    f"headgate.flow.{old}": f"headgate.flow.{new}"
    for old, new in (
        ("aggregates", "operators.aggregates"),
        ("builder", "building.builder"),
        ("connecting", "streams.connecting"),
        ("graph", "graph.graph"),
        ("operators", "operators.nodes"),
        ("outputs", "streams.outputs"),
        ("process_parts", "operators.process_parts"),
        ("schema", "schemas.schema"),
        ("stream", "streams.stream"),
        ("types", "schemas.types"),
        ("windowing", "operators.windowing"),
    )
}

# Classes that are no longer in one module with the others.
_SPLIT = {
    ("headgate.flow.stream", "Broadcast"): "headgate.flow.streams.tables",
    ("headgate.flow.stream", "KeyedStream"): "headgate.flow.streams.keyed",
    ("headgate.flow.stream", "Table"): "headgate.flow.streams.tables",
    ("headgate.flow.stream", "WindowedStream"): "headgate.flow.streams.windowed",
}


def unpickle(pickled: bytes) -> Any:
    """Return a value that this release or an earlier one has pickled."""
    return _Unpickler(io.BytesIO(pickled)).load()


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == "cloudpickle.cloudpickle" and name == "subimport":
            # A function names the modules that it uses by a call of this one.
            return _import
        return super().find_class(_SPLIT.get((module, name), _present(module)), name)


def _import(module: str) -> Any:
    return importlib.import_module(_present(module))


def _present(module: str) -> str:
    return _MOVED.get(module, module)
