"""How much memory the store's job takes by default and with `--profile small`, and how fast it is.

Fills embedded topics, and runs the job with each profile in turns: users and items into state,
then all orders. The outputs of each run are compared with the orders. The memory is that of all
processes of the job together, with shared pages counted once, at its peak. The last line is one
JSON object: medians of the rates, and the highest of the peaks.
"""

from __future__ import annotations

import argparse
import bisect
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from batches import Mark, steady_rate, to_marks
from files_outputs import FilesReader
from memory_map import TRACKING, Map
from processes import cpu_seconds, shared_memory_kib
from store_job import OUTPUTS, Job, headgate
from store_outputs import Orders, check_outputs, read_reference
from store_throughput import tell
from yardstick import machine_speed

PROFILES: Mapping[str, tuple[str, ...]] = {"default": (), "small": ("--profile", "small")}
_GB = 1_000_000_000
_TARGET = 0.8


@dataclass(frozen=True, slots=True)
class Result:
    """One run.

    Attributes:
        orders_per_s: From the start of the process to its end.
        cpu_us: The processor time per order, in microseconds.
        steady_cpu_us: Likewise after the first fifth, as of the steady rate.
        machine: What `machine_speed` gave, before and after on average.
    """

    orders_per_s: float
    steady_orders_per_s: float
    peak_bytes: int
    cpu_us: float
    steady_cpu_us: float
    machine: float


def main() -> None:
    """Run the benchmark."""
    wanted = _parse()
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as name:
        place = Path(name)
        reader = FilesReader(place / "topics")
        reference = _fill(reader, wanted)
        if wanted.where:
            _print_where(place, wanted.profiles)
            return
        results: dict[str, list[Result]] = {profile: [] for profile in wanted.profiles}
        for number in range(wanted.rounds):
            # Who comes first changes, since the machine's speed does.
            for profile in sorted(results, reverse=bool(number % 2)):
                tell(f"round {number + 1} of {wanted.rounds}: {profile}")
                result = _run(place / f"{profile}-{number}", reader, profile, reference)
                results[profile].append(result)
                tell(
                    f"  {result.steady_orders_per_s:,.0f} orders/s steady, "
                    f"{result.cpu_us:.1f} µs of CPU an order, {result.steady_cpu_us:.1f} steady, "
                    f"{result.peak_bytes / 1e6:,.0f} MB"
                )
    _print(wanted, results)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=2_000_000)
    parser.add_argument("--users", type=int, default=117_178)
    parser.add_argument("--items", type=int, default=2_198)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each profile, in turns")
    parser.add_argument("--profiles", nargs="+", choices=list(PROFILES), default=list(PROFILES))
    parser.add_argument(
        "--where", action="store_true", help="run each once, and show where its memory goes"
    )
    return parser.parse_args()


def _fill(reader: FilesReader, wanted: argparse.Namespace) -> Mapping[str, Orders]:
    tell(f"producing {wanted.orders:,} orders")
    sizes = [f"--{name}={getattr(wanted, name)}" for name in ("users", "items", "orders")]
    headgate("produce", "store", "--on", _log(reader), "--quiet", "--bad", "0", *sizes)
    return read_reference(reader, users=wanted.users, items=wanted.items)


def _log(reader: FilesReader) -> str:
    return f"files:{reader.topics}"


def _job(home: Path, reader: FilesReader, profile: str) -> Job:
    return Job(home, _log(reader), "exactly-once", more=PROFILES[profile])


def _run(home: Path, reader: FilesReader, profile: str, reference: Mapping[str, Orders]) -> Result:
    os.sync()
    machine = machine_speed()
    since = reader.find_ends(OUTPUTS)
    used: list[tuple[float, float]] = []

    def look(pid: int) -> int:
        used.append((time.time(), cpu_seconds(pid)))
        return shared_memory_kib(pid)

    run = _job(home, reader, profile).run(memory_kib=look)
    check_outputs(reader, since, reference, exactly_once=True)
    return Result(
        orders_per_s=run.records / run.seconds,
        steady_orders_per_s=steady_rate(to_marks(run.batches)),
        peak_bytes=run.peak_kib * 1024,
        cpu_us=1e6 * run.cpu_seconds / run.records,
        steady_cpu_us=1e6 / steady_rate(_by_cpu(to_marks(run.batches), used)),
        machine=(machine + machine_speed()) / 2,
    )


