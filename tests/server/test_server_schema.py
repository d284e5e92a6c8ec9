"""The OpenAPI description against the real app: whatever it allows, no answer is a fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from fake_supervisor import FakeSupervisor
from hypothesis import HealthCheck, Phase, given, strategies
from hypothesis import settings as examples
from schemathesis import checks
from server_bench import HERE, TestClient, client, settings, store_job

from headgate.jobs.job_folder import JobFolder

_CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
# What starts a process of Spark's; asked of jobs that are not there only.
_HEAVY = ("/value", "/history", "/rows", "/sql")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Give a server with a job that rests and one that runs."""
    root = tmp_path_factory.mktemp("described")
    rests = store_job(root)
    # How it was started is not known any more, so that nothing starts it.
    (rests.path / "job.json").unlink()
    runs = JobFolder(rests.root, "runs")
    (root / "topics" / "orders").mkdir(parents=True)
    (root / "topics" / "orders" / "1.jsonl").write_text('{"id": 1}\n')
    with FakeSupervisor(runs), client(settings(root)) as made:
        yield made


def test_no_answer_is_a_fault_and_all_are_as_described(served: TestClient) -> None:
    description = schemathesis.openapi.from_dict(served.get("/v1/openapi.json").json())
    asked = 0
    for found in description.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]
        statuses = _try(operation, served)
        asked += len(statuses)
        print(f"{operation.method.upper()} {operation.path}: {sorted(set(statuses))}")
    assert asked > 300


def _try(operation: Any, served: TestClient) -> list[int]:
    statuses = []

    @examples(
        max_examples=10,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        case=operation.as_strategy(),
        job=strategies.sampled_from(["shop", "runs", None]),
    )
    def ask(case: Any, job: str | None) -> None:
        if job and "job" in case.path_parameters and not case.path.endswith(_HEAVY):
            # The job that rests is needed by the other operations.
            is_delete = (case.method, case.path) == ("DELETE", "/v1/jobs/{job}")
            case.path_parameters["job"] = "runs" if is_delete else job
        answer = served.request(**_request(case))
        statuses.append(answer.status_code)
        case.validate_response(schemathesis.Response.from_any(answer), checks=_CHECKS)

    ask()
    return statuses


def _request(case: Any) -> dict[str, Any]:
    told = case.as_transport_kwargs(base_url=HERE)
    if isinstance(told.get("data"), str | bytes):
        told["content"] = told.pop("data")
    return {key: value for key, value in told.items() if key not in ("cookies", "auth")}
