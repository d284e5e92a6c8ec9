"""The console as a topic, as a value: it shows rows and keeps none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headgate.errors import HeadgateError
from headgate.flow.json_values import JsonObject, get_int, get_text
from headgate.flow.names import check_topic_name
from headgate.flow.topics import register_topic


@register_topic
@dataclass(frozen=True, slots=True, kw_only=True)
class Console:
    """Prints the first rows of each batch; it can be written and not read.

    Attributes:
        rows: How many rows of a batch are shown.
        name: Tells two consoles of one flow apart.
    """

    rows: int = 20
    name: str = "console"

    kind: ClassVar[str] = "console"
    pattern: ClassVar[None] = None
    can_read: ClassVar[bool] = False
    can_write: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_topic_name(self.name)
        if self.rows < 1:
            raise HeadgateError(
                "BAD_ROWS",
                f"cannot show {self.rows} rows on the console: it shows one or more",
                hint="use Console(rows=20)",
            )

    def describe(self) -> str:
        """Return the name and how much is shown."""
        return f"{self.name} ({self.rows} rows)"

    def to_json(self) -> JsonObject:
        """Return the name and how much is shown."""
        return {"name": self.name, "rows": self.rows}

    @classmethod
    def from_json(cls, holder: JsonObject) -> Console:
        """Return the console that `to_json` wrote."""
        return cls(rows=get_int(holder, "rows"), name=get_text(holder, "name"))
