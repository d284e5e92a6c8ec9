"""Opening the state of a checkpoint, as a restore would, and counting its rows."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate._codec import decode, encode
from headgate.checkpoints.catalog import read_manifest
from headgate.checkpoints.checkpoint import Checkpoint
from headgate.checkpoints.problems import Problem
from headgate.checkpoints.restore import fork
from headgate.engine.settings import HeldState, SparkSettings, held_state
from headgate.errors import HeadgateError, StoreError
from headgate.flow.graph.graph import Graph
from headgate.jobs.checkpoints.spark_process import answer_order, ask_reader
from headgate.jobs.runs.lineage import operator_numbers


def open_state(kept: Checkpoint) -> tuple[dict[str, int], list[Problem]]:
    """Return how many rows each operator holds, and what is wrong with the state.

    The files must have been verified; this takes as long as it takes to start Spark and to read
    the state.
    """
    facts = read_manifest(kept.folder).facts
    flow = Graph.from_json(json.dumps(facts.flow))
    with tempfile.TemporaryDirectory(prefix="headgate-verify-") as scratch:
        checkpoint, log = Path(scratch) / "checkpoint", Path(scratch) / "spark.log"
        try:
            fork(kept.folder, checkpoint, quick=True)
        except StoreError:
            raise
        except HeadgateError as error:
            return {}, [Problem("state", error.message)]
        order = _Order(
            SparkSettings(parallelism=facts.parallelism, log_file=log),
            {
                uid: held_state(flow.node(uid), checkpoint, number, kept.batch)
                for uid, number in operator_numbers(facts.operators).items()
            },
        )
        answer = ask_reader("headgate.jobs.checkpoints.state_check", encode(order), log)
    if "failed" in answer:
        return {}, [Problem("state", f"Spark cannot read it: {answer['failed']}")]
    rows: dict[str, int] = answer["rows"]
    wrong = [
        Problem("state", f"operator {uid} has {rows[uid]} rows, and had {held.rows} when kept")
        for uid, held in facts.state.items()
        if uid in rows and rows[uid] != held.rows
    ]
    return rows, wrong


@dataclass(frozen=True, slots=True)
class _Order:
    """The state to open, by operator uid."""

    spark: SparkSettings
    held: Mapping[str, HeldState]


def _read(content: Mapping[str, Any]) -> Mapping[str, Any]:
    from headgate.engine.state.view import count_rows

    order = decode(_Order, content)
    return {"rows": count_rows(order.spark, order.held)}


def main() -> None:
    """Run as the process that reads the state."""
    answer_order(_read)


if __name__ == "__main__":
    main()
