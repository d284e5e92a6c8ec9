"""The demonstration: the online store's orders, from made-up data to counted outputs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files as package_files
from pathlib import Path
from typing import Annotated

from headgate._codec import Form, alias, shaped
from headgate.connectors.files.folder.records import count_records, tail
from headgate.connectors.files.folder.topic import TopicFolder
from headgate.errors import Domain, HeadgateError
from headgate.jobs.flow_file import load_flow

_SAMPLES = 3


@dataclass(frozen=True, slots=True)
class DemoPlace:
    """Where the demonstration lives: a home of its own, so that it touches no other job."""

    home: Path
    flow: Path

    @property
    def topics(self) -> Path:
        """The folder of its topics."""
        return self.home / "topics"

    @property
    def on(self) -> str:
        """Its log, as `--on` names it."""
        return f"files:{self.topics}"


# In JSON the rows are values, not text.
_Rows = Annotated[
    list[str],
    Form(
        lambda rows: [json.loads(row) for row in rows],
        lambda values: [json.dumps(value) for value in values],
        {"type": "array"},
    ),
]


@dataclass(frozen=True, slots=True)
class DemoResults:
    """What the outputs hold, counted by reading them.

    Attributes:
        orders: Records in the topic `orders`.
        counts: Records by output.
        samples: A few records of each output, as JSON text.
    """

    orders: int
    counts: Mapping[str, int] = field(metadata=alias("outputs"))
    samples: Mapping[str, _Rows]

    __get_pydantic_core_schema__ = shaped(computed={"adds_up": "adds_up"})

    @property
    def adds_up(self) -> bool:
        """Whether every order is in exactly as many outputs as there are orders."""
        return sum(self.counts.values()) == self.orders


def prepare_demo(home: Path) -> DemoPlace:
    """Return the demonstration's place, emptied of what an earlier one left there."""
    place = DemoPlace(home / "demo", find_example("orders"))
    if place.home.exists():
        shutil.rmtree(place.home)
    place.topics.mkdir(parents=True)
    return place


def find_example(name: str) -> Path:
    """Return an example's flow: of the checkout, or of the installed package."""
    inside = Path(str(package_files("headgate")))
    for root in (inside.parents[1] / "examples", inside / "examples"):
        if (root / name / "flow.py").is_file():
            flow_file = root / name / "flow.py"
            return (
                flow_file.relative_to(Path.cwd())
                if flow_file.is_relative_to(Path.cwd())
                else flow_file
            )
    raise HeadgateError(
        "EXAMPLE_MISSING",
        f"cannot find example {name!r}: the package does not contain it",
        hint="pip install --force-reinstall headgate",
        domain=Domain.INTERNAL,
    )


def read_demo(place: DemoPlace) -> DemoResults:
    """Count and sample what the demonstration wrote."""
    graph = load_flow(str(place.flow)).graph
    outputs = [*(node.id for node in graph.outputs()), graph.dead_letters.name]
    folders = {name: TopicFolder(place.topics / name) for name in outputs}
    return DemoResults(
        orders=count_records(TopicFolder(place.topics / "orders")),
        counts={name: count_records(folder) for name, folder in folders.items()},
        samples={
            name: [row.decode() for row in tail(folder, _SAMPLES)]
            for name, folder in folders.items()
        },
    )