def _by_cpu(marks: Sequence[Mark], used: Sequence[tuple[float, float]]) -> list[Mark]:
    """Return marks in processor time: other work on the machine changes it less than the rate.

    Args:
        used: Moments in seconds since the epoch, and the processor time used by then.
    """

    def by_then(at: float) -> float:
        after = min(bisect.bisect_left(used, (at,)), len(used) - 1)
        (first, cpu), (last, more) = used[max(0, after - 1)], used[after]
        share = min(1.0, (at - first) / (last - first)) if last > first else 1.0
        return cpu + share * (more - cpu)

    return [Mark(by_then(mark.at), mark.records) for mark in marks]


def _print_where(place: Path, profiles: Sequence[str]) -> None:
    # The JVM that the job starts tracks what it takes, which costs it some speed.
    os.environ["JAVA_TOOL_OPTIONS"] = f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} {TRACKING}"
    maps = {}
    for profile in profiles:
        tell(f"mapping {profile}")
        maps[profile] = Map()
        job = _job(place / profile, FilesReader(place / "topics"), profile)
        job.run(memory_kib=maps[profile].look)
    _print_machine()
    print(f"{'MB':<34}" + "".join(f"{profile:>10}" for profile in profiles))
    for part in dict.fromkeys(part for each in maps.values() for part in each.parts):
        sizes = [maps[profile].parts.get(part, 0) * 1024 / 1e6 for profile in profiles]
        print(f"{part:<34}" + "".join(f"{size:>10,.0f}" for size in sizes))
    peaks = [maps[profile].peak_kib * 1024 / 1e6 for profile in profiles]
    print(f"{'all, at its peak':<34}" + "".join(f"{peak:>10,.0f}" for peak in peaks))


def _print(wanted: argparse.Namespace, results: Mapping[str, Sequence[Result]]) -> None:
    _print_machine()
    print(f"{wanted.orders:,} orders, medians of {wanted.rounds} runs in turns; the highest peak")
    print(
        f"{'':<10}{'orders/s':>10}{'steady':>10}{'lowest':>10}{'highest':>10}{'peak':>10}"
        f"{'CPU/order':>13}{'steady':>10}"
    )
    figures = {}
    for profile, runs in results.items():
        rates = [run.steady_orders_per_s for run in runs]
        overall, steady = _median(runs, "orders_per_s"), _median(runs, "steady_orders_per_s")
        peak = max(run.peak_bytes for run in runs)
        print(
            f"{profile:<10}{overall:>10,.0f}{steady:>10,.0f}{min(rates):>10,.0f}{max(rates):>10,.0f}"
            f"{peak / 1e6:>7,.0f} MB{_median(runs, 'cpu_us'):>10.1f} µs"
            f"{_median(runs, 'steady_cpu_us'):>7.1f} µs"
        )
        figures[profile] = {
            "orders_per_s": round(overall),
            "steady_orders_per_s": round(steady),
            "steady_cpu_us": round(_median(runs, "steady_cpu_us"), 1),
            "peak_bytes": peak,
        }
    machines = [run.machine for runs in results.values() for run in runs]
    print(f"the machine: {min(machines):.2f} to {max(machines):.2f} million writes/s")
    if len(figures) == len(PROFILES):
        small, default = figures["small"], figures["default"]
        ratio = small["steady_orders_per_s"] / default["steady_orders_per_s"]
        by_cpu = default["steady_cpu_us"] / small["steady_cpu_us"]
        print(
            f"small at {ratio:.2f} of the default's steady rate, {by_cpu:.2f} by processor time; "
            f"the targets are {_TARGET}, and less than {_GB / 1e6:,.0f} MB"
        )
    print(json.dumps(figures))


def _print_machine() -> None:
    print(
        f"on {os.cpu_count()} cores ({platform.machine()}, Python {platform.python_version()}), "
        f"{datetime.now(UTC):%Y-%m-%d}"
    )


def _median(runs: Sequence[Result], field: str) -> float:
    return float(statistics.median(getattr(run, field) for run in runs))


if __name__ == "__main__":
    main()
