"""A topic in a folder, as a value."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import ClassVar

from headgate.errors import HeadgateError
from headgate.flow.json_values import JsonObject, get_text
from headgate.flow.names import check_path, check_topic_name
from headgate.flow.topics import register_topic


@register_topic
@dataclass(frozen=True, slots=True)
class Files:
    """A topic in a folder, independent of the flow's other topics.

    Attributes:
        name: The topic's name in the flow.
        dir: The topic's folder; a relative path starts at the job's working directory.
    """

    name: str
    dir: str | os.PathLike[str] = field(kw_only=True)

    kind: ClassVar[str] = "files"
    pattern: ClassVar[None] = None
    can_read: ClassVar[bool] = True
    can_write: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_topic_name(self.name)
        path = check_path(self.dir)
        if not path:
            raise HeadgateError(
                "BAD_NAME",
                f"cannot bind topic {self.name!r} to a folder: dir must not be empty",
                hint=f"give the folder: Files({self.name!r}, dir='data/{self.name}')",
            )
        object.__setattr__(self, "dir", path)

    @property
    def path(self) -> str:
        """The folder as text."""
        return os.fspath(self.dir)

    def describe(self) -> str:
        return f"files {self.name} in {self.path}"

    def to_json(self) -> JsonObject:
        return {"name": self.name, "dir": self.path}

    @classmethod
    def from_json(cls, holder: JsonObject) -> Files:
        return cls(get_text(holder, "name"), dir=get_text(holder, "dir"))
