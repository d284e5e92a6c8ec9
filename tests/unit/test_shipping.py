"""What executors get of Python: the modules beside a flow, Headgate's own, and an interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from pyspark.worker_util import setup_spark_files

import headgate
from headgate import Flow
from headgate._units import parse_size
from headgate.engine.settings import SparkSettings
from headgate.engine.user_code import shipping
from headgate.engine.user_code.flow_modules import import_sent
from headgate.engine.user_code.functions import worker_spec
from headgate.engine.user_code.shipping import (
    CODE,
    FLOW,
    MODULES,
    calls_python,
    find_modules,
    find_spark_python,
    in_users_terms,
    pack,
    send,
)
from headgate.errors import HeadgateError

CLUSTER = "spark://h:7077"


def write(folder: Path, *names: str) -> None:
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# {name}\n")


def test_modules_and_packages_are_found_and_nothing_else(tmp_path: Path) -> None:
    wanted = (
        "flow.py",
        "fast.abi3.so",
        "rules/__init__.py",
        "rules/words.txt",
        "rules/deep/__init__.py",
        "plain/inner/module.py",
    )
    write(
        tmp_path, *wanted, "data.csv", "plain/data.csv", ".venv/lib/a.py", "rules/__pycache__/a.py"
    )
    write(
        tmp_path, "env/pyvenv.cfg", "env/lib/module.py", ".headgate/jobs/x.py", "node_modules/m.py"
    )
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere.py")
    found = {file.relative_to(tmp_path).as_posix() for file in find_modules(tmp_path)}
    assert found == set(wanted)


def test_an_archive_of_equal_modules_is_equal_and_runs_with_nothing_installed(
    tmp_path: Path,
) -> None:
    flow = tmp_path / "flow"
    write(flow, "halving.py")
    for name in ("a", "b"):
        os.utime(flow / "halving.py", (ord(name), ord(name)))
        pack(flow, tmp_path / f"{name}.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    unpacked = tmp_path / "work" / MODULES
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        archive.extractall(unpacked)
    assert (unpacked / "flow" / "halving.py").is_file()
    # As a worker starts it: Headgate is found there and not where it is installed.
    script = "import headgate.functions.worker as w, halving; print(w.__file__)"
    environment = {**os.environ, "PYTHONPATH": f"{unpacked}/code:{unpacked}/flow"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(unpacked / "code/headgate/functions/worker.py")


def test_too_many_modules_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipping, "_LARGEST", parse_size("1k"))
    (tmp_path / "big.py").write_text("#" * 2000)
    with pytest.raises(HeadgateError) as caught:
        pack(tmp_path, tmp_path / "a.zip")
    assert caught.value.code == "FLOW_FOLDER_TOO_LARGE"
    assert str(tmp_path) in caught.value.message


def test_a_local_job_uses_the_folders_and_the_python_of_its_driver(tmp_path: Path) -> None:
    spec = worker_spec(settings(tmp_path, "local[*]"), tmp_path)
    assert (spec["python"], spec["path"], spec["code"]) == (sys.executable, [str(tmp_path)], None)


@pytest.mark.parametrize(
    ("more", "worker", "of_spark"),
    [
        ({}, sys.executable, sys.executable),
        ({"python": "/opt/python"}, "/opt/python", "/opt/python"),
        (
            {"py_env": Path("env.tar.gz")},
            "sent:headgate-python/bin/python",
            "./headgate-python/bin/python",
        ),
    ],
)
def test_an_executor_uses_what_it_was_sent(
    tmp_path: Path, more: dict[str, Any], worker: str, of_spark: str
) -> None:
    cluster = settings(tmp_path, CLUSTER, **more)
    spec = worker_spec(cluster, tmp_path)
    assert (spec["python"], spec["path"]) == (worker, [f"sent:{FLOW}"])
    assert spec["code"] == f"sent:{CODE}"
    assert find_spark_python(cluster) == of_spark


def test_archives_are_sent_under_their_names(tmp_path: Path) -> None:
    sent: list[str] = []
    context = SimpleNamespace(addArchive=sent.append)
    spark = cast("SparkSession", SimpleNamespace(sparkContext=context))
    send(spark, settings(tmp_path, CLUSTER, py_env=tmp_path / "env.tar.gz"), None)
    assert sent == [
        f"file://{tmp_path}/modules.zip#headgate-modules",
        f"file://{tmp_path}/env.tar.gz#headgate-python",
    ]
    assert zipfile.ZipFile(tmp_path / "modules.zip").testzip() is None


def test_workers_of_spark_search_the_flows_modules_before_headgates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = SimpleNamespace(environment={}, _python_includes=["added.zip", "/of/the/driver"])
    import_sent(cast("SparkSession", SimpleNamespace(sparkContext=context)), "./python")
    assert context.pythonExec == "./python"
    monkeypatch.setattr(sys, "path", ["python's own"])
    includes: Any = context._python_includes
    setup_spark_files(str(tmp_path), includes)
    found = [path.removeprefix(f"{tmp_path}/") for path in sys.path]
    assert found == ["python's own", FLOW, CODE, "added.zip", str(tmp_path)]


def test_only_flows_with_functions_need_python() -> None:
    flow = Flow("orders")
    stream = flow.stream("in", "n BIGINT")
    stream.where("n > 1").to("out")
    assert not calls_python(flow.graph())
    stream.map("twice", lambda row: {"n": row.n * 2}, schema="n BIGINT").to("twice")
    assert calls_python(flow.graph())


def test_errors_name_the_files_of_the_user() -> None:
    text = 'Traceback:\n  File "/w/app-1/0/headgate-modules/flow/rules/a.py", line 4, in halve\n'
    code = f'  File "/w/app-1/0/{CODE}/headgate/functions/worker.py", line 1'
    near = Path("/home/me")
    assert in_users_terms([text], near) == [
        'Traceback:\n  File "/home/me/rules/a.py", line 4, in halve\n'
    ]
    package = Path(headgate.__file__).parent
    assert in_users_terms([code], None) == [f'  File "{package}/functions/worker.py", line 1']
    assert in_users_terms([text], None) == [text]


def settings(folder: Path, master: str, **more: Any) -> SparkSettings:
    return SparkSettings(parallelism=1, master=master, log_file=folder / "spark.log", **more)
