"""Planning a job without running it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headgate._artifacts import Progress
from headgate._codec import alias, left_out, shaped
from headgate._kernel.jar import get_jars
from headgate.connectors.logs import bind, parse_log
from headgate.connectors.registry import find_connector
from headgate.engine.plan.flow_plan import kernel_modules
from headgate.engine.plan.plan import plan_flow
from headgate.engine.settings import AttemptSettings, Delivery, SparkSettings
from headgate.flow.drawing.explain import explain
from headgate.flow.graph.graph import Graph
from headgate.flow.topics import Topic
from headgate.jobs.flow_file import load_flow
from headgate.jobs.runs.lineage import FlowJson

# Steps of a route that hold SQL or a function; the rest was checked when the flow was built.
_CHECKED_BY_SPARK = ("where", "compute", "function")


@dataclass(frozen=True, slots=True)
class OutputPlan:
    """Where the rows of an output go, and how often each is there, whatever was killed.

    Attributes:
        topic: The bound topic, in words.
        delivery: How often.
        rests_on: What makes it so, in words; empty where nothing has to.
    """

    topic: str
    delivery: str
    rests_on: str


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A flow as it would run.

    Attributes:
        text: The graph, with the exchange on every edge.
        checked: Whether Spark has checked the SQL in it; True where there is none.
        spark: Spark's own plan, if it was asked for.
        deliveries: By the id of an output, where its rows go and how often each is there.
    """

    graph: FlowJson = field(metadata=alias("flow"))
    text: str = field(metadata=left_out())
    checked: bool = field(metadata=alias("checked_by_spark"))
    spark: str | None = field(metadata=alias("spark_plan"))
    deliveries: Mapping[str, OutputPlan] = field(metadata=alias("delivery"))

    @property
    def operators(self) -> list[str]:
        """The uids of the operators that hold state."""
        return [node.id for node in self.graph.stateful()]

    @property
    def outputs(self) -> list[str]:
        """The ids of the outputs."""
        return [node.id for node in self.graph.outputs()]

    @property
    def counted_only(self) -> list[str]:
        """The outputs whose rows are counted and not written."""
        return [str(port) for port in self.graph.unused_outputs()]

    __get_pydantic_core_schema__ = shaped(
        computed={name: name for name in ("operators", "outputs", "counted_only")}
    )


def plan_job(
    flow: str,
    on: str,
    *,
    delivery: Delivery,
    with_spark: bool,
    check: bool,
    progress: Progress | None = None,
) -> JobPlan:
    """Return the plan of a flow; SQL in it is checked by Spark, which takes a few seconds.

    Args:
        flow: As `load_flow` takes it.
        on: The log of topics that are known by name alone.
        delivery: Where a log serves both.
        with_spark: Ask for Spark's own plan too.
        check: Have Spark check the flow if there is anything in it that only Spark can.
        progress: Called with lines about the connectors' jars if they are fetched first.
    """
    loaded = load_flow(flow)
    graph = bind(loaded.graph, parse_log(on))
    spec = json.dumps(plan_flow(graph, history={}, max_record=0).spec)
    needed = any(f'"step": "{step}"' in spec for step in _CHECKED_BY_SPARK)
    spark = None
    if with_spark or (check and needed):
        get_jars(kernel_modules(graph), progress=progress)
        text = _spark_plan(graph, loaded.folder)
        spark = text if with_spark else None
    return JobPlan(
        graph,
        explain(loaded.graph),
        with_spark or check or not needed,
        spark,
        _deliveries(graph, delivery),
    )


def _deliveries(graph: Graph, delivery: Delivery) -> dict[str, OutputPlan]:
    topics = {node.id: node.topic for node in graph.outputs()}
    topics[graph.dead_letters.name] = graph.dead_letters
    return {
        name: OutputPlan(topic.describe(), *_delivery(topic, delivery))
        for name, topic in topics.items()
    }


def _delivery(topic: Topic, delivery: Delivery) -> tuple[str, str]:
    connector = find_connector(topic)
    if connector is None:
        return "shown, not kept", ""
    if not connector.writing.can_repeat:
        return Delivery.EXACTLY_ONCE.value, connector.writing.rests_on
    is_exact = delivery is Delivery.EXACTLY_ONCE
    return delivery.value, connector.writing.rests_on if is_exact else "acknowledgements"


def _spark_plan(graph: Graph, folder: Path) -> str:
    # A plan without Spark must not wait for this import.
    from headgate.engine.attempt.attempt import Attempt

    with tempfile.TemporaryDirectory(prefix="headgate-plan-") as scratch:
        settings = AttemptSettings(
            job=graph.name,
            lineage="plan",
            checkpoint=Path(scratch) / "checkpoint",
            spark=SparkSettings(parallelism=1, log_file=Path(scratch) / "spark.log"),
        )
        attempt = Attempt(graph, settings, near=folder)
        try:
            return attempt.explain()
        finally:
            attempt.close()
