"""How fast Python functions are on Kafka, beside SQL, a native window, Spark's own and Bytewax.

Starts one broker on this machine in a temporary folder and fills a topic with visits. They are
copied with a computed column: by SQL, by `map` and by `map_batches`. And a running total is kept of
each visit, with one row per event: by a keyed process function, by a native window, by Spark's own
Python `transformWithState`, and by Bytewax. All are at-least-once and take turns, as often as
asked. All that comes out is compared with what plain Python computes. The last line is one JSON
object with the median of each.

The last two read fewer visits, since they are slower. They come in two forms each (rows and data
frames, one worker and two); the first round runs both, and the faster one goes on.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from batches import steady_rate, to_marks
from confluent_kafka import TopicPartition
from functions_others import Bytewax, Figures, Other, Spark, install_others
from functions_outputs import Expected, copy_visits, expect, find_seconds, find_totals
from kafka_outputs import find_ends
from store_job import Job, headgate

from headgate.brokers import lifecycle
from headgate.brokers.broker import BrokerOptions
from headgate.brokers.kafka import KAFKA, VERSION
from headgate.jobs.topics.listing import create_topic

FLOWS = Path(__file__).with_name("functions_flow.py")
PARTITIONS = 2


@dataclass(frozen=True, slots=True)
class Own:
    """One of our flows.

    Attributes:
        flow: Its name in functions_flow.py.
        job: What the flow calls itself.
        topic: Where its rows go.
        totals: True if its rows are running totals; False if they are copies.
    """

    flow: str
    job: str
    topic: str
    totals: bool


# By the name in the figures.
OWN = {
    "keyed_process": Own("process", "totals-process", "totals-process", totals=True),
    "native_window": Own("window", "totals-window", "totals-window", totals=True),
    "plain": Own("plain", "visits-plain", "out-plain", totals=False),
    "map": Own("rows", "visits-map", "out-map", totals=False),
    "map_batches": Own("tables", "visits-map-batches", "out-map-batches", totals=False),
}
OTHERS: dict[str, tuple[Other, ...]] = {
    "spark_tws": (Spark("row"), Spark("pandas")),
    "bytewax": (Bytewax(1), Bytewax(2)),
}
# The topics that the others read.
FEWER = {"spark_tws": "visits-spark", "bytewax": "visits-bytewax"}


def main() -> None:
    """Run the benchmark."""
    wanted = _parse()
    # A benchmark that is ended must not leave a broker behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    figures: dict[str, list[Figures]] = {name: [] for name in wanted.only}
    install_others([name for name in wanted.only if name in OTHERS], progress=_tell)
    with _visits(wanted) as (folder, on, servers):
        expected = expect(servers, "visits")
        chosen = {name: list(forms) for name, forms in OTHERS.items() if name in wanted.only}
        fewer = {name: expect(servers, FEWER[name]) for name in chosen}
        for number in range(wanted.rounds):
            for name, own in OWN.items():
                if name in wanted.only:
                    since = find_ends(servers, [own.topic])
                    figures[name].append(_run(own, folder / f"{name}-{number}", on))
                    _tell(f"{name}: {figures[name][-1]}")
                    _check(name, own, servers, since, expected)
            for name, forms in chosen.items():
                read = FEWER[name], fewer[name]
                runs = {form: _run_other(form, number, folder, servers, read) for form in forms}
                best = max(runs, key=lambda form: runs[form].steady_events_per_s)
                chosen[name] = [best]
                figures[name].append(runs[best])
    print(json.dumps({name: _median(runs) for name, runs in figures.items()}))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    # Enough for a minute or more.
    parser.add_argument("--spark-events", type=int, default=400_000)
    parser.add_argument("--bytewax-events", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=[*OWN, *OTHERS], default=[*OWN, *OTHERS])
    return parser.parse_args()


@contextmanager
def _visits(wanted: argparse.Namespace) -> Iterator[tuple[Path, str, str]]:
    _tell(f"starting Kafka {VERSION}")
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as name:
        folder = Path(name)
        try:
            broker, _ = lifecycle.start(
                KAFKA, BrokerOptions(data=folder / "broker", port=0), progress=_tell
            )
            on, servers = str(broker.url), str(broker.address)
            for own in OWN.values():
                setup = ("--on", on, "--partitions", str(PARTITIONS))
                headgate("setup", f"{FLOWS}:{own.flow}", *setup)
            _tell(f"producing {wanted.events:,} visits into {PARTITIONS} partitions")
            shape = ["--count", wanted.events, "--visits", wanted.keys, "--late", 0]
            headgate("produce", "visits", "--on", on, "--quiet", *map(str, shape))
            counts = {"spark_tws": wanted.spark_events, "bytewax": wanted.bytewax_events}
            for name in FEWER.keys() & wanted.only:
                create_topic(on, FEWER[name], partitions=PARTITIONS)
                copy_visits(
                    servers, "visits", FEWER[name], count=counts[name], partitions=PARTITIONS
                )
            yield folder, on, servers
        finally:
            lifecycle.stop(KAFKA, folder / "broker")


def _run(own: Own, home: Path, on: str) -> Figures:
    flow = f"{FLOWS}:{own.flow}"
    run = Job(home, on, "at-least-once", flow=flow, name=own.job, streams=("visits",)).run()
    return Figures(run.records / run.seconds, steady_rate(to_marks(run.batches)))


def _check(
    name: str, own: Own, servers: str, since: list[TopicPartition], expected: Expected
) -> None:
    """Compare the rows of one run with what plain Python computes."""
    if own.totals:
        expected.check_totals(name, find_totals(servers, since))
    else:
        expected.check_seconds(name, find_seconds(servers, since))


def _run_other(
    form: Other, number: int, folder: Path, servers: str, read: tuple[str, Expected]
) -> Figures:
    visits, expected = read
    topic = f"totals-{form}-{number}"
    create_topic(f"kafka://{servers}", topic, partitions=PARTITIONS)
    since = find_ends(servers, [topic])
    figures = form.run(folder / topic, servers, visits=visits, topic=topic, events=expected.events)
    expected.check_totals(str(form), find_totals(servers, since))
    _tell(f"{form}: {figures}")
    return figures


def _median(runs: list[Figures]) -> dict[str, int]:
    return {
        "events_per_s": round(statistics.median(run.events_per_s for run in runs)),
        "steady_events_per_s": round(statistics.median(run.steady_events_per_s for run in runs)),
    }


def _tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
