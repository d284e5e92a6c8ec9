"""What a driver or an executor uses of its memory and of its time. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from headgate._codec import Moment
from headgate.engine.settings import SparkSettings


@dataclass(frozen=True, slots=True)
class MemoryPool:
    """One kind of memory of a process, in bytes.

    Attributes:
        limit: None if there is none.
        live: What the last full collection left; None if unknown.
    """

    used: int
    limit: int | None = None
    live: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """The memory and the time of a driver, or of an executor, at one moment.

    Attributes:
        pools: By name: heap, metaspace, compiled-code, direct, mapped, execution, storage, state.
            Execution and storage are parts of the heap and share their limit.
        resident: The resident memory of its process; 0 if unknown.
        workers: The resident memory of each process that calls Python functions.
        worker_limit: The memory that each of them may have.
        cpu_seconds: Since the process began, as are the collections.
    """

    at: Moment
    pools: Mapping[str, MemoryPool] = field(default_factory=dict)
    resident: int = 0
    workers: tuple[int, ...] = ()
    worker_limit: int = 0
    threads: int = 0
    cpu_seconds: float = 0.0
    gc_seconds: float = 0.0
    gc_count: int = 0


def parse_vitals(content: Mapping[str, Any], settings: SparkSettings, *, at: datetime) -> Vitals:
    """Return the vitals in the kernel's form, with the limits that settings give."""
    pools = {
        name: MemoryPool(pool["used"], pool.get("max"), pool.get("live"))
        for name, pool in content["pools"].items()
    }
    heap = pools.get("heap", MemoryPool(0))
    # Java does not report these limits. Without one of its own, direct memory has that of the heap.
    limits = {
        "compiled-code": settings.code_cache,
        "direct": settings.direct_memory or heap.limit,
        "state": settings.state_memory,
    }
    limited = {name: replace(pools[name], limit=limits[name]) for name in limits if name in pools}
    return Vitals(
        at=at,
        pools={**pools, **limited},
        resident=content["resident"],
        workers=tuple(size for size in content["workers"] if size),
        worker_limit=settings.worker_memory,
        threads=content["threads"],
        cpu_seconds=content["cpu_ns"] / 1e9,
        gc_seconds=content["gc_ms"] / 1e3,
        gc_count=content["gc_count"],
    )
