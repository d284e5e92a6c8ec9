"""The command that shows the plan of a flow."""

from __future__ import annotations

from typing import Annotated

import typer

from headgate.cli.options import FlowFile, Json, On
from headgate.cli.output import note, print_json, print_table, say
from headgate.connectors.logs import DEFAULT_LOG
from headgate.engine.settings import Delivery
from headgate.jobs.startup.plan import plan_job

_HELP = """Show a flow's graph, with the exchange on every edge.

SQL in the flow is checked by Spark, which takes a few seconds; --no-check leaves that out.

[bold]Examples[/bold]

  headgate plan examples/orders/flow.py

  headgate plan examples/orders/flow.py --spark
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan", help=_HELP)(_plan)


def _plan(
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
    plan = plan_job(flow, on, delivery=delivery, with_spark=spark, check=check)
    if as_json:
        print_json(plan)
        return
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
