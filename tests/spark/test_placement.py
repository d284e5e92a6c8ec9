"""Where rows are placed in a job: in order at the reader, and where a replay looks for them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from bench import Bench
from window_runs import to_ms

from headgate import Flow
from headgate.checkpoints.sparklog import find_last_commit, read_batch
from headgate.jobs.job_folder import JobFolder
from headgate.windows import count, every_events, tumbling

KEYS = 400


def copying() -> Flow:
    """Return a flow that copies a stream beside an operator, with and without keys and Python."""
    flow = Flow("copying")
    table = flow.table("table", "id BIGINT NOT NULL", key="id")
    orders = flow.stream("orders", "n BIGINT, id BIGINT, version BIGINT")
    orders.to("copy", key="id")
    orders.to("plain")
    orders.transform("placement_functions:same").to("through", key="id")
    orders.enrich("known", table, on="id", into="found").matched.to("found")
    return flow


def versions(begin: int) -> list[dict[str, int]]:
    """Return two versions of each key at adjacent places."""
    return [
        {"n": 2 * key + version, "id": key, "version": begin + version}
        for key in range(KEYS)
        for version in range(2)
    ]


class Placed:
    """A job with two tasks, its manifest, and its outputs file by file."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.sent: list[dict[str, int]] = []
        (bench.root / "placement_functions.py").write_text("def same(rows):\n    return rows\n")
        bench.put("table", [{"id": key} for key in range(0, KEYS, 3)])

    def run(self) -> int:
        """Run the job on new versions of every key; return the batch that took them."""
        rows = versions(len(self.sent))
        self.sent += rows
        self.bench.put("orders", rows)
        self.bench.run(copying(), parallelism=2)
        batch = find_last_commit(self.checkpoint)
        assert batch is not None
        return batch

    @property
    def manifest(self) -> Path:
        home = JobFolder(self.bench.home, "copying")
        return home.run_folder(home.find_present_run() or "none") / "run.json"

    @property
    def checkpoint(self) -> Path:
        return self.manifest.parent / "checkpoint"

    def rewrite(self, **changes: Any) -> None:
        """Change the manifest; what is None is left out."""
        content = json.loads(self.manifest.read_text()) | changes
        kept = {name: value for name, value in content.items() if value is not None}
        self.manifest.write_text(json.dumps(kept))

    def files(self, topic: str, batch: int) -> list[Path]:
        """Return what the tasks of a batch wrote."""
        return sorted((self.bench.topics / topic).rglob(f"*-{batch:010d}-*.jsonl"))

    def forget(self, batch: int) -> None:
        """Make a batch one that died after it was half written."""
        set_back(self.checkpoint, batch)
        for topic in ("copy", "plain", "through", "found"):
            written = self.files(topic, batch)
            if len(written) == 2:
                written[0].unlink()

    def check_once(self) -> None:
        """Compare every output with what plain Python copies."""
        known = [row for row in self.sent if row["id"] % 3 == 0]
        copies = dict.fromkeys(("copy", "plain", "through"), self.sent)
        for topic, wanted in {**copies, "found": known}.items():
            found = Counter((row["id"], row["version"]) for row in self.bench.read(topic))
            assert found == Counter((row["id"], row["version"]) for row in wanted), topic


def set_back(checkpoint: Path, batch: int) -> None:
    """Make a batch the newest one, begun and not committed."""
    for log, newest in (("offsets", batch), ("commits", batch - 1)):
        for file in (checkpoint / log).iterdir():
            if int(file.name.removesuffix(".crc").lstrip(".")) > newest:
                file.unlink()


def keys_of(file: Path) -> dict[int, list[int]]:
    """Return the versions of each key in the order of a file's lines."""
    found = defaultdict(list)
    for line in file.read_text().splitlines():
        row = json.loads(line)
        found[row["id"]].append(row["version"])
    return found


def is_in_order(files: list[Path]) -> bool:
    """Tell whether each key is in one file alone, and there in its order."""
    keys = [keys_of(file) for file in files]
    return sum(map(len, keys)) == KEYS and all(
        found == sorted(found) for file in keys for found in file.values()
    )


def test_a_batch_that_release_0_7_left_open_is_finished_as_it_was_begun(bench: Bench) -> None:
    placed = Placed(bench)
    placed.run()
    # As 0.7 placed the rows of every batch.
    placed.rewrite(placed_since=1_000_000)
    open_batch = placed.run()
    assert len(placed.files("copy", open_batch)) == 2
    assert not is_in_order(placed.files("copy", open_batch))
    placed.forget(open_batch)
    placed.rewrite(format=2, placed_since=None)

    newest = placed.run()
    placed.check_once()
    assert newest == open_batch + 1
    assert json.loads(placed.manifest.read_text())["placed_since"] == newest
    assert is_in_order(placed.files("copy", newest))
    assert is_in_order(placed.files("through", newest))
    # The rows of one source file are one task's, in its order.
    (plain,) = placed.files("plain", newest)
    assert plain.read_text().splitlines() == [
        json.dumps(row, separators=(",", ":")) for row in placed.sent[-2 * KEYS :]
    ]
    # A batch of the present rules that dies is found where it was, too.
    placed.forget(newest)
    placed.run()
    placed.check_once()


def test_a_replayed_batch_writes_the_time_that_was_logged_for_it(bench: Bench) -> None:
    flow = Flow("timed")
    visits = flow.stream("visits", "id BIGINT, at BIGINT", event_time="at")
    window = visits.key_by("id").window("w", tumbling("1h"), early=every_events(1))
    window.aggregate(n=count()).updates.to("out")
    for _ in range(2):
        bench.put("visits", [{"id": key, "at": key} for key in range(50)])
        bench.run(flow, parallelism=2)
    home = JobFolder(bench.home, "timed")
    checkpoint = home.run_folder(home.find_present_run() or "none") / "checkpoint"
    batch = max(int(file.stem.split("-")[-2]) for file in (bench.topics / "out").rglob("*.jsonl"))
    written = sorted((bench.topics / "out").rglob(f"*-{batch:010d}-*.jsonl"))
    before = [sorted(file.read_text().splitlines()) for file in written]
    # Without an output, no task finds its rows in place.
    set_back(checkpoint, batch)
    for file in written:
        file.unlink()
    bench.run(flow, parallelism=2)
    assert [sorted(file.read_text().splitlines()) for file in written] == before
    logged = read_batch(checkpoint, batch).timestamp_ms
    times = {json.loads(line)["processed_at"] for line in before[0]}
    assert len(times) == 1
    assert to_ms(times.pop()) == logged
