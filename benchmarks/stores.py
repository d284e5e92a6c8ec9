"""Keeping a checkpoint on an object store: by copies within the store, and by a manifest alone.

A store of one's own: AWS_ENDPOINT_URL_S3=… python benchmarks/stores.py s3a://bucket/folder
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headgate._locations import parse_location
from headgate.checkpoints.stores import files_at, place_at
from headgate.checkpoints.stores.objects import ObjectFiles, list_objects

if TYPE_CHECKING:
    from upath import UPath

_ROUNDS = 3


def main() -> None:
    """Measure both ways and print one JSON object."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("store", help="a folder on the store, such as s3a://bucket/bench")
    arguments.add_argument("--files", type=int, default=1000)
    arguments.add_argument("--bytes", type=int, default=10_000)
    chosen = arguments.parse_args()
    root = parse_location(chosen.store) / uuid.uuid4().hex
    assert not isinstance(root, Path), "name a folder on a store"
    try:
        print(json.dumps(_measure(root, chosen.files, chosen.bytes)))
    finally:
        place_at(root).remove_tree()


def _measure(root: UPath, count: int, size: int) -> dict[str, object]:
    source = root / "checkpoint"
    names = [f"state/0/{number % 4}/{number}_{uuid.uuid4()}.changelog" for number in range(count)]
    base = ObjectFiles(source)
    source.fs.pipe({base.path(name): b"x" * size for name in names})
    manifest = json.dumps({name: [size, None] for name in names})

    def keep(number: int, *, copied: bool) -> None:
        present = files_at(source)
        assert len(present.walk("state")) == count
        with place_at(root / f"run-{number}" / "checkpoints" / "chk-1").publishing(
            shared=True
        ) as draft:
            draft.bring(present, names if copied else [])
            draft.write("checkpoint.json", manifest)

    copies = [_time(partial(keep, number, copied=True)) for number in range(_ROUNDS)]
    references = [_time(partial(keep, _ROUNDS + number, copied=False)) for number in range(_ROUNDS)]
    lists = [_time(partial(list_objects, source)) for _ in range(_ROUNDS)]
    return {
        "files": count,
        "bytes": size,
        "list_ms": round(statistics.median(lists) * 1000),
        "copy_ms": round(statistics.median(copies) * 1000),
        "reference_ms": round(statistics.median(references) * 1000),
    }


def _time(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
