"""The settings of a job: each with its value, and where that came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headgate.server.console.parts import widgets
from headgate.server.console.parts.formats import NONE
from headgate.server.console.parts.markup import Html, element

_COLUMNS = (
    widgets.Column("name", "Setting"),
    widgets.Column("value", "Value"),
    widgets.Column("from", "From"),
)


def show_settings(settings: Mapping[str, Mapping[str, Any]]) -> widgets.Table:
    """Show settings by name."""
    found = widgets.table(
        _COLUMNS,
        setting_rows(settings),
        key="name",
        label="Settings",
        empty="No attempt of this job ever ran, so its settings are not known yet.",
    )
    found.classes("hg-narrow")
    return found


def setting_rows(settings: Mapping[str, Mapping[str, Any]]) -> list[dict[str, str | Html]]:
    """Return settings as rows; those that somebody chose stand out from defaults."""
    return [
        {
            "name": name,
            "value": _value(setting.get("value")),
            "from": str(setting.get("from") or ""),
            "class": "" if setting.get("from") == "default" else "hg-chosen",
        }
        for name, setting in settings.items()
    ]


def _value(value: Any) -> Html | str:
    return NONE if value is None else element("code", str(value))
