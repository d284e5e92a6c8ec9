"""The user's DataFrame functions: found by name, and their results checked."""

from __future__ import annotations

import base64
import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headgate._kernel.bridge import CompiledFlow
from headgate._kernel.python_failures import raised_failure
from headgate._locations import Location
from headgate._units import to_millis
from headgate.engine.plan.flow_plan import Function
from headgate.engine.session.stores import plain_place
from headgate.engine.settings import SparkSettings
from headgate.engine.user_code.shipping import find_places
from headgate.errors import HeadgateError
from headgate.flow.operators.nodes import Transform, label
from headgate.functions.stored import load, present_python

# The column that ties a row to its record; a function must keep it.
ORIGIN = "__headgate"

DataFrameFunction = Callable[[DataFrame], DataFrame]


def get_function(name: str) -> DataFrameFunction:
    """Return the function named `module:function`, as a flow names it."""
    module_name, _, attribute = name.partition(":")
    try:
        function = getattr(_import(module_name, name), attribute)
    except (ModuleNotFoundError, AttributeError) as error:
        raise HeadgateError(
            "FUNCTION_NOT_FOUND",
            f"cannot find the function {name!r}: {error}",
            hint="name it as module:function, and put the module beside the flow's file",
        ) from error
    return cast("DataFrameFunction", function)


def _import(module_name: str, function: str) -> ModuleType:
    """Return a module of the user; only its own absence is a ModuleNotFoundError."""
    try:
        return importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        absent = error.name if isinstance(error, ModuleNotFoundError) else None
        if absent is not None and f"{module_name}.".startswith(f"{absent}."):
            raise
        raise raised_failure(f"cannot import the function {function!r}", error) from error


def worker_spec(
    settings: SparkSettings,
    near: Path | None,
    *,
    check: bool = False,
    answers: Location | None = None,
) -> dict[str, Any]:
    """Return how the kernel starts the processes that call Python functions.

    Args:
        near: The flow's folder, which workers search for modules.
        check: Whether each call is made twice, and fails if the results differ.
        answers: The folder or place on a store where the answers of async calls are recorded;
            None if no rows are sent.
    """
    places = find_places(settings, near)
    return {
        "answers": None if answers is None else plain_place(answers),
        "python": places.python,
        "version": present_python(),
        "path": list(places.modules),
        "code": places.code,
        "memory": settings.worker_memory,
        "check": check,
        "timeoutMillis": to_millis(settings.call_timeout),
    }


def apply(function: Function, rows: DataFrame, flow: CompiledFlow) -> DataFrame:
    """Apply a function to the rows addressed to it, and return the results as envelopes."""
    name = label(function.node)
    stored = function.node.stored
    call = (
        get_function(function.node.function)
        if stored is None
        else cast("DataFrameFunction", load(base64.b64decode(stored.code)).function)
    )
    try:
        made = call(flow.columns(rows, function.address))
    except HeadgateError:
        raise
    except (Exception, SystemExit) as error:
        raise raised_failure(f"cannot plan {name}", error) from error
    if not isinstance(made, DataFrame) or not made.isStreaming:
        raise HeadgateError(
            "TRANSFORM_BAD_RESULT",
            f"cannot plan {name}: the function must return a DataFrame derived from its "
            f"input, got {type(made).__name__}",
            hint="return the DataFrame that the function changed",
        )
    if ORIGIN not in made.columns:
        raise HeadgateError(
            "TRANSFORM_LOST_ORIGIN",
            f"cannot plan {name}: the function must keep the column {ORIGIN!r}, which ties a "
            "row to its record",
            hint=f"use withColumn and filter, or select it too: df.select(..., '{ORIGIN}')",
        )
    _check_columns(function, made.drop(ORIGIN).schema, flow.result_schema(function.address))
    return flow.rejoin(made, function.address)


def _written(node: Transform) -> str:
    """Return how a flow's file names the function."""
    return repr(node.function) if node.stored is None else node.function.rpartition(":")[2]


def _check_columns(function: Function, result: StructType, wanted: StructType) -> None:
    types = {field.name: field.dataType.simpleString() for field in result.fields}
    wrong = [
        (
            f"{field.name} is {types.get(field.name, 'missing')} instead of "
            f"{field.dataType.simpleString()}"
        )
        for field in wanted.fields
        if types.get(field.name) != field.dataType.simpleString()
    ]
    if wrong:
        raise HeadgateError(
            "TRANSFORM_SCHEMA",
            f"cannot plan {label(function.node)}: its result does not match the declared columns: "
            + "; ".join(wrong),
            hint=f"declare the result: .transform({_written(function.node)}, schema='…')",
        )
