"""The online store with its checkpoints in a folder that hosts share."""

from __future__ import annotations

from pathlib import Path

from broker_shop import ShopBroker
from s3_server import S3Server
from s3_shop import S3Shop


class SharedShop(S3Shop):
    """A store with its checkpoints in a shared folder; S3 is there, and not used."""

    def __init__(self, folder: Path, broker: ShopBroker, s3: S3Server) -> None:
        super().__init__(folder, broker, s3)
        self.mount = folder / "mount"
        self.mount.mkdir()
        self.store = f"shared://{self.mount}"
        self.environment["HEADGATE_MODULES"] = broker.url.partition(":")[0]
        for name in s3.environment:
            self.environment.pop(name, None)

    def keys(self, folder: str = "") -> list[str]:
        root = self.mount / folder
        return sorted(
            str(file.relative_to(root)) for file in root.rglob("*") if file.name[0] != "."
        )
