"""Puts the kernel's jars into the wheel: compiled with the JDK against PySpark's own jars."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelBuildHook(BuildHookInterface[Any]):
    """Compiles the kernel where it is stale, and adds its jars to what is packed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build for a wheel; an editable install builds at its first use."""
        if self.target_name != "wheel" or version == "editable":
            return
        sys.path.insert(0, str(Path(self.root) / "src"))
        from headgate._kernel.jar import build_jars

        for jar in build_jars(progress=self.app.display_info):
            build_data["force_include"][str(jar)] = f"headgate/_kernel/{jar.name}"
