"""What a supervisor and its child say to each other: JSON values, one a line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from headgate.engine.event_times import StreamTimes
from headgate.engine.progress import BatchReport, Latency, SourceProgress, StateProgress
from headgate.engine.settings import (
    AttemptSettings,
    Delivery,
    Fenced,
    HeldFiles,
    HeldState,
    OnDataLoss,
    SparkSettings,
)
from headgate.flow.graph import Graph
from headgate.flow.schema import Schema

# The environment variable that names the descriptor a child writes its news to.
NEWS_DESCRIPTOR = "HEADGATE_NEWS"


@dataclass(frozen=True, slots=True)
class AttemptSpec:
    """All that a child needs to run one attempt.

    Attributes:
        near: The flow's folder, where its functions are looked for.
    """

    graph: Graph
    settings: AttemptSettings
    near: Path

    def to_json(self) -> dict[str, Any]:
        """Return the spec as JSON values."""
        settings = self.settings
        plain = {
            each.name: _plain(getattr(settings, each.name))
            for each in fields(settings)
            if each.name not in ("spark", "history", "held", "fenced")
        }
        return {
            "graph": self.graph.to_json(),
            "near": str(self.near),
            "spark": {key: _plain(value) for key, value in asdict(settings.spark).items()},
            "history": {
                table: [schema.to_json() for schema in schemas]
                for table, schemas in settings.history.items()
            },
            "held": {
                uid: {name: _plain(value) for name, value in asdict(held).items()}
                for uid, held in settings.held.items()
            },
            "fenced": [asdict(each) for each in settings.fenced],
            "settings": plain,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> AttemptSpec:
        """Return the spec that `to_json` wrote."""
        spark = dict(value["spark"])
        for name in ("log_file", "lock_file"):
            spark[name] = None if spark[name] is None else Path(spark[name])
        settings = dict(value["settings"])
        settings["checkpoint"] = Path(settings["checkpoint"])
        for name in ("batch_every", "min_pause"):
            settings[name] = timedelta(seconds=settings[name])
        settings["loaded"] = tuple(settings["loaded"])
        settings["delivery"] = Delivery(settings["delivery"])
        settings["on_data_loss"] = OnDataLoss(settings["on_data_loss"])
        settings["fenced"] = tuple(Fenced(**each) for each in value["fenced"])
        held = {
            uid: HeldFiles(Path(each["folder"]))
            if "folder" in each
            else HeldState(**{**each, "checkpoint": Path(each["checkpoint"])})
            for uid, each in value["held"].items()
        }
        history = {
            table: tuple(Schema.from_json(schema) for schema in schemas)
            for table, schemas in value["history"].items()
        }
        return cls(
            Graph.from_json(value["graph"]),
            AttemptSettings(**settings, spark=SparkSettings(**spark), history=history, held=held),
            Path(value["near"]),
        )


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return dict(value)
    return str(value) if isinstance(value, Path) else value


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


def news_to_json(news: News) -> dict[str, Any]:
    """Return news as JSON values."""
    if isinstance(news, Batch):
        return {"news": news.news, "report": _report_to_json(news.report)}
    return {"news": news.news, **asdict(news)}


def news_from_json(value: dict[str, Any]) -> News:
    """Return the news that `news_to_json` wrote."""
    content = dict(value)
    kind = content.pop("news")
    if kind == Batch.news:
        return Batch(_report_from_json(content["report"]))
    plain = {each.news: each for each in (Running, Loading, RowShown, SourceEvent, Ended, Failed)}
    made: News = plain[kind](**content)
    return made


def _report_to_json(report: BatchReport) -> dict[str, Any]:
    return {
        "batch": report.batch,
        "started": report.started.isoformat(),
        "duration": report.duration.total_seconds(),
        "sources": {
            name: {key: _plain(value) for key, value in asdict(each).items()}
            for name, each in report.sources.items()
        },
        "outputs": dict(report.outputs),
        "state": {
            name: {key: _plain(value) for key, value in asdict(each).items()}
            for name, each in report.state.items()
        },
        "phases": {name: each.total_seconds() for name, each in report.phases.items()},
        "watermark": None if report.watermark is None else report.watermark.isoformat(),
        "event_times": {name: each.to_json() for name, each in report.event_times.items()},
        "ports": dict(report.ports),
        "written": report.written,
        "latency": None
        if report.latency is None
        else {key: _plain(value) for key, value in asdict(report.latency).items()},
    }


def _report_from_json(value: dict[str, Any]) -> BatchReport:
    watermark = value["watermark"]
    return BatchReport(
        batch=value["batch"],
        started=datetime.fromisoformat(value["started"]),
        duration=timedelta(seconds=value["duration"]),
        sources={name: _source(each) for name, each in value["sources"].items()},
        outputs=value["outputs"],
        state={name: _state(each) for name, each in value["state"].items()},
        phases={name: timedelta(seconds=each) for name, each in value["phases"].items()},
        watermark=None if watermark is None else datetime.fromisoformat(watermark),
        event_times={
            name: StreamTimes.from_json(each) for name, each in value["event_times"].items()
        },
        ports=value["ports"],
        written=value["written"],
        latency=_latency(value["latency"]),
    )


def _state(value: dict[str, Any]) -> StateProgress:
    return StateProgress(**{**value, "busy": timedelta(seconds=value["busy"])})


def _latency(value: dict[str, Any] | None) -> Latency | None:
    if value is None:
        return None
    p50, p95, p99 = (timedelta(seconds=value[name]) for name in ("p50", "p95", "p99"))
    return Latency(p50, p95, p99, value["rows"])


def _source(value: dict[str, Any]) -> SourceProgress:
    age = value["lag"]
    return SourceProgress(**{**value, "lag": None if age is None else timedelta(seconds=age)})
