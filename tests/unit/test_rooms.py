"""The rooms of Headgate: imports only go down.

The tables below say which room may import which, and in which order the inner rooms of a large one
lie. The test reads every import under `src/headgate`, also those inside functions, and fails on one
that is not in the tables.

The control rooms see jobs through doors: they call the operations of `OPERATIONS` alone, foremost
those of `FolderHome`, and take values from where these are defined.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "headgate"
DOOR = "__init__"

FLOOR = frozenset({"errors", "_units", "_clock", "_codec", "_disk", "_locations", "_references"})
# What the control rooms call.
OPERATIONS = frozenset(
    {
        "jobs.folder_home",
        # A flow that is planned, run or started here, and what its settings are.
        "jobs.flow_file",
        "jobs.settings",
        "jobs.setting_table",
        "jobs.startup",
        "jobs.topics",
        "jobs.sandbox",
        "jobs.host",
        # Of a server: takes jobs up again; leaves secrets out of texts.
        "jobs.upkeep.watch",
        "jobs.secrets",
        # On any file.
        "jobs.views.logs",
        # Checkpoints as values: parsed, and put in order.
        "checkpoints.checkpoint",
    }
)
# What operations take and return: from these, classes and constants may be imported.
VALUES = frozenset(
    {
        "jobs.values",
        "jobs.totals",
        "jobs.lifecycle.states",
        "jobs.metrics",
        "jobs.audit",
        "jobs.checkpoints",
        "jobs.control",
        "jobs.dead_letters",
        "jobs.records",
        "jobs.removal",
        "jobs.state.values",
        "jobs.views",
        "brokers.broker",
        "connectors.contract",
        "connectors.logs",
        "engine.attempt.executors",
        "engine.attempt.vitals",
        "engine.settings",
    }
)
CONTROL = OPERATIONS | VALUES | {"errors", "_units", "_codec"}
MAY_IMPORT: dict[str, frozenset[str]] = {
    DOOR: frozenset(
        {"flow", "connectors", "functions.broadcast", "functions.keyed", "errors"}
        # Flows that run themselves: these two import the rest in their methods.
        | {"interactive.flow", "interactive.places"}
    ),
    "__main__": frozenset({"cli"}),
    # The test kit for users.
    "testing": frozenset({"flow", "functions", "engine", "errors", "_units"}),
    # Further doors, for names too common for the first.
    "windows": frozenset({"flow"}),
    "formats": frozenset({"flow"}),
    "cli": CONTROL | {"server", "client"},
    # A server beside a job is a child process like any other.
    "server": CONTROL | {"jobs.processes", "_disk"},
    "client": CONTROL,
    # From Python: jobs as the other control rooms see them, and flows as values.
    "interactive": CONTROL
    | {"client", "flow", "connectors", "testing", "engine.memory.records", "jobs.processes"},
    "jobs": FLOOR
    | {"engine", "checkpoints", "flow", "connectors", "producers", "brokers", "_artifacts"}
    # The doctor asks whether the kernel's jars fit and are there; jobs see no more of the kernel.
    | {"_kernel.archive", "_kernel.jar", "_kernel.connector_jars"},
    "engine": FLOOR | {"flow", "functions", "connectors", "_kernel"},
    "checkpoints": FLOOR,
    "connectors": FLOOR | {"flow"},
    "producers": frozenset({"errors", "_units", "_clock"}),
    "brokers": FLOOR | {"_artifacts"},
    "flow": frozenset({"errors", "_units", "_references", "functions"}),
    "functions": frozenset({"errors", "_units"}),
    "_kernel": FLOOR | {"_artifacts"},
    "_artifacts": frozenset({"errors", "_units", "_disk"}),
    "_locations": frozenset({"errors", "_codec", "_s3", "_shared"}),
    "_s3": frozenset({"errors"}),
    "_shared": frozenset({"errors"}),
    "_codec": frozenset(),
    "_disk": frozenset(),
    "_clock": frozenset({"errors"}),
    "_references": frozenset({"errors"}),
    "_units": frozenset({"errors"}),
    "errors": frozenset(),
}
# Rooms whose packages from outside are counted; the others are held to the rule on Spark alone.
OUTSIDE: dict[str, frozenset[str]] = {
    DOOR: frozenset(),
    "testing": frozenset(),
    "windows": frozenset(),
    "formats": frozenset(),
    "cli": frozenset({"typer", "rich"}),
    "server": frozenset(
        {
            "fastapi",
            "starlette",
            "uvicorn",
            "nicegui",
            "jinja2",
            "markupsafe",
            "prometheus_client",
            "pydantic",
        }
    ),
    "client": frozenset({"httpx"}),
    "interactive": frozenset({"rich", "IPython"}),
    "producers": frozenset({"numpy"}),
    "brokers": frozenset({"psycopg"}),
    "_artifacts": frozenset(),
    "flow": frozenset(),
    "functions": frozenset({"cloudpickle", "pyarrow"}),
    "_locations": frozenset({"upath"}),
    "_s3": frozenset({"fsspec", "s3fs", "botocore"}),
    "_shared": frozenset({"fsspec", "upath"}),
    "_codec": frozenset({"pydantic", "pydantic_core"}),
    "_clock": frozenset(),
    "_disk": frozenset(),
    "_references": frozenset(),
    "_units": frozenset(),
    "errors": frozenset(),
}
# The inner rooms of a large room, lowest first, with the modules beside them. An import stays in
# its line or goes to an earlier one. Of several names that fit a module, the longest counts.
INNER: dict[str, tuple[str, ...]] = {
    "flow": (
        "names json_values topics",
        "schemas",
        "formats",
        "operators",
        "graph",
        "state",
        "checks",
        "drawing",
        "building",
        "streams",
        "flow",
    ),
    "engine": (
        "settings",
        "session",
        "plan",
        "user_code",
        "state",
        "portable",
        "attempt",
        "memory",
    ),
    "functions": (
        "keyed broadcast python_types declared moved installed code_text pickling stored "
        "custom_formats",
        "calling",
        "states.converted states.columns states.plain",
        "processes.wire",
        "processes.scope states.pages states.map_cells",
        "states",
        "processes",
        "worker",
    ),
    "connectors": (
        "contract",
        "broker",
        "console files folder kafka postgres pulsar",
        "registry",
        "logs",
    ),
    "connectors.files": (
        "descriptor folder",
        "log topics",
        "places ends positions written audit",
        "connector",
    ),
    "connectors.folder": (
        "paths",
        "descriptor",
        "log",
        "ends",
        "staged tail",
        "places positions written",
        "connector",
    ),
    "connectors.kafka": (
        "failures jaas keeping descriptor",
        "access",
        "topics",
        "runs",
        "connector",
    ),
    "connectors.postgres": (
        "descriptor column_types",
        "access",
        "tables",
        "places ends positions written",
        "connector",
    ),
    "connectors.pulsar": (
        "failures login keeping names descriptor",
        "access",
        "topics",
        "runs",
        "connector",
    ),
    "cli": (
        "parts",
        "views",
        "lifecycle",
        "topics",
        "sandbox",
        "host",
        "app",
    ),
    "jobs": (
        "event_files job_folder processes",
        "lifecycle metrics",
        "registry secrets totals setting_table values profiles settings flow_file",
        "attempts",
        "runs",
        "checkpoints",
        "supervision",
        "startup",
        "dead_letters",
        "records",
        "views",
        "state",
        "control",
        "upkeep",
        "removal",
        "audit.report audit.scope audit.shape",
        "audit",
        "topics",
        "sandbox",
        "host",
        "folder_home",
    ),
    "server": (
        "security",
        "hints operations submissions settings context signed_in",
        "actions metrics",
        "api",
        "console.parts",
        "console.texts",
        "console.charts",
        "console.panels",
        "console.pages",
        "console",
        "gate login",
        "app serving beside http_protocol",
    ),
}
# A log is a plain value whose methods open its topics: those import what needs a client library.
OPENED_IN_METHODS = frozenset(
    {
        "connectors.kafka.descriptor",
        "connectors.postgres.descriptor",
        "connectors.pulsar.descriptor",
    }
)
# A folder with more modules than these is several rooms.
MOST_MODULES = 12
JVM = re.compile(r"\b(?:py4j|_jvm|_jdf)\b")


def find_violations(root: Path) -> list[str]:
    """Return a line for each import, or word of the JVM's, in a room that may not have it."""
    found = []
    for file in sorted(root.rglob("*.py")):
        path = file.relative_to(root)
        room = path.parts[0].removesuffix(".py")
        if room not in MAY_IMPORT:
            found.append(f"{path.as_posix()}: room {room!r} is in no table")
            continue
        text = file.read_text(encoding="utf-8")
        found += [
            f"{path.as_posix()}:{line}: {problem}"
            for line, target, name in _imports(ast.parse(text), path, root)
            if (problem := _problem(room, target, name))
        ]
        found += [
            f"{path.as_posix()}:{line}: {problem}"
            for line, target, _ in _imports(_ordered_part(ast.parse(text), path), path, root)
            if (problem := _inner_problem(path, target))
        ]
        if room != "_kernel":
            found += [
                f"{path.as_posix()}:{number}: only _kernel may say {match[0]}"
                for number, line in enumerate(text.splitlines(), start=1)
                for match in JVM.finditer(line)
            ]
    return found


