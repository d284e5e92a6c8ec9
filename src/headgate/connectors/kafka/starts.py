"""The start of reading on Kafka; positions are `offsets:0=15,1=20`."""

from __future__ import annotations

from headgate.connectors.starts import StartSyntax, find_count

STARTS = StartSyntax("offsets:", "offsets:0=15,1=20", "offsets", find_count)
