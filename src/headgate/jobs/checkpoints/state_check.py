"""Opening the state of a checkpoint, as a restore would, and counting its rows."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headgate.checkpoints.catalog import Checkpoint, read_manifest
from headgate.checkpoints.problems import Problem
from headgate.checkpoints.restore import fork
from headgate.engine.settings import HeldState, SparkSettings
from headgate.engine.state_variables import state_variable
from headgate.errors import HeadgateError
from headgate.flow.graph import Graph
from headgate.jobs.checkpoints.spark_process import answer_order, ask_reader


def open_state(kept: Checkpoint) -> tuple[dict[str, int], list[Problem]]:
    """Return how many rows each operator holds, and what is wrong with the state.

    The files must have been verified; this takes as long as it takes to start Spark and to read
    the state.
    """
    facts = read_manifest(kept.folder).facts
    flow = Graph.from_json(json.dumps(facts.flow))
    last = len(facts.operators) - 1
    with tempfile.TemporaryDirectory(prefix="headgate-verify-") as scratch:
        checkpoint = Path(scratch) / "checkpoint"
        try:
            fork(kept.folder, checkpoint, quick=True)
        except HeadgateError as error:
            return {}, [Problem("state", error.message)]
        answer = ask_reader(
            "headgate.jobs.checkpoints.state_check",
            {
                "checkpoint": str(checkpoint),
                "batch": kept.batch,
                "parallelism": facts.parallelism,
                "log": str(Path(scratch) / "spark.log"),
                # Spark counts stateful operators from the sink up.
                "operators": {uid: last - place for place, uid in enumerate(facts.operators)},
                "variables": {uid: state_variable(flow.node(uid)) for uid in facts.operators},
            },
            Path(scratch) / "spark.log",
        )
    if "failed" in answer:
        return {}, [Problem("state", f"Spark cannot read it: {answer['failed']}")]
    rows: dict[str, int] = answer["rows"]
    wrong = [
        Problem("state", f"operator {uid} has {rows[uid]} rows, and had {held.rows} when kept")
        for uid, held in facts.state.items()
        if uid in rows and rows[uid] != held.rows
    ]
    return rows, wrong


def _read(order: Mapping[str, Any]) -> Mapping[str, Any]:
    from headgate.engine.state_view import count_rows

    settings = SparkSettings(parallelism=order["parallelism"], log_file=Path(order["log"]))
    held = {
        uid: HeldState(Path(order["checkpoint"]), number, order["batch"], order["variables"][uid])
        for uid, number in order["operators"].items()
    }
    return {"rows": count_rows(settings, held)}


def main() -> None:
    """Run as the process that reads the state."""
    answer_order(_read)


if __name__ == "__main__":
    main()