def _problem(room: str, target: str, name: str) -> str:
    package, _, inner = target.partition(".")
    if package == "headgate":
        if not inner:
            allowed = room in (DOOR, "__main__")
        else:
            allowed = _is_in(inner, MAY_IMPORT[room] | {room})
        if allowed and MAY_IMPORT[room] >= CONTROL and not _is_value(inner, name):
            return f"{room} may not import {name or 'all'} of {target}: it is not a value"
        return "" if allowed else f"{room} may not import {target}"
    if package in sys.stdlib_module_names:
        return ""
    if package == "pyspark":
        if room in ("engine", "_kernel"):
            return ""
        return f"{room} may not import {target}: Spark stays out of here"
    if room in OUTSIDE and package not in OUTSIDE[room]:
        return f"{room} may not import {target}"
    return ""


def _is_in(inner: str, modules: Collection[str]) -> bool:
    return any(inner == each or inner.startswith(f"{each}.") for each in modules)


def _is_value(inner: str, name: str) -> bool:
    """Tell whether an import is not one of an operation of a room that only gives values."""
    return not _is_in(inner, VALUES) or _is_in(inner, OPERATIONS) or name[:1].isupper()


def _ordered_part(tree: ast.Module, path: Path) -> ast.AST:
    """Return what the order of inner rooms concerns: all of a module, or all outside functions."""
    if _module_of(path) not in OPENED_IN_METHODS:
        return tree
    return ast.Module(
        [
            node
            for node in tree.body
            if isinstance(node, ast.stmt) and not isinstance(node, ast.ClassDef | ast.FunctionDef)
        ],
        [],
    )


