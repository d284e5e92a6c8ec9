"""What the checksums of Spark's logs cost a batch: the same small batches with and without them.

    .venv/bin/python benchmarks/log_checksums.py

Rounds with and without take turns in one JVM, so that a busy machine is as unkind to both. Printed
are means and medians of Spark's own figures for each batch, which are whole milliseconds: writing
`offsets/N` is walCommit, `commits/N` commitOffsets, and the whole batch triggerExecution.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

from headgate import Flow
from headgate.connectors.logs import bind, parse_log
from headgate.engine.attempt.attempt import Attempt
from headgate.engine.session import session
from headgate.engine.settings import AttemptSettings, SparkSettings

ROUNDS = 4
BATCHES = 150
RECORD = 64
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


def main() -> None:
    """Print a table of milliseconds a batch."""
    found: dict[bool, dict[str, list[float]]] = {True: {}, False: {}}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "topics" / "orders").mkdir(parents=True)
        lines = [json.dumps({"n": n}).ljust(RECORD - 1) for n in range(BATCHES)]
        (root / "topics" / "orders" / "a.jsonl").write_text("\n".join(lines) + "\n")
        # The first round warms the JVM up, and does not count.
        for number in range(2 * ROUNDS + 1):
            # In pairs of changing order: the JVM gets faster from round to round.
            summed = number % 4 in (0, 1)
            phases = run(root, f"round-{number}", summed=summed)
            if number:
                for name, took in phases.items():
                    found[summed].setdefault(name, []).extend(took)
    print(f"{'ms a batch':24}{'without':>20}{'with':>20}")
    for name in sorted(found[True]):
        print(f"{name:24}", *(_figures(found[summed][name]) for summed in (False, True)), sep="")


def _figures(took: list[float]) -> str:
    return f"{statistics.mean(took):12.2f}{statistics.median(took):8.1f}"


def run(root: Path, name: str, *, summed: bool) -> dict[str, list[float]]:
    """Return the milliseconds of each phase of each batch of one job."""
    flow = Flow("bench")
    flow.stream("orders", "n BIGINT").to("out")
    graph = bind(flow.graph(), parse_log(f"files:{root / 'topics'}"))
    settings = AttemptSettings(
        job=name,
        lineage=name,
        checkpoint=root / name / "checkpoint",
        spark=SparkSettings(parallelism=1, log_file=root / "logs" / "spark.log"),
        batch_every=timedelta(0),
        max_batch=RECORD,
        until_caught_up=True,
    )
    original: Any = session.spark_conf
    if not summed:
        session.spark_conf = lambda *given: {**original(*given), MANAGER: _PLAIN}
    try:
        attempt = Attempt(graph, settings, near=None)
    finally:
        session.spark_conf = original
    phases: dict[str, list[float]] = {}
    try:
        attempt.start()
        ended = False
        while not ended:
            ended = attempt.wait(0.2)
            for report in attempt.look().batches:
                for phase, took in report.phases.items():
                    phases.setdefault(phase, []).append(took / timedelta(milliseconds=1))
    finally:
        attempt.close()
    return phases


_PLAIN = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
)

if __name__ == "__main__":
    main()
