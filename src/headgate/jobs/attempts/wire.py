"""The messages between a supervisor and the process of an attempt: JSON values, one a line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_args

from headgate._codec import Form, decode, encode
from headgate.engine.attempt.executors import Executors
from headgate.engine.attempt.progress import BatchReport
from headgate.engine.attempt.vitals import Vitals
from headgate.engine.settings import AttemptSettings
from headgate.flow.graph.graph import Graph
from headgate.jobs.lifecycle.failures import Failure


@dataclass(frozen=True, slots=True)
class AttemptSpec:
    """Everything that a child needs to run one attempt.

    Attributes:
        near: The folder of the flow's file, from which its functions are imported.
    """

    graph: Annotated[Graph, Form(Graph.to_json, Graph.from_json)]
    settings: AttemptSettings
    near: Path


# News of a child.


@dataclass(frozen=True, slots=True)
class Running:
    """The query has started."""


@dataclass(frozen=True, slots=True)
class Loading:
    """Streams wait for the tables to load, or stopped waiting."""

    loading: bool


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch has committed."""

    report: BatchReport


@dataclass(frozen=True, slots=True)
class Measured:
    """What the driver and its executors use, every few seconds."""

    vitals: Vitals
    executors: Executors


@dataclass(frozen=True, slots=True)
class RowShown:
    """A row for the terminal."""

    output: str
    row: str


@dataclass(frozen=True, slots=True)
class SourceEvent:
    """A change outside the query that the job reports: of a topic, or of the executors.

    Attributes:
        kind: The kind of the job's event.
        source: The uid of the topic's source; empty for executors.
    """

    kind: str
    source: str
    message: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The query ended between two batches, as ordered; the last news of an attempt."""

    caught_up: bool


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed; the last news of an attempt.

    Attributes:
        trace: Its stack trace.
    """

    failure: Failure
    trace: str = ""


News: TypeAlias = Running | Loading | Batch | Measured | RowShown | SourceEvent | Ended | Failed

_KINDS: dict[str, type[News]] = {kind.__name__: kind for kind in get_args(News)}


def encode_news(news: News) -> dict[str, Any]:
    """Return news as JSON values."""
    return {"news": type(news).__name__, **encode(news)}


def decode_news(content: Mapping[str, Any]) -> News:
    """Return the news that `encode_news` wrote."""
    return decode(_KINDS[content["news"]], content)
