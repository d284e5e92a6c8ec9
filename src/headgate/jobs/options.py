"""From flags and headgate.toml to the options of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from headgate.connectors.logs import anchored
from headgate.jobs.settings import OnCancel, read_settings
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
    return replace(
        base,
        on=anchored(found.on),
        parallelism=found.parallelism,
        batch_every=found.batch_every,
        max_batch=found.max_batch,
        max_record=found.max_record,
        checkpoints=None if found.checkpoints is None else found.checkpoints.absolute(),
        restart=str(found.restart),
        checkpoint_every=found.checkpoint_every,
        min_pause=found.min_pause,
        retain=found.retain,
        retain_for=found.retain_for,
        delete_on_cancel=found.on_cancel is OnCancel.DELETE,
        driver_memory=found.driver_memory,
        executor_memory=found.executor_memory,
        state_memory=found.state_memory,
        master=found.master,
        log_level=found.log_level.value,
        delivery=found.delivery,
        on_data_loss=found.on_data_loss,
        settings=found.to_json(),
    )


def flow_folder(flow: str) -> Path:
    """Return the folder a flow's file lies in, whether the file is there or not."""
    path = Path(flow.partition(":")[0])
    return path if path.is_dir() else path.parent
