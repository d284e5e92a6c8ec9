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
        ("builder", "streams.builder"),
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


def unpickle(pickled: bytes) -> Any:
    """Return a value that this release or an earlier one has pickled."""
    return _Unpickler(io.BytesIO(pickled)).load()


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == "cloudpickle.cloudpickle" and name == "subimport":
            # A function names the modules that it uses by a call of this one.
            return _import
        return super().find_class(_present(module), name)


def _import(module: str) -> Any:
    return importlib.import_module(_present(module))


def _present(module: str) -> str:
    return _MOVED.get(module, module)