def _inner_problem(path: Path, target: str) -> str:
    own, wanted = _module_of(path), target.removeprefix("headgate.")
    for room in INNER:
        mine, other = _find_line(room, own), _find_line(room, wanted)
        if mine is not None and other is not None and other > mine:
            return f"{own} may not import {target}: that lies above it"
    return ""


def _module_of(path: Path) -> str:
    """Return the module that a file is, without `headgate.`."""
    return ".".join(path.parts).removesuffix(".py").removesuffix("__init__").rstrip(".")


def _find_line(room: str, module: str) -> int | None:
    """Return the line of a module in the table of a room; None if none has it."""
    inner = module.removeprefix(f"{room}.")
    if inner == module:
        return None
    lines = enumerate(INNER[room])
    fits = [
        (len(name), number)
        for number, line in lines
        for name in line.split()
        if inner == name or inner.startswith(f"{name}.")
    ]
    return max(fits)[1] if fits else None


def find_unplaced(root: Path) -> list[str]:
    """Return the modules that are in no line of the table of their room."""
    return [
        file.relative_to(root).as_posix()
        for room in INNER
        for file in sorted(_folder(root, room).rglob("*.py"))
        if file != _folder(root, room) / "__init__.py"
        and _find_line(room, _module_of(file.relative_to(root))) is None
    ]


def find_crowded(root: Path) -> list[str]:
    """Return the folders of the rooms that have inner ones which hold too many modules."""
    # Once each: a room of the table may be in another one of it.
    files = {file for room in INNER for file in _folder(root, room).rglob("*.py")}
    counts = Counter(
        file.parent.relative_to(root).as_posix() for file in files if file.name != "__init__.py"
    )
    return sorted(folder for folder, count in counts.items() if count > MOST_MODULES)


