"""The online store with its checkpoints on S3: another home may take its job over."""

from __future__ import annotations

import copy
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from broker_shop import BrokerShop, ShopBroker
from s3_server import S3Server
from shop import lose

# A takeover waits for as long.
_LEASE = "5s"


class S3Shop(BrokerShop):
    """A store whose job keeps all that it needs on S3.

    Attributes:
        store: The place of its checkpoints.
    """

    def __init__(self, folder: Path, broker: ShopBroker, s3: S3Server) -> None:
        super().__init__(folder, broker)
        self.prefix = folder.name
        self.s3 = s3
        self.store = s3.url(self.prefix)
        self.environment.update(s3.environment)
        self.environment["HEADGATE_MODULES"] = f"{broker.url.partition(':')[0]},s3a"
        flow = folder / "flow"
        flow.mkdir()
        self.flow = str(shutil.copy(self.flow, flow))
        (flow / "headgate.toml").write_text(
            f'[job]\nprofile = "shop"\n'
            '[profiles.shop]\nmaster = "local[2]"\ndriver-memory = "768MiB"\n'
            f'state-memory = "64MiB"\ndirect-memory = "128MiB"\nlease-expires = "{_LEASE}"\n'
        )

    def start(self, *flags: str) -> None:
        super().start("--checkpoints", self.store, "--parallelism", "2", *flags)

    def in_another_home(self, name: str) -> S3Shop:
        """Return the same store as another host sees it, with an empty home."""
        other = copy.copy(self)
        other.home = self.folder / name
        other.log = self.folder / f"{name}.log"
        other.supervisor = None
        return other

    def run_to_end(self) -> subprocess.CompletedProcess[str]:
        """Run the job in the foreground until it ends by itself."""
        command = [sys.executable, "-m", "headgate", "run", self.flow, "--on", self.on]
        command += ["--home", str(self.home), "--checkpoints", self.store]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=240, env=self.environment
        )

    def lose_driver(self) -> None:
        """End all processes of the driver's host at once."""
        assert self.supervisor is not None
        lose(self.supervisor)

    def lose_driver_at(self, point: str) -> None:
        """Do so in the middle of a batch, at a crash point."""
        with self.holding(point) as held:
            self.wait_until(held.exists)
            self.lose_driver()

    def ask(self, *words: str) -> list[dict[str, Any]]:
        """Run a verb that prints a list, and return that."""
        found: Any = self.headgate(*words)
        return list(found)

    def keys(self, folder: str = "") -> list[str]:
        """Return the names of the objects below a folder of the store, relative to it."""
        prefix = f"{self.prefix}/{folder}/" if folder else f"{self.prefix}/"
        return [key.removeprefix(prefix) for key in self.s3.list_keys(prefix)]

    def lineage(self) -> str:
        """Return the present run, as the job's home has it."""
        return str(self.status()["lineage"])

    def kept(self) -> list[str]:
        """Return the lineages of runs with kept checkpoints on the store."""
        found = (
            re.match(r"([^/]+)/checkpoints/chk-\d+/checkpoint.json", key) for key in self.keys()
        )
        return sorted({match[1] for match in found if match})
