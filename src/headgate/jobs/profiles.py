"""The built-in profiles: sets of values of settings that `--profile` chooses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headgate.jobs.setting_table import BY_NAME

# Measured (docs/internals/memory.md): all processes of the store's job stay below 1 GB.
_SMALL = {
    "driver-memory": "640MiB",
    "executor-memory": "512MiB",
    "state-memory": "64MiB",
    "metaspace": "192MiB",
    "code-cache": "160MiB",
    "direct-memory": "128MiB",
    "max-batch": "32MiB",
    "master": "local[2]",
}
# By name, then by the setting's name.
PROFILES: Mapping[str, Mapping[str, Any]] = {
    name: {key: BY_NAME[key].kind.parse(value) for key, value in values.items()}
    for name, values in {"small": _SMALL}.items()
}