def _folder(root: Path, room: str) -> Path:
    return root.joinpath(*room.split("."))


def _imports(tree: ast.AST, path: Path, root: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the module and the imported name, if any, of every import."""
    package = ["headgate", *path.parent.parts]
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield node.lineno, alias.name, ""
            case ast.ImportFrom(module=module, names=names, level=level):
                outer = package[: len(package) - level + 1] if level else []
                base = ".".join([*outer, *([module] if module else [])])
                for alias in names:
                    module = _module(base, alias.name, root)
                    yield node.lineno, module, alias.name if module == base else ""
            case ast.Call(
                func=ast.Attribute(attr="import_module")
                | ast.Name(id="import_module" | "__import__"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name, ""


def _module(base: str, name: str, root: Path) -> str:
    """Return the module that `from base import name` reaches: base.name where that is one."""
    if base.partition(".")[0] != "headgate":
        return base
    inner = root.joinpath(*base.split(".")[1:], name)
    return f"{base}.{name}" if inner.is_dir() or inner.with_suffix(".py").is_file() else base


def test_every_import_of_headgate_goes_down() -> None:
    assert find_violations(SOURCE) == []


def test_every_module_of_a_large_room_has_a_place() -> None:
    assert find_unplaced(SOURCE) == []


def test_no_folder_of_a_large_room_is_crowded() -> None:
    assert find_crowded(SOURCE) == []


def test_the_tables_name_nothing_that_is_not_there() -> None:
    named = [
        (room, name) for room, lines in INNER.items() for each in lines for name in each.split()
    ]
    places = [_folder(SOURCE, f"{room}.{name}") for room, name in named]
    missing = [
        each for each in places if not each.is_dir() and not each.with_suffix(".py").is_file()
    ]
    assert missing == []


def test_every_room_of_the_tables_is_there() -> None:
    rooms = {file.relative_to(SOURCE).parts[0].removesuffix(".py") for file in SOURCE.rglob("*.py")}
    assert set(MAY_IMPORT) == rooms
    assert set(OUTSIDE) <= rooms


def test_the_test_reads_the_sources_it_means_to() -> None:
    read = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")}
    assert {"__init__.py", "errors.py", "flow/graph/graph.py", "connectors/console.py"} <= read


BAD = [
    ("flow/a.py", "from headgate.engine import plan", "flow may not import headgate.engine"),
    ("flow/a.py", "from headgate.connectors.files import Files", "headgate.connectors.files"),
    ("flow/a.py", "from headgate._clock import Clock", "flow may not import headgate._clock"),
    ("flow/a.py", "from headgate._codec import encode", "flow may not import headgate._codec"),
    ("flow/a.py", "from headgate import jobs", "flow may not import headgate.jobs"),
    ("flow/a.py", "from headgate import Flow", "flow may not import headgate"),
    ("flow/a.py", "import headgate.jobs.values", "flow may not import headgate.jobs.values"),
    ("flow/a.py", "from ..engine import plan", "flow may not import headgate.engine"),
    ("flow/a.py", "from .. import engine", "flow may not import headgate.engine"),
    ("flow/deep/a.py", "from ...jobs import spec", "flow may not import headgate.jobs"),
    ("flow/__init__.py", "from ..jobs import spec", "flow may not import headgate.jobs"),
    ("flow/a.py", "def f():\n    import numpy", "flow may not import numpy"),
    ("flow/a.py", "from importlib import import_module\nimport_module('pyspark')", "pyspark"),
    ("flow/a.py", "import importlib\nimportlib.import_module('headgate.jobs')", "headgate.jobs"),
    ("errors.py", "from headgate._units import parse_size", "errors may not import"),
    ("_units.py", "import numpy", "_units may not import numpy"),
    ("_codec.py", "from headgate.jobs import home", "_codec may not import headgate.jobs"),
    ("_kernel/a.py", "from headgate.flow import Graph", "_kernel may not import headgate.flow"),
    ("connectors/files/a.py", "from headgate.engine import plan", "connectors may not"),
    ("connectors/files/a.py", "from pyspark.sql import DataFrame", "Spark stays out"),
    ("connectors/_spark.py", "import pyspark", "Spark stays out"),
    ("checkpoints/a.py", "from headgate.flow import Graph", "checkpoints may not"),
    ("checkpoints/a.py", "import pyspark", "Spark stays out"),
    ("engine/a.py", "from headgate.jobs import spec", "engine may not import headgate.jobs"),
    ("engine/a.py", "from headgate.checkpoints import catalog", "engine may not"),
    ("jobs/a.py", "from headgate.cli import main", "jobs may not import headgate.cli"),
    ("jobs/a.py", "import pyspark.sql", "Spark stays out"),
    ("flow/schemas/a.py", "from headgate.flow.graph.graph import Graph", "lies above it"),
    ("engine/plan/a.py", "from ..attempt import query", "lies above it"),
    ("cli/parts/a.py", "from headgate.cli.views import jobs", "lies above it"),
    (
        "jobs/lifecycle/a.py",
        "from headgate.jobs.runs.lineage import Run",
        "jobs.lifecycle.a may not",
    ),
    ("jobs/lifecycle/a.py", "from headgate.jobs.runs import lineage", "jobs.lifecycle.a may not"),
    ("jobs/lifecycle/a.py", "from ..runs import lineage", "lies above it"),
    ("jobs/lifecycle/__init__.py", "from headgate.jobs import runs", "jobs.lifecycle may not"),
    (
        "jobs/job_folder.py",
        "def f():\n    from headgate.jobs import registry",
        "jobs.job_folder may not",
    ),
    ("jobs/runs/a.py", "from headgate.jobs import folder_home", "jobs.runs.a may not"),
    ("jobs/views/a.py", "import headgate.jobs.control.verbs", "jobs.views.a may not"),
    ("jobs/audit/scope.py", "from headgate.jobs.audit import by_key", "lies above it"),
    ("cli/a.py", "from headgate.jobs import spec", "cli may not import headgate.jobs"),
    ("cli/a.py", "from headgate.jobs.folder_homes import x", "cli may not"),
    (
        "cli/a.py",
        "from headgate.jobs.job_folder import JobFolder",
        "cli may not import headgate.jobs.job_folder",
    ),
    ("cli/a.py", "from headgate.jobs.control.verbs import stop_job", "it is not a value"),
    ("server/a.py", "from headgate.jobs.control import verbs", "it is not a value"),
    ("client/a.py", "import headgate.jobs.views.graph", "it is not a value"),
    ("cli/a.py", "from headgate.flow import Flow", "cli may not import headgate.flow"),
    ("cli/a.py", "import numpy", "cli may not import numpy"),
    ("server/a.py", "from headgate.cli import main", "server may not import headgate.cli"),
    ("server/a.py", "from headgate.engine import plan", "server may not"),
    ("server/security/a.py", "from headgate.server.context import x", "server.security.a may not"),
    ("server/actions/a.py", "from headgate.server.api import models", "server.actions.a may not"),
    ("server/api/a.py", "from headgate.server import console", "server.api.a may not"),
    ("server/console/parts/a.py", "from ..pages import jobs", "server.console.parts.a may not"),
    ("server/console/pages/a.py", "from headgate.server.app import x", "lies above it"),
    ("producers/a.py", "from headgate.flow import Flow", "producers may not"),
    ("producers/a.py", "import pyspark", "Spark stays out"),
    ("producers/a.py", "import pandas", "producers may not import pandas"),
    ("brokers/a.py", "from headgate.connectors import Kafka", "brokers may not"),
    ("brokers/a.py", "import confluent_kafka", "brokers may not import confluent_kafka"),
    ("_artifacts.py", "from headgate._clock import Clock", "_artifacts may not"),
    ("_artifacts.py", "import pyspark", "Spark stays out"),
    ("__init__.py", "from headgate.engine import plan", "__init__ may not"),
    ("engine/a.py", "session._jvm.System.exit(1)", "only _kernel may say _jvm"),
    ("engine/a.py", "rows = getattr(frame, '_jdf')", "only _kernel may say _jdf"),
    ("engine/a.py", "import py4j.java_gateway", "only _kernel may say py4j"),
    ("helpers/a.py", "x = 1", "room 'helpers' is in no table"),
]


@pytest.mark.parametrize(("path", "source", "told"), BAD)
def test_a_forbidden_import_is_found_and_named(
    tmp_path: Path, path: str, source: str, told: str
) -> None:
    _write_tree(tmp_path, path, source)
    violations = find_violations(tmp_path)
    assert violations
    assert all(each.startswith(path) for each in violations)
    assert any(told in each for each in violations)


GOOD = [
    ("flow/a.py", "import json\nfrom headgate.errors import HeadgateError"),
    ("flow/a.py", "from headgate.flow.graph.graph import Graph\nfrom .graph.graph import Graph"),
    ("flow/a.py", "from headgate import errors\nfrom .. import _units"),
    ("connectors/files/a.py", "from headgate.flow import Graph"),
    ("engine/a.py", "from pyspark.sql import DataFrame\nfrom headgate._kernel import bridge"),
    ("_kernel/a.py", "import py4j.java_gateway\nsession._jvm"),
    ("jobs/a.py", "from headgate.engine import plan\nfrom headgate.checkpoints import catalog"),
    (
        "jobs/runs/a.py",
        "from headgate.jobs.job_folder import JobFolder\nfrom ..runs import lineage",
    ),
    ("jobs/values.py", "from headgate.jobs.totals import Totals\nfrom . import lifecycle"),
    ("jobs/audit/by_key.py", "from headgate.jobs.audit.scope import Scope"),
    ("jobs/folder_home.py", "from headgate.jobs.audit.job_audit import audit_job"),
    (
        "server/console/pages/a.py",
        "from headgate.server.actions import verbs\nfrom .. import parts",
    ),
    ("server/console/__init__.py", "from headgate.server.console.pages import jobs"),
    ("cli/a.py", "import typer\nfrom headgate.jobs.folder_home import FolderHome"),
    ("cli/a.py", "from headgate.jobs.startup.plan import plan_job\nfrom headgate import _units"),
    ("server/a.py", "from headgate.jobs.control.verbs import Loss, Stopped"),
    ("cli/views/a.py", "from headgate.cli.parts.table import show\nfrom ..parts.table import show"),
    ("producers/a.py", "import numpy as np\nfrom headgate._units import format_count"),
    ("checkpoints/a.py", "from headgate._clock import Clock"),
    ("_codec.py", "def f():\n    import pydantic"),
    ("jobs/a.py", "from headgate._codec import encode"),
    ("__init__.py", "from headgate.flow import Flow"),
]


@pytest.mark.parametrize(("path", "source"), GOOD)
def test_an_import_that_goes_down_is_let_through(tmp_path: Path, path: str, source: str) -> None:
    _write_tree(tmp_path, path, source)
    assert find_violations(tmp_path) == []


def test_a_module_that_is_in_no_line_is_named(tmp_path: Path) -> None:
    _write_tree(tmp_path, "jobs/runs/lineage.py", "")
    assert find_unplaced(tmp_path) == ["jobs/spec.py"]


def test_a_crowded_folder_is_named(tmp_path: Path) -> None:
    for number in range(MOST_MODULES - 1):
        _write_tree(tmp_path, f"jobs/runs/beside_lineage_{number}.py", "")
    _write_tree(tmp_path, "jobs/runs/__init__.py", "")
    assert find_crowded(tmp_path) == []
    _write_tree(tmp_path, "jobs/runs/one_more.py", "")
    assert find_crowded(tmp_path) == ["jobs/runs"]


def _write_tree(root: Path, path: str, source: str) -> None:
    rooms = (
        "flow/graph/graph",
        "engine/plan/plan",
        "jobs/folder_home",
        "jobs/spec",
        "errors",
        "_units",
    )
    inner = ("jobs/registry", "jobs/runs/lineage", "jobs/audit/by_key", "jobs/audit/scope")
    outer = ("engine/attempt/query", "cli/views/jobs")
    shown = ("server/console/__init__", "server/console/parts/live", "server/console/pages/jobs")
    for name in (
        *rooms,
        *inner,
        *outer,
        *shown,
        "_kernel/bridge",
        "checkpoints/catalog",
        "cli/parts/table",
    ):
        file = root / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(source)
