"""What a supervisor and its child say to each other: JSON values, one a line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeAlias

from headgate._codec import Form, decode, encode
from headgate.engine.progress import BatchReport
from headgate.engine.settings import AttemptSettings
from headgate.flow.graph import Graph


@dataclass(frozen=True, slots=True)
class AttemptSpec:
    """All that a child needs to run one attempt.

    Attributes:
        near: The flow's folder, where its functions are looked for.
    """

    graph: Annotated[Graph, Form(Graph.to_json, Graph.from_json)]
    settings: AttemptSettings
    near: Path


# What a child tells.


@dataclass(frozen=True, slots=True)
class Running:
    """The query has started."""

    news: ClassVar[str] = "running"


@dataclass(frozen=True, slots=True)
class Loading:
    """Streams wait for tables to be read, or wait no longer."""

    loading: bool

    news: ClassVar[str] = "loading"


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch has committed."""

    report: BatchReport

    news: ClassVar[str] = "batch"


@dataclass(frozen=True, slots=True)
class RowShown:
    """A row for the terminal."""

    output: str
    row: str

    news: ClassVar[str] = "row"


@dataclass(frozen=True, slots=True)
class SourceEvent:
    """Something happened to a topic that its job has to tell: it grew, it lost records.

    Attributes:
        kind: Becomes the kind of an event of the job.
    """

    kind: str
    source: str
    message: str

    news: ClassVar[str] = "source"


@dataclass(frozen=True, slots=True)
class Ended:
    """The query ended between two batches, as it was told to; the last news of an attempt."""

    caught_up: bool

    news: ClassVar[str] = "ended"


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed; the last news of an attempt.

    Attributes:
        root_cause: The innermost cause, in the words of whoever threw it.
        where: The room it came from: flow, supervisor, driver, query.
    """

    code: str
    message: str
    hint: str
    domain: str
    retryable: bool
    root_cause: str
    where: str

    news: ClassVar[str] = "failed"


News: TypeAlias = Running | Loading | Batch | RowShown | SourceEvent | Ended | Failed


_KINDS: dict[str, type[News]] = {
    kind.news: kind for kind in (Running, Loading, Batch, RowShown, SourceEvent, Ended, Failed)
}


def encode_news(news: News) -> dict[str, Any]:
    """Return news as JSON values."""
    return {"news": news.news, **encode(news)}


def decode_news(content: Mapping[str, Any]) -> News:
    """Return the news that `encode_news` wrote."""
    return decode(_KINDS[content["news"]], content)
