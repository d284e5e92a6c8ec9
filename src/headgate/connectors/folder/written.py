"""The rows that runs have written to folders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headgate.connectors.contract.written import Batches, Writers, Written, unknown
from headgate.connectors.folder.descriptor import Folder

rests_on = "files named by run, task and batches"
can_repeat = False
has_transactions = False


def end_transactions(_topic: Folder, _ids: Iterable[str]) -> None:
    """Do nothing: a file is published at once."""


def find_written(
    topics: Mapping[str, Folder], _writers: Writers, _batches: Batches
) -> dict[str, Written]:
    """Return that it is unknown."""
    return {name: unknown("folders are not searched for batches") for name in topics}
