"""The ledger of an embedded topic: the order in which its files are read.

The reader inside Spark is its only writer. It gives every file it finds the next number and
never changes a number once given, so a position in the topic means the same for ever. Here the
ledger is only read, to show a topic as its readers see it.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headgate.errors import Domain, HeadgateError

FOLDER = "_ledger"
FORMAT = 1

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One numbered file.

    Attributes:
        number: Its place in the reading order, counted from 0.
        path: Relative to the topic's folder, with forward slashes.
        size: In bytes, when it was found.
        start: The sizes of all files before it, added up.
        seen: When it was found, in epoch milliseconds.
    """

    number: int
    path: str
    size: int
    start: int
    seen: int


def read_ledger(topic: Path) -> list[LedgerEntry]:
    """Return every numbered file of a topic, by number; empty before its first reader.

    Raises:
        HeadgateError: TOPIC_LEDGER_BROKEN: a page is missing, damaged or of another format.
    """
    for _ in range(_ATTEMPTS - 1):
        # A folder listing that races with the writer may show a page and not the one before it.
        entries = list(_read_pages(topic))
        if _first_gap(entries) is None:
            return entries
    entries = list(_read_pages(topic))
    gap = _first_gap(entries)
    if gap is not None:
        raise _broken(topic, f"file number {gap} is in no page")
    return entries


def _read_pages(topic: Path) -> Iterator[LedgerEntry]:
    for page in sorted((topic / FOLDER).glob("[0-9]*.json")):
        try:
            content = json.loads(page.read_bytes())
            if content["format"] != FORMAT:
                found = content["format"]
                raise _broken(topic, f"{page.name} has format {found}, and {FORMAT} is known")
            for number, file in enumerate(content["files"], start=content["first"]):
                yield LedgerEntry(
                    number=number,
                    path=str(file["path"]),
                    size=int(file["size"]),
                    start=int(file["start"]),
                    seen=int(file["seen"]),
                )
        except (ValueError, KeyError, TypeError) as error:
            raise _broken(topic, f"{page.name} cannot be read ({error})") from error


def _first_gap(entries: list[LedgerEntry]) -> int | None:
    for expected, entry in enumerate(entries):
        if entry.number != expected:
            return expected
    return None


def _broken(topic: Path, found: str) -> HeadgateError:
    return HeadgateError(
        "TOPIC_LEDGER_BROKEN",
        f"cannot read the ledger of topic '{topic.name}': {found}",
        hint=f"restore {topic / FOLDER} from a backup, or copy the data files to a new topic",
        domain=Domain.EXTERNAL,
    )
