"""A job that writes to PostgreSQL, under fire: rows that are appended, and that replace others."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from broker_shop import BrokerShop
from postgres_server import Database
from shop import JOB

KEYS = 40
FLOW = """
from headgate import Flow, Postgres

place = {{"url": {url!r}, "password": {password!r}}}
flow = Flow({job!r})
events = flow.stream("in", "id BIGINT NOT NULL, shard BIGINT NOT NULL, word STRING")
events.to(Postgres("rows", **place))
events.where("id % 5 <> 0").to(Postgres("latest", **place), key="shard")
events.to("copies")
"""


class PostgresShop(BrokerShop):
    """One job, its input in a folder, and its outputs in a database of its own."""

    def __init__(self, folder: Path, database: Database) -> None:
        super().__init__(folder, database)  # type: ignore[arg-type]
        self.database = database
        self.sent: list[dict[str, object]] = []
        database.run("CREATE TABLE rows (id bigint NOT NULL, shard bigint, word text)")
        database.run("CREATE TABLE latest (id bigint, shard bigint PRIMARY KEY, word text)")
        self.write_flow()

    @property
    def on(self) -> str:
        return f"files:{self.topics}"

    def write_flow(self) -> None:
        flow = self.folder / "flow.py"
        place = {"url": self.database.url, "password": self.database.server.password}
        flow.write_text(FLOW.format(job=JOB, **place))
        self.flow = str(flow)

    def send(self, many: int) -> None:
        """Publish a file of further events; a key's events are in the order of their ids."""
        first = len(self.sent)
        rows = [{"id": n, "shard": n % KEYS, "word": f"w{n}"} for n in range(first, first + many)]
        self.sent += rows
        folder = self.topics / "in" / "part-0"
        folder.mkdir(parents=True, exist_ok=True)
        making = folder / f".{first:09d}.tmp"
        making.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        making.rename(folder / f"{first:09d}.jsonl")

    def reach_by_sending(self, point: str, many: int) -> None:
        """Have the job die at a point of the batch with further events."""
        file = self.crashes / point
        file.touch()
        self.send(many)
        self.wait_until(lambda: not file.exists())

    def count(self) -> int:
        return int(self.database.rows("SELECT count(*) FROM rows")[0][0])

    def assert_written_once(self) -> None:
        """Compare the tables with plain Python over the same events."""
        found = Counter(self.database.rows("SELECT id, shard, word FROM rows"))
        expected = Counter((row["id"], row["shard"], row["word"]) for row in self.sent)
        assert found == expected, f"{found - expected} too many, {expected - found} missing"
        kept = [row for row in self.sent if int(str(row["id"])) % 5]
        latest = {row["shard"]: (row["id"], row["word"]) for row in kept}
        rows = self.database.rows("SELECT shard, id, word FROM latest")
        assert {shard: (id_, word) for shard, id_, word in rows} == latest
