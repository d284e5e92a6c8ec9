"""The flow as users have it: `headgate.Flow`, which can also run and preview itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.flow import flow as declared

if TYPE_CHECKING:
    from headgate.interactive.job import Job
    from headgate.interactive.preview import Preview


class Flow(declared.Flow):
    """Declares inputs, operators and outputs; runs nothing until `run` is called.

    Args:
        name: Lower-case letters, digits and '-'; also the name of the job.
        dead_letters: The topic for records that cannot be decoded.
    """

    def run(
        self,
        *,
        on: str | None = None,
        until_caught_up: bool = False,
        drain: bool = False,
        detach: bool = False,
        fresh: bool = False,
        restore_from: str | None = None,
        restore_at: str | None = None,
        drop_state: Sequence[str] = (),
        start: str | Sequence[str] = (),
        open_batch: str | None = None,
        allow_repeats: bool = False,
        home: str | Path = ".headgate",
        progress: bool = True,
        **settings: str | int | timedelta | Path | None,
    ) -> Job:
        """Run the flow as a job, as `headgate run` does, and return the job once it has ended.

        A job that exists goes on from its newest checkpoint. Ctrl-C stops it before its next batch.

        Args:
            on: The log of topics that are known by name alone, such as `kafka://HOST:9092`.
            until_caught_up: End once all records that exist at the start have been read.
            drain: End likewise, and close every window first.
            detach: Return once the job is STARTING; it lives on when this process ends.
            fresh: Start empty, in a new run.
            restore_from: Restore `chk-17`, a savepoint's name or folder, or `latest`.
            restore_at: Restore the checkpoint of `2026-11-15 10:05` or `10m ago`.
            drop_state: Uids of operators that a restore starts without their state.
            start: Where sources begin that have no position: `latest`, `orders=earliest`.
            open_batch: A begun batch that has written rows: `repeat` or `skip` it.
            allow_repeats: Fall back from a corrupted checkpoint even if rows are duplicated.
            home: The folder of the jobs.
            progress: Show how far the job is.
            settings: As in headgate.toml, with underscores: `checkpoint_every="30s"`.
        """
        from headgate.interactive import running

        order = running.Order(
            on=on,
            until_caught_up=until_caught_up,
            drain=drain,
            fresh=fresh,
            restore_from=restore_from,
            restore_at=restore_at,
            drop_state=drop_state,
            start=start,
            consent=running.parse_consent(open_batch, allow_repeats=allow_repeats),
            home=Path(home).absolute(),
            settings=settings,
        )
        return running.run(self.graph(), order, detach=detach, progress=progress)

    def preview(
        self, inputs: Mapping[str, Iterable[Any]], *, rows: int = 20, batches: int = 1
    ) -> Preview:
        """Return the rows that the flow would write of some records, without a broker or a job.

        The operators and functions are those of a job, with state in memory. They run in a process
        of their own, which the next preview uses again: the first one takes some seconds.

        Args:
            inputs: The records of its sources, by name: dicts, dataclasses, or records of the
                source's format as text or bytes. A source that is missing has no records.
            rows: The most rows to return of each output.
            batches: The number of batches in which streams are read.
        """
        from headgate.interactive.preview import preview_flow

        return preview_flow(self.graph(), inputs, rows=rows, batches=batches)
