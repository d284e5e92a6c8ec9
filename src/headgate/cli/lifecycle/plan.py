"""The command that shows the plan of a flow."""

from __future__ import annotations

from typing import Annotated

import typer

from headgate.cli.parts.options import FlowFile, Json, On
from headgate.cli.parts.output import note, print_table, say, show
from headgate.connectors.logs import DEFAULT_LOG
from headgate.engine.settings import Delivery
from headgate.jobs.startup.plan import JobPlan, plan_job


def plan(
    flow: FlowFile,
    on: On = DEFAULT_LOG,
    delivery: Annotated[
        Delivery,
        typer.Option(
            "--delivery",
            metavar="exactly-once|at-least-once",
            help="Delivery guarantee of the outputs.",
        ),
    ] = Delivery.EXACTLY_ONCE,
    spark: Annotated[bool, typer.Option("--spark", help="Print Spark's own plan too.")] = False,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Let Spark check the flow's SQL.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Show a flow's graph, with the exchange on every edge.

    Spark checks the SQL of the flow, which takes a few seconds; --no-check skips that.

    [bold]Examples[/bold]

      headgate plan examples/orders/flow.py
      headgate plan examples/orders/flow.py --spark
    """
    progress = None if as_json else note
    planned = plan_job(
        flow, on, delivery=delivery, with_spark=spark, check=check, progress=progress
    )
    show(planned, _print_plan, as_json=as_json)


def _print_plan(plan: JobPlan) -> None:
    say(plan.text)
    print_table(
        ["output", "topic", "delivery", "based on"],
        [
            [name, output.topic, output.delivery, output.rests_on]
            for name, output in plan.deliveries.items()
        ],
    )
    if plan.spark is not None:
        say(plan.spark)
    if not plan.checked:
        note("The SQL in this flow was not checked: omit --no-check to let Spark check it")
