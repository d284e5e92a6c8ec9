"""From flags and headgate.toml to the options of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from headgate.connectors.logs import anchored
from headgate.jobs.setting_table import SETTINGS, OnCancel
from headgate.jobs.settings import read_settings
from headgate.jobs.values import RunOptions


def resolve_options(flow: str, flags: Mapping[str, Any], base: RunOptions) -> RunOptions:
    """Return the options of a run: from flags, then headgate.toml, then the defaults.

    Folders are made absolute, so that the job can be started again from any folder.

    Args:
        flow: The flow's file, as `load_flow` takes it; a headgate.toml may lie beside it.
        flags: By the names of headgate.toml and in its terms; None if not given.
        base: The options that are not settings: home, until_caught_up, fresh, and so on.
    """
    settings = read_settings(flow_folder(flow), flags=flags)
    chosen = {setting.field: settings[setting.name] for setting in SETTINGS}
    # Their effect is in the other options.
    del chosen["profile"], chosen["on_cancel"]
    folder = settings["checkpoints"]
    chosen |= {
        "on": anchored(settings["on"]),
        "checkpoints": None if folder is None else folder.absolute(),
        "restart": str(settings["restart"]),
        "delete_on_cancel": settings["on-cancel"] is OnCancel.DELETE,
    }
    return replace(base, **chosen, settings=settings.to_json())


def flow_folder(flow: str) -> Path:
    """Return the folder of a flow's file, which need not exist."""
    path = Path(flow.partition(":")[0])
    return path if path.is_dir() else path.parent
