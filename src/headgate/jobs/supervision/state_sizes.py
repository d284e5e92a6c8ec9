"""The size of state: the number of its entries times the mean size of those that were written.

RocksDB has no such figure. Its memory is shared by all state of a job, and its files lag behind the
rows by up to ten batches and hold old versions of them, so both grow while the rows stay the same.
"""

from __future__ import annotations

from dataclasses import replace

from headgate.engine.attempt.progress import BatchReport, StateProgress
from headgate.errors import HeadgateError
from headgate.jobs.job_folder import JobFolder


class StateSizes:
    """Estimates the size of each operator's state; called on the thread of the supervisor.

    Until an operator has written state, the mean is that of the job's last status. Without one, the
    size is that of RocksDB's files.

    Args:
        home: With the status of the job's last start, which is read here.
    """

    def __init__(self, home: JobFolder) -> None:
        self._before = _read_mean_sizes(home)
        self._writes: dict[str, int] = {}
        self._bytes: dict[str, int] = {}

    def sized(self, report: BatchReport) -> BatchReport:
        """Return the report of a batch with the size of each operator's state."""
        return replace(
            report, state={uid: self._sized(uid, state) for uid, state in report.state.items()}
        )

    def _sized(self, uid: str, state: StateProgress) -> StateProgress:
        writes = self._writes[uid] = self._writes.get(uid, 0) + state.writes
        size = self._bytes[uid] = self._bytes.get(uid, 0) + state.written_bytes
        if writes:
            return replace(state, bytes=round(state.entries * size / writes))
        if uid in self._before:
            return replace(state, bytes=round(state.rows * self._before[uid]))
        return state


def _read_mean_sizes(home: JobFolder) -> dict[str, float]:
    """Return the bytes of a row of each operator's state, as far as the last status has them."""
    try:
        status = home.find_json("status.json") or {}
    except HeadgateError:
        # A job starts without it, too.
        return {}
    rows, sizes = status.get("state_rows") or {}, status.get("state_bytes") or {}
    return {uid: sizes[uid] / count for uid, count in rows.items() if count and uid in sizes}
