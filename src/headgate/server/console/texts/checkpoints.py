"""Checkpoints as the console shows them; only markup and words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from markupsafe import Markup

from headgate.jobs.checkpoints.restore_plan import RestorePlan
from headgate.server.console.parts.formats import NONE
from headgate.server.console.parts.templates import render
from headgate.server.console.texts.questions import repeats_records


def tell_settings(settings: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return when checkpoints are kept and for how long, from a job's settings."""

    def tell(name: str, words: str, otherwise: str = NONE) -> str:
        setting = settings.get(name) or {}
        if setting.get("value") in (None, ""):
            return otherwise
        return f"{words.format(setting['value'])} ({setting.get('from', 'default')})"

    deletes = settings.get("on-cancel", {}).get("value") == "delete"
    where = settings.get("checkpoints", {}).get("value")
    return [
        ("Interval", tell("checkpoint-every", "one every {}")),
        ("Pause between batches", tell("min-pause", "at least {}")),
        ("Retained", tell("retain", "the newest {}")),
        ("Retained for longer", tell("retain-for", "thinned over {}", "no")),
        ("On cancel", tell("on-cancel", "deleted" if deletes else "kept", "kept (default)")),
        ("Where", str(where or "in the job's folder")),
    ]


def show_plan(plan: RestorePlan, *, now: datetime) -> Markup:
    """Return the plan of a restore as markup."""
    largest = max((count or 0 for count in plan.records_again.values()), default=0)
    return render("plan", plan=plan, largest=largest, repeats=repeats_records(plan), now=now)
