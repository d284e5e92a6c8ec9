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
    """Return the options of a run: flags first, then headgate.toml, then what is the default.

    Folders are made absolute, so that the job can be started again from anywhere.

    Args:
        flow: The flow's file, as `load_flow` takes it; a headgate.toml may lie beside it.
        flags: By the names of headgate.toml and in its terms; None is not given.
        base: What no setting can say: home, until_caught_up, fresh, and the like.
    """
    found = read_settings(flow_folder(flow), flags=flags)
    chosen = {each.field: found[each.name] for each in SETTINGS}
    # Their effect is in the other settings.
    del chosen["profile"], chosen["on_cancel"]
    folder = found["checkpoints"]
    chosen |= {
        "on": anchored(found["on"]),
        "checkpoints": None if folder is None else folder.absolute(),
        "restart": str(found["restart"]),
        "delete_on_cancel": found["on-cancel"] is OnCancel.DELETE,
    }
    return replace(base, **chosen, settings=found.to_json())


def flow_folder(flow: str) -> Path:
    """Return the folder a flow's file lies in, whether the file is there or not."""
    path = Path(flow.partition(":")[0])
    return path if path.is_dir() else path.parent
