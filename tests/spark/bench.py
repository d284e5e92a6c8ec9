"""A bench for whole jobs: topics to fill, a job to run, outputs to read as any reader would."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import inline_attempts
import pytest
from inline_attempts import InlineLauncher
from shared_session import share_session

import headgate
from headgate import Flow, HeadgateError
from headgate.jobs.startup.foreground import run_job
from headgate.jobs.values import JobSnapshot, RunOptions, Watcher

share_session()


@dataclass
class Bench:
    """Topics and jobs under one folder."""

    root: Path
    topics_name: str = "topics"
    rows: list[tuple[str, Any]] = field(default_factory=list)
    _files: int = 0

    @property
    def topics(self) -> Path:
        """The folder of all topics."""
        return self.root / self.topics_name

    @property
    def home(self) -> Path:
        """The folder of all jobs."""
        return self.root / "home"

    def put(self, topic: str, records: Iterable[Any], *, path: str | None = None) -> Path:
        """Publish a file of a topic, whole: values as JSON, bytes and text as they are."""
        lines = [each if isinstance(each, bytes | str) else json.dumps(each) for each in records]
        content = b"\n".join(each.encode() if isinstance(each, str) else each for each in lines)
        return self.put_bytes(topic, content + b"\n" if lines else b"", path=path)

    def put_bytes(self, topic: str, content: bytes, *, path: str | None = None) -> Path:
        """Publish a file of a topic with exactly this content."""
        self._files += 1
        file = self.topics / topic / (path or f"{self._files:06d}.jsonl")
        file.parent.mkdir(parents=True, exist_ok=True)
        making = file.with_name(f".{file.name}.tmp")
        making.write_bytes(content)
        making.replace(file)
        return file

    def read(self, topic: str) -> list[Any]:
        """Return all records of a topic, in no order that means anything."""
        folder = self.topics / topic
        return [
            json.loads(line)
            for file in sorted(folder.rglob("*.jsonl"))
            if not any(part.startswith(("_", ".")) for part in file.relative_to(folder).parts)
            for line in file.read_text(encoding="utf-8").splitlines()
        ]

    def bag(self, topic: str) -> Counter[str]:
        """Return how often each record of a topic is there."""
        return bag(self.read(topic))

    def flow_file(self, flow: Flow, name: str = "flow.json") -> Path:
        """Write a flow where `run_job` finds it."""
        file = self.root / name
        file.write_text(flow.graph().to_json(), encoding="utf-8")
        return file

    def run(
        self,
        flow: Flow | Path,
        *,
        watch: Callable[[JobSnapshot], None] = lambda _: None,
        **options: Any,
    ) -> JobSnapshot:
        """Run a job in this process until it has caught up, unless the options say otherwise."""
        file = self.flow_file(flow) if isinstance(flow, Flow) else flow
        chosen: dict[str, Any] = {
            "on": f"files:{self.topics}",
            "home": self.home,
            "until_caught_up": True,
            "parallelism": None,
            "batch_every": timedelta(0),
            "restart": "none",
            **options,
        }
        watcher = Watcher(
            on_snapshot=watch,
            on_row=lambda output, row: self.rows.append((output, json.loads(row))),
        )
        with _late_signals_ignored():
            return run_job(str(file), RunOptions(**chosen), watcher, launcher=InlineLauncher())

    def command(self, flow: Path, *, child: str = "", **options: Any) -> list[str]:
        """Return the command that runs a job in a process of its own."""
        place = {"on": f"files:{self.topics}", "home": str(self.home)}
        given = {**place, "restart": "none", **options}
        return [sys.executable, "-c", child or _CHILD, str(flow), json.dumps(given)]

    def spawn_supervised(self, flow: Path, **options: Any) -> subprocess.Popen[str]:
        """Start a job whose attempts are processes of their own, which may die."""
        launched = _CHILD.replace(", launcher=InlineLauncher()", "")
        return self.spawn(flow, child=launched, restart="fixed-delay:50,0s", **options)

    def spawn(self, flow: Path, **options: Any) -> subprocess.Popen[str]:
        """Start a job in a process group of its own."""
        source, tests = Path(headgate.__file__).parents[1], Path(inline_attempts.__file__).parent
        return subprocess.Popen(
            self.command(flow, **options),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": f"{source}:{tests}"},
            start_new_session=True,
        )


_CHILD = """
import json, sys
from datetime import timedelta
from pathlib import Path
from headgate._codec import encode
from inline_attempts import InlineLauncher
from headgate.jobs.values import RunOptions, Watcher
from headgate.jobs.startup.foreground import run_job
given = json.loads(sys.argv[2])
options = RunOptions(
    **{**given, "home": Path(given["home"]), "batch_every": timedelta(0), "until_caught_up": True}
)
print(json.dumps(encode(run_job(sys.argv[1], options, Watcher(), launcher=InlineLauncher()))))
"""


def bag(records: Iterable[Any]) -> Counter[str]:
    """Return how often each record is there; records are compared as JSON."""
    return Counter(json.dumps(each, sort_keys=True) for each in records)


@contextmanager
def _late_signals_ignored() -> Iterator[None]:
    """Let `stop_now` do nothing once the job has ended by itself: it would end the tests."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def stop_now() -> None:
    """Ask the job that runs in this process to end, as a terminal or a supervisor would."""
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def refused(code: str) -> Iterator[pytest.ExceptionInfo[HeadgateError]]:
    """Expect a HeadgateError of this code, with a message and a next step."""
    with pytest.raises(HeadgateError) as caught:
        yield caught
    assert caught.value.code == code, caught.value
    assert caught.value.hint
