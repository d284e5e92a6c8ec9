"""A folder of data files as a topic, as a value."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import ClassVar, cast

from headgate._units import format_duration, parse_duration, parse_size
from headgate.connectors.folder.paths import check_folder, name_of
from headgate.errors import HeadgateError
from headgate.flow.formats.csv import Csv
from headgate.flow.formats.format import Format, as_format
from headgate.flow.graph.codec import read_format, to_json
from headgate.flow.json_values import (
    JsonObject,
    as_bool,
    as_int,
    as_list,
    as_text,
    get_object,
    get_text,
)
from headgate.flow.names import check_column_name, check_topic_name, did_you_mean
from headgate.flow.topics import register_topic

# Formats whose records are lines; other formats compress their own blocks.
LINES = ("json", "csv", "text")
FORMATS = (*LINES, "parquet", "orc", "avro")
COMPRESSIONS = ("none", "gzip", "zstd", "snappy")


@register_topic
@dataclass(frozen=True, slots=True)
class Folder:
    """A folder, or a prefix of an object store, whose data files are read or written.

    Attributes:
        path: A folder, relative to the job's working directory, or an address such as
            s3a://bucket/prefix.
        name: The topic's name in the flow; by default the last part of the path.
        format: json (lines), csv, text, parquet, orc or avro, or a format with options.
        compression: Of written files: none, gzip, zstd or snappy; None for the usual one of the
            format. Files of lines are read by the end of their names, `.gz`, `.zst` or `.snappy`.
        partition_by: Columns whose values are in the names of folders, `day=2026-11-15`, outermost
            first.
        header: CSV: whether the first line of a file names its columns.
        recursive: Whether files in subfolders are read; those of partitions always are.
        glob: Read only files whose name matches, such as `*.csv`.
        look_every: How often the folder is listed.
        min_age: Read a file only once it has not changed for this long.
        roll_size: Written files are published at this size.
        roll_age: Written files are published at this age.
    """

    path: str | os.PathLike[str]
    name: str = ""
    format: str | Format = field(default="json", kw_only=True)
    compression: str | None = field(default=None, kw_only=True)
    partition_by: str | Sequence[str] = field(default=(), kw_only=True)
    header: bool = field(default=True, kw_only=True)
    recursive: bool = field(default=True, kw_only=True)
    glob: str | None = field(default=None, kw_only=True)
    look_every: str | timedelta = field(default=timedelta(seconds=2), kw_only=True)
    min_age: str | timedelta = field(default=timedelta(0), kw_only=True)
    roll_size: str | int = field(default=128_000_000, kw_only=True)
    roll_age: str | timedelta = field(default=timedelta(minutes=5), kw_only=True)

    kind: ClassVar[str] = "folder"
    pattern: ClassVar[None] = None
    can_read: ClassVar[bool] = True
    can_write: ClassVar[bool] = True

    def __post_init__(self) -> None:
        path = check_folder(os.fspath(self.path))
        name = check_topic_name(self.name) if self.name else name_of(path)
        what = f"cannot use folder {path!r}"
        columns = (self.partition_by,) if isinstance(self.partition_by, str) else self.partition_by
        for attribute, value in (
            ("path", path),
            ("name", name),
            ("format", _check_format(as_format(self.format, what=what), what)),
            ("partition_by", tuple(check_column_name(column) for column in columns)),
            ("look_every", _as_duration(self.look_every)),
            ("min_age", _as_duration(self.min_age)),
            ("roll_age", _as_duration(self.roll_age)),
            ("roll_size", _as_size(self.roll_size)),
        ):
            object.__setattr__(self, attribute, value)
        self._check(what)

    @property
    def own_format(self) -> Format:
        """The format of its files."""
        return cast("Format", self.format)

    @property
    def own_name(self) -> str:
        """The name of the format: json, csv, text, parquet, orc or avro."""
        return self.own_format.tag

    @property
    def where(self) -> str:
        """The folder as text."""
        return os.fspath(self.path)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose values are in the names of folders."""
        return tuple(self.partition_by)

    @property
    def rolls_at(self) -> tuple[int, timedelta]:
        """The size and the age at which written files are published."""
        return cast("int", self.roll_size), cast("timedelta", self.roll_age)

    def describe(self) -> str:
        return f"folder {self.name} in {self.where}"

    def to_json(self) -> JsonObject:
        holder: JsonObject = {"name": self.name, "path": self.where}
        holder["format"] = to_json(self.format)
        holder["compression"] = self.compression
        holder["partition_by"] = list(self.columns)
        holder["header"] = self.header
        holder["recursive"] = self.recursive
        holder["glob"] = self.glob
        for name in ("look_every", "min_age", "roll_age"):
            holder[name] = format_duration(getattr(self, name))
        holder["roll_size"] = self.rolls_at[0]
        return holder

    @classmethod
    def from_json(cls, holder: JsonObject) -> Folder:
        compression, glob = holder.get("compression"), holder.get("glob")
        columns = as_list(holder.get("partition_by", []), "'partition_by'")
        return cls(
            get_text(holder, "path"),
            get_text(holder, "name"),
            format=read_format(get_object(holder, "format"), "'format'"),
            compression=None if compression is None else as_text(compression, "'compression'"),
            partition_by=[as_text(column, "'partition_by'") for column in columns],
            header=as_bool(holder.get("header", True), "'header'"),
            recursive=as_bool(holder.get("recursive", True), "'recursive'"),
            glob=None if glob is None else as_text(glob, "'glob'"),
            look_every=as_text(holder.get("look_every", "2s"), "'look_every'"),
            min_age=as_text(holder.get("min_age", "0s"), "'min_age'"),
            roll_age=as_text(holder.get("roll_age", "5m"), "'roll_age'"),
            roll_size=as_int(holder.get("roll_size", 128_000_000), "'roll_size'"),
        )

    def _check(self, what: str) -> None:
        if self.compression is not None and self.compression not in COMPRESSIONS:
            raise HeadgateError(
                "BAD_TOPIC",
                f"{what}: compression must be one of {', '.join(COMPRESSIONS)}, "
                f"got {self.compression!r}",
                hint=did_you_mean(str(self.compression), COMPRESSIONS),
            )
        if len(set(self.columns)) < len(self.columns):
            raise HeadgateError(
                "DUPLICATE_COLUMN",
                f"{what}: partition_by names the same column twice",
                hint="name each column once",
            )
        if self.header and isinstance(self.format, Csv) and self.format.columns:
            raise HeadgateError(
                "BAD_TOPIC",
                f"{what}: the first line of its files names their columns, and so does its format",
                hint="add header=False if that line is a row",
            )
        if self.glob is not None and (not self.glob or "/" in self.glob):
            raise HeadgateError(
                "BAD_TOPIC",
                f"{what}: glob must be a pattern for names of files, got {self.glob!r}",
                hint="use glob='*.csv'",
            )


# As users write it: headgate.Parquet("s3a://bucket/orders").
Parquet = partial(Folder, format="parquet")


def _check_format(form: Format, what: str) -> Format:
    if form.tag not in FORMATS:
        raise HeadgateError(
            "BAD_FORMAT",
            f"{what}: the format of files must be one of {', '.join(FORMATS)}, got {form.tag!r}",
            hint=did_you_mean(form.tag, FORMATS),
        )
    return form


def _as_duration(value: str | timedelta) -> timedelta:
    return parse_duration(value) if isinstance(value, str) else value


def _as_size(value: str | int) -> int:
    return parse_size(value) if isinstance(value, str) else value
