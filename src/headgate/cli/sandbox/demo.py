"""The command that demonstrates everything once."""

from __future__ import annotations

import json
import shutil
import sys
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from headgate._units import format_count
from headgate.cli.parts.options import HomeFolder, Json
from headgate.cli.parts.output import Right, note, print_json, print_table, say, visible
from headgate.cli.parts.running import show_run
from headgate.cli.sandbox.produce import show_production
from headgate.jobs.sandbox.demo import DemoPlace, DemoResults, prepare_demo, read_demo
from headgate.jobs.sandbox.store import StoreOptions
from headgate.jobs.values import DEFAULT_HOME, RunOptions

_LONGEST_SAMPLE = 600


def demo(
    orders: Annotated[int, typer.Option("--orders", min=1, help="Number of orders.")] = 200_000,
    home: HomeFolder = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Run the online store's flow on generated data, and show results.

    It uses a folder of its own, .headgate/demo, which is emptied first.

    [bold]Examples[/bold]

      headgate demo
      headgate demo --orders 20000
    """
    place = prepare_demo(home)
    _head(1, "Users, items and orders of a store, 1 % of them unknown and a few bad", as_json)
    options = StoreOptions(orders=orders, unknown=0.01, bad=0.0005)
    produced = show_production(place.on, options, quiet=as_json)
    if not as_json:
        say(produced.sent.summary)
    _head(2, f"Each order with its user and its item: {place.flow}", as_json)
    run = RunOptions(
        on=place.on, home=place.home, until_caught_up=True, batch_every=timedelta(0), restart="none"
    )
    ended = show_run(str(place.flow), run, as_json=as_json)
    results = read_demo(place)
    if as_json:
        print_json({"run": ended, "results": results, "where": place.on})
    else:
        _head(3, "The output, counted by reading it", as_json)
        _print_counts(results)
        _print_samples(results)
        _print_next(place)
    if not results.adds_up:
        raise typer.Exit(70)


def _head(number: int, text: str, as_json: bool) -> None:
    if not as_json:
        note(Text.assemble(("\n" if number > 1 else "", ""), (f"{number}. {text}", "bold")))


def _print_counts(results: DemoResults) -> None:
    rows: list[tuple[str | Text, str | Text]] = [
        (name, format_count(count)) for name, count in results.counts.items()
    ]
    total = sum(results.counts.values())
    rows.append((Text("sum of outputs", style="bold"), Text(format_count(total), style="bold")))
    rows.append(("orders that went in", format_count(results.orders)))
    print_table(("output", Right("records")), rows)
    say(
        Text("It adds up: every order is in exactly one output", style="green")
        if results.adds_up
        else Text("It does not add up: please report this", style="bold red")
    )


def _print_samples(results: DemoResults) -> None:
    for name, rows in results.samples.items():
        say(Text(f"\n{name}", style="bold"))
        for row in rows:
            line = visible(json.dumps(json.loads(row), ensure_ascii=False))
            say(f"  {line if len(line) <= _LONGEST_SAMPLE else line[:_LONGEST_SAMPLE] + '…'}")


def _print_next(place: DemoPlace) -> None:
    headgate = _program()
    on = f"--on {place.on}"
    say(Text("\nWhere it is", style="bold"))
    say(f"  topics       {place.topics}/")
    say(f"  job          {place.home}/jobs/")
    say(Text("\nWhat to try next", style="bold"))
    for command in (
        f"{headgate} tail missing-users -n 3 {on}",
        f"{headgate} topics --count {on}",
        f"{headgate} plan {place.flow}",
        f"{headgate} checkpoints order-enrichment --home {place.home}",
        f"{headgate} produce store --round 1 --orders 50000 --updates 5000 {on}",
        f"{headgate} run {place.flow} --until-caught-up {on} --home {place.home}",
    ):
        say(f"  {command}")


def _program() -> str:
    """Return the command for this program: its name, or its path if it is not on the PATH."""
    called = Path(sys.argv[0])
    if shutil.which("headgate") or called.name != "headgate":
        return "headgate"
    inside = called.is_absolute() and called.is_relative_to(Path.cwd())
    return str(called.relative_to(Path.cwd()) if inside else called)
