"""The form of a line of Spark's log: text for people, JSON for programs."""

from __future__ import annotations

import json
from typing import Any

from headgate.engine.settings import LogFormat, SparkSettings

_PATTERNS = {
    "file": "%d{yyyy-MM-dd HH:mm:ss.SSS} %p %c{1}: %m%n%ex",
    "console": "%d{HH:mm:ss.SSS} %p %c{1}: %m%n",
}
# The kernel sets it on the threads of a batch.
_BATCH = "mdc.batch"


def layout(settings: SparkSettings, appender: str) -> str:
    """Return the lines of a Log4j configuration for the layout of an appender.

    Args:
        appender: `file` or `console`.
    """
    name = f"appender.{appender}.layout"
    if settings.log_format is LogFormat.TEXT:
        return f"{name}.type = PatternLayout\n{name}.pattern = {_PATTERNS[appender]}\n"
    # In a file of properties, a backslash begins an escape: JSON has its own.
    template = json.dumps(_template(settings)).replace("\\", "\\\\")
    return f"{name}.type = JsonTemplateLayout\n{name}.eventTemplate = {template}\n"


def _template(settings: SparkSettings) -> dict[str, Any]:
    """Return the fields of a line; those whose value is unknown are left out of it."""
    pattern = {"format": "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", "timeZone": "UTC"}
    return {
        "at": {"$resolver": "timestamp", "pattern": pattern},
        "level": {"$resolver": "level", "field": "name"},
        "job": settings.job,
        "attempt": settings.attempt,
        "batch": {"$resolver": "mdc", "key": _BATCH},
        "executor": "driver",
        "logger": {"$resolver": "logger", "field": "name"},
        "thread": {"$resolver": "thread", "field": "name"},
        "message": {"$resolver": "message", "stringified": True},
        "exception": {
            "$resolver": "exception",
            "field": "stackTrace",
            "stackTrace": {"stringified": True},
        },
    }
