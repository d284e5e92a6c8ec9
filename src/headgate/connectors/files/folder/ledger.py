"""The ledger of an embedded topic: the order in which its files are read.

The reader inside Spark is its only writer. It gives every new file the next number and never
changes a number, so a position in the topic keeps its meaning. Here the ledger is only read, to
show a topic as its readers see it.

A plain page, `FIRST.json`, holds the files of one listing; a merged page, `FIRST-END.json`, holds
the content of many deleted pages. If both contain a number, the merged page is right.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.errors import Domain, HeadgateError

FOLDER = "_ledger"
FORMAT = 1
MERGED_FORMAT = 2

_NAME = re.compile(r"(\d{20})(?:-(\d{20}))?\.json")
# A listing may race with the reader inside Spark, which rarely merges pages.
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One numbered file.

    Attributes:
        number: Its position in the reading order, from 0.
        path: Relative to the topic's folder, with forward slashes.
        size: In bytes, when it was first seen.
        start: The sum of the sizes of all files before it.
        seen: When it was first seen, in epoch milliseconds.
    """

    number: int
    path: str
    size: int
    start: int
    seen: int


@dataclass(frozen=True, slots=True)
class _Page:
    """A page by its name; `end` is the number after its last file, None for a plain page."""

    file: Path
    first: int
    end: int | None

    def covers(self, number: int) -> bool:
        return self.end is not None and self.first <= number < self.end


class _GapError(Exception):
    """A number is missing from the pages, and later numbers are present."""


def read_ledger(topic: Path) -> list[LedgerEntry]:
    """Return every numbered file of a topic, by number; empty before its first reader.

    Raises:
        HeadgateError: TOPIC_LEDGER_BROKEN: a page is missing, corrupted or of another format.
    """
    problem = ""
    for _ in range(_ATTEMPTS):
        try:
            return _read(topic)
        except FileNotFoundError as error:
            # The page was merged with others after the listing.
            problem = f"{Path(error.filename).name} is missing"
        except _GapError as gap:
            # A listing that races with the writer may show a page without its predecessor.
            problem = f"file number {gap} is on no page"
    raise _broken(topic, problem)


def _read(topic: Path) -> list[LedgerEntry]:
    pages = _list_pages(topic)
    plain = {page.first: page for page in pages if page.end is None}
    last = max((page.first if page.end is None else page.end - 1 for page in pages), default=-1)
    entries: list[LedgerEntry] = []
    taken: list[int] = []
    while len(entries) <= last:
        number = len(entries)
        page = _find_merged(pages, number)
        if page is None:
            page = plain.get(number)
            if page is None:
                raise _GapError(number)
            taken.append(number)
        entries += list(_read_page(topic, page))[number - page.first :]
    # The name of a merged page's part is free again, so a page may come from a slow reader.
    now = _list_pages(topic) if taken else []
    if any(_find_merged(now, number) for number in taken):
        raise _GapError(taken[0])
    return entries


def _list_pages(topic: Path) -> list[_Page]:
    pages = []
    for file in (topic / FOLDER).glob("[0-9]*.json"):
        match = _NAME.fullmatch(file.name)
        if match is not None:
            pages.append(_Page(file, int(match[1]), int(match[2]) if match[2] else None))
    return pages


def _find_merged(pages: Sequence[_Page], number: int) -> _Page | None:
    covering = [page for page in pages if page.covers(number)]
    return max(covering, key=lambda page: page.end or 0, default=None)


def _read_page(topic: Path, page: _Page) -> Iterator[LedgerEntry]:
    known = FORMAT if page.end is None else MERGED_FORMAT
    try:
        content = json.loads(page.file.read_bytes())
        if content["format"] != known:
            format_ = content["format"]
            raise _broken(
                topic, f"{page.file.name} has format {format_}, and this release reads {known}"
            )
        files = content["files"]
        count = len(files) if page.end is None else page.end - page.first
        if content["first"] != page.first or not files or len(files) != count:
            raise _broken(topic, f"the files of {page.file.name} do not match its name")
        for number, file in enumerate(files, start=page.first):
            yield LedgerEntry(
                number=number,
                path=str(file["path"]),
                size=int(file["size"]),
                start=int(file["start"]),
                seen=int(file["seen"]),
            )
    except (ValueError, KeyError, TypeError) as error:
        raise _broken(topic, f"{page.file.name} cannot be read ({error})") from error


def _broken(topic: Path, problem: str) -> HeadgateError:
    return HeadgateError(
        "TOPIC_LEDGER_BROKEN",
        f"cannot read the ledger of topic '{topic.name}': {problem}",
        hint=f"restore {topic / FOLDER} from a backup, or copy the data files to a new topic",
        domain=Domain.EXTERNAL,
    )
