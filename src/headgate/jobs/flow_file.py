"""From a user's file, or a flow in memory, to a flow's graph."""

from __future__ import annotations

import importlib.util
import json
import sys
import traceback
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

# Registers the kinds of topics that a flow's JSON may name.
import headgate.connectors  # noqa: F401
from headgate.engine.user_code.flow_modules import import_from
from headgate.errors import HeadgateError
from headgate.flow.flow import Flow
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Transform, label
from headgate.jobs.job_folder import JobFolder

_MODULE = "headgate_user_flow"
# The JSON of a flow that has no file of its own, in its job's folder.
KEPT_FLOW = "flow.json"


@dataclass(frozen=True, slots=True)
class LoadedFlow:
    """A loaded flow.

    Attributes:
        reference: As `load_flow` takes it; None for a flow without a file, which its job keeps.
        folder: The folder of its file, for its functions.
    """

    reference: str | None
    graph: Graph
    folder: Path


def load_flow(reference: str) -> LoadedFlow:
    """Return the flow in a file.

    Args:
        reference: `flow.py`, `flow.py:name` for a flow that is not called `flow`, or the JSON
            that `Graph.to_json` wrote.
    """
    path_text, _, name = reference.partition(":")
    path = Path(path_text)
    if path.is_dir() and (path / "flow.py").is_file():
        path = path / "flow.py"
    if not path.is_file():
        raise HeadgateError(
            "FLOW_NOT_FOUND",
            f"cannot read flow {reference!r}: there is no file {path}",
            hint="headgate run examples/orders/flow.py",
        )
    if path.suffix == ".json":
        flow = Flow.from_json(_read(path))
    else:
        flow = _find_flow(_execute(path), path, name)
    return LoadedFlow(reference, flow.graph(), path.resolve().parent)


def hold_flow(graph: Graph, home: Path) -> LoadedFlow:
    """Return a flow without a file: its job keeps its JSON, with the code of its functions.

    Args:
        home: The folder of the jobs.
    """
    for node in graph.nodes:
        if isinstance(node, Transform) and node.stored is None:
            raise HeadgateError(
                "FUNCTION_NOT_STORED",
                f"cannot run flow {graph.name!r} without a file: {label(node)} names "
                f"{node.function!r}, which is imported from beside the flow's file",
                hint="pass the function itself: .transform(my_function)",
            )
    return LoadedFlow(None, graph, JobFolder(home, graph.name).path.absolute())


def keep_flow(home: JobFolder, flow: LoadedFlow) -> str:
    """Return how `job.json` names a flow, and write the JSON of a flow without a file.

    That JSON moves with the job's folder, so it is named relative to it.
    """
    if flow.reference is None:
        home.write_json(KEPT_FLOW, json.loads(flow.graph.to_json()))
        return KEPT_FLOW
    path, colon, name = flow.reference.partition(":")
    file = Path(path).absolute()
    return KEPT_FLOW if file == home.path.absolute() / KEPT_FLOW else f"{file}{colon}{name}"


def find_flow(home: JobFolder, kept: str) -> str:
    """Return the reference, as `load_flow` takes it, of what `keep_flow` returned."""
    # An absolute path stays as it is.
    return str(home.path / kept)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise HeadgateError(
            "FLOW_BROKEN",
            f"cannot read flow {str(path)!r}: it is not UTF-8 text ({error})",
            hint="write it again with Graph.to_json",
        ) from error


def _execute(path: Path) -> ModuleType:
    import_from(path.resolve().parent)
    loader = _FreshLoader(_MODULE, str(path))
    spec = importlib.util.spec_from_file_location(_MODULE, path, loader=loader)
    if spec is None or path.suffix != ".py":
        raise HeadgateError(
            "FLOW_NOT_FOUND",
            f"cannot read flow {str(path)!r}: it is not a Python file",
            hint="use a file that ends in .py, or a flow's JSON that ends in .json",
        )
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up their module when they are defined.
    sys.modules[_MODULE] = module
    try:
        loader.exec_module(module)
    except HeadgateError as error:
        raise _placed(error, path) from error
    except (Exception, SystemExit) as error:
        raise HeadgateError(
            "FLOW_BROKEN",
            f"cannot read flow {str(path)!r}: {type(error).__name__}: {error}{_place(error, path)}",
            hint=f"python {path}",
        ) from error
    return module


class _FreshLoader(SourceFileLoader):
    """Compiles a file as it is now, and leaves no bytecode beside it.

    Python takes bytecode for a file of the same size and the same second, and so may a flow that
    was changed at once run as it was before.
    """

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return code


def _placed(error: HeadgateError, path: Path) -> HeadgateError:
    """Return an error with the line of the flow's file that raised it."""
    message = error.message + _place(error, path)
    return HeadgateError.from_json({**error.to_json(), "message": message})


def _place(error: BaseException, path: Path) -> str:
    if isinstance(error, SyntaxError):
        return ""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).resolve() == path.resolve()
    ]
    return f" (line {lines[-1]})" if lines else ""


def _find_flow(module: ModuleType, path: Path, name: str) -> Flow:
    flows = {key: value for key, value in vars(module).items() if isinstance(value, Flow)}
    wanted = name or "flow"
    if wanted in flows:
        return flows[wanted]
    if not name and len(flows) == 1:
        return next(iter(flows.values()))
    raise HeadgateError(
        "FLOW_NOT_FOUND",
        f"cannot find a flow called {wanted!r} in {path}: it has {', '.join(flows) or 'none'}",
        hint=f"headgate run {path}:{next(iter(flows), 'flow')}",
    )


def name_of_flow(flow: str) -> str:
    """Return the name of a flow's job; `flow` is as `load_flow` takes it."""
    return load_flow(flow).graph.name
