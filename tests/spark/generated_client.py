"""A client of the REST API that OpenAPI Generator makes from the server's own description."""

from __future__ import annotations

import importlib
import importlib.resources
import json
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import httpx
from eventually import eventually

_PACKAGE = "headgate_client"
# It runs for seconds, in which a better compiler does not pay.
_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_SOURCES_ALONE = "apiTests=false,modelTests=false,apiDocs=false,modelDocs=false"


class GeneratedClient:
    """What a user of the generated package writes to submit, watch, restore and delete a job."""

    def __init__(self, address: str, folder: Path) -> None:
        description = httpx.get(f"{address}/v1/openapi.json").json()
        self._package: Any = _generate(description, folder)
        self.connect(address)

    def connect(self, address: str) -> None:
        """Use the server at another address."""
        package = self._package
        connection = package.ApiClient(package.Configuration(host=address))
        self._jobs = package.JobsApi(connection)
        self._server = package.ServerApi(connection)
        self._checkpoints = package.CheckpointsApi(connection)

    def submit_twice(self, flow: str) -> str:
        """Submit a flow, repeat the request with its key, and return the path of the operation."""
        wanted, key = self._package.Submit(flow=flow), uuid.uuid4().hex
        first = self._jobs.submit_job(wanted, idempotency_key=key)
        assert self._jobs.submit_job(wanted, idempotency_key=key).id == first.id
        return f"/v1/operations/{first.id}"

    def watch(self, job: str) -> None:
        """Read everything about a running job, in the types of the package."""
        shown = self._jobs.get_job(job)
        assert (shown.job, shown.alive, shown.settings["retain"].var_from) == (job, True, "default")
        assert job in [listed.job for listed in self._jobs.list_jobs().jobs]
        nodes = {node.id: node.kind for node in self._jobs.get_graph(job).nodes}
        assert (nodes["users"], nodes["with-user"]) == ("table", "operator")
        assert self._jobs.get_samples(job).job == job
        assert self._jobs.list_exceptions(job).failures == []
        assert self._jobs.get_log(job, limit=3).lines
        assert {"STARTING", "RUNNING"} <= set(self._event_kinds(job))

    def restore(self, job: str) -> None:
        """Go back to the oldest checkpoint of a stopped job, and wait until it runs again."""
        oldest = self._list_checkpoints(job)[-1]
        wanted = self._package.Restore(var_from=oldest.id)
        plan = self._jobs.restore_job(job, self._package.Restore(var_from=oldest.id, dry_run=True))
        assert plan.checkpoint == oldest.id
        self._follow(self._jobs.restore_job(job, wanted))
        eventually(lambda: self._jobs.get_job(job).state == "RUNNING")

    def delete(self, job: str) -> None:
        """Stop a job and delete it."""
        assert self._follow(self._jobs.stop_job(job)).result["state"].actual_instance == "STOPPED"
        self._follow(self._jobs.delete_job(job))
        assert job not in [listed.job for listed in self._jobs.list_jobs().jobs]

    def _follow(self, operation: Any) -> Any:
        def ended() -> Any:
            now = self._server.get_operation(operation.id)
            return None if now.state == "RUNNING" else now

        done = eventually(ended, what=lambda: self._server.get_operation(operation.id))
        assert (done.state, done.error) == ("DONE", None)
        return done

    def _event_kinds(self, job: str) -> list[str]:
        kinds, after, more = [], "0", True
        while more:
            page = self._jobs.list_events(job, after=after, limit=2)
            kinds += [event.event for event in page.events]
            after, more = page.next, page.more
        return kinds

    def _list_checkpoints(self, job: str) -> list[Any]:
        listed, after, more = [], None, True
        while more:
            page = self._checkpoints.list_checkpoints(job, after=after, limit=2)
            listed += [checkpoint.actual_instance for checkpoint in page.checkpoints]
            after, more = page.next, page.more
        return listed


def _generate(description: dict[str, Any], folder: Path) -> Any:
    folder.mkdir()
    (folder / "openapi.json").write_text(json.dumps(description))
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    assert java is not None
    with importlib.resources.as_file(importlib.resources.files("openapi_generator_cli")) as place:
        words = ["generate", "-g", "python", "-i", "openapi.json", "-o", "."]
        words += ["--package-name", _PACKAGE, "--global-property", _SOURCES_ALONE]
        command = [java, *_JAVA, "-jar", str(place / "openapi-generator.jar"), *words]
        done = subprocess.run(
            command, cwd=folder, check=False, capture_output=True, text=True, timeout=300
        )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(_PACKAGE)
    finally:
        sys.path.remove(str(folder))
