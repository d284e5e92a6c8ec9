"""The console as a topic: it prints rows and stores nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headgate.errors import HeadgateError
from headgate.flow.json_values import JsonObject, as_bool, get_int, get_text
from headgate.flow.names import check_topic_name
from headgate.flow.topics import register_topic


@register_topic
@dataclass(frozen=True, slots=True, kw_only=True)
class Console:
    """Prints the first rows of each batch; it cannot be read.

    Attributes:
        rows: The number of rows printed per batch.
        name: Distinguishes two consoles of one flow.
        stderr: Print to standard error, and not to standard output.
    """

    rows: int = 20
    name: str = "console"
    stderr: bool = False

    kind: ClassVar[str] = "console"
    pattern: ClassVar[None] = None
    can_read: ClassVar[bool] = False
    can_write: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_topic_name(self.name)
        if self.rows < 1:
            raise HeadgateError(
                "BAD_ROWS",
                f"cannot print {self.rows} rows on the console: rows must be at least 1",
                hint="use Console(rows=20)",
            )

    def describe(self) -> str:
        return f"{self.name} ({self.rows} rows{', on stderr' if self.stderr else ''})"

    def to_json(self) -> JsonObject:
        # Releases before 0.11 know no other than standard output.
        more: JsonObject = {"stderr": True} if self.stderr else {}
        return {"name": self.name, "rows": self.rows, **more}

    @classmethod
    def from_json(cls, holder: JsonObject) -> Console:
        return cls(
            rows=get_int(holder, "rows"),
            name=get_text(holder, "name"),
            stderr=as_bool(holder.get("stderr", False), "'stderr'"),
        )
