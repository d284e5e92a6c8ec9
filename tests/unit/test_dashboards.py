"""Dashboard and alert rules: PromQL that parses, and metrics and labels that exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml  # type: ignore[import-untyped]

from headgate.cli.app import _COMMANDS as COMMANDS
from headgate.server.metrics.exposition import SERVER_METRICS
from headgate.server.metrics.metric import Kind
from headgate.server.metrics.table import JOB_METRICS

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana" / "headgate.json").read_text())
ALERTS = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def labels_by_name() -> dict[str, set[str]]:
    """Return the labels of every series that /metrics gives."""
    found = {name: set(labels) for name, labels, _ in SERVER_METRICS}
    for metric in JOB_METRICS:
        labels = {"job", *metric.labels}
        if metric.kind is Kind.HISTOGRAM:
            found |= {f"{metric.full_name}_{part}": labels for part in ("sum", "count")}
            found[f"{metric.full_name}_bucket"] = {*labels, "le"}
        else:
            found[metric.full_name] = labels
    return found


LABELS = labels_by_name()


def queries() -> list[tuple[str, str]]:
    panels = [(panel["title"], each["expr"]) for panel in PANELS for each in panel["targets"]]
    return panels + [(rule["alert"], rule["expr"]) for rule in RULES]


def parse(query: str) -> Any:
    # Grafana puts values in the place of its variables.
    return promql_parser.parse(query.replace("$__rate_interval", "5m").replace("$job", "orders"))


def parts(expression: Any) -> Iterator[Any]:
    """Yield an expression and all that it consists of."""
    yield expression
    for name in ("expr", "lhs", "rhs", "vector_selector", "param"):
        inner = getattr(expression, name, None)
        if inner is not None and type(inner).__module__.startswith("promql"):
            yield from parts(inner)
    for inner in getattr(expression, "args", None) or ():
        yield from parts(inner)


def selectors(query: str) -> list[promql_parser.VectorSelector]:
    return [each for each in parts(parse(query)) if isinstance(each, promql_parser.VectorSelector)]


@pytest.mark.parametrize(("title", "query"), queries())
def test_a_query_reads_metrics_and_labels_that_exist(title: str, query: str) -> None:
    found = selectors(query)
    # Every name in the text was found as a selector.
    assert {each.name for each in found} == set(re.findall(r"headgate_\w+", query))
    for each in found:
        assert each.name in LABELS
        assert {matcher.name for matcher in each.matchers.matchers} <= LABELS[each.name]


@pytest.mark.parametrize(("title", "query"), queries())
def test_a_query_takes_rates_of_counters_and_of_nothing_else(title: str, query: str) -> None:
    for each in parts(parse(query)):
        if isinstance(each, promql_parser.Call) and each.func.name in ("rate", "increase"):
            (name,) = {inner.name for inner in parts(each) if hasattr(inner, "matchers")}
            assert name.endswith(("_total", "_bucket", "_count", "_sum"))


def test_legends_name_labels_that_the_query_leaves() -> None:
    for panel in PANELS:
        for target in panel["targets"]:
            wanted = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            known = set().union(*(LABELS[str(each.name)] for each in selectors(target["expr"])))
            grouped = re.search(r"by \(([\w, ]+)\)", target["expr"])
            assert wanted <= (set(grouped[1].split(", ")) if grouped else known), panel["title"]


def test_panels_do_not_overlap_and_have_a_description() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken
        assert at["x"] + at["w"] <= 24
        taken |= cells
    assert all(panel["description"].endswith(".") for panel in PANELS)
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert sorted(set(ids)) == sorted(ids)


def test_alerts_have_a_severity_and_name_commands_that_exist() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule["labels"]["severity"] in ("warning", "critical")
        text = " ".join(rule["annotations"].values())
        assert set(re.findall(r"headgate ([a-z-]+)", text)) <= set(COMMANDS)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")
@pytest.mark.parametrize(
    "check", [("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")]
)
def test_promtool_finds_nothing_wrong(check: tuple[str, ...]) -> None:
    done = subprocess.run(
        ["promtool", *check], cwd=DEPLOY / "prometheus", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
