"""The settings of a job: each with its value, and where that came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from headgate.server.console.parts.templates import note, render


def show_settings(settings: Mapping[str, Mapping[str, Any]]) -> Markup:
    """Return settings as a table; those that somebody chose stand out from defaults."""
    if not settings:
        return note("No attempt of this job ever ran, so its settings are not known yet.")
    known = {
        name: {"value": setting.get("value"), "from": setting.get("from")}
        for name, setting in settings.items()
    }
    return render("settings", settings=known)
