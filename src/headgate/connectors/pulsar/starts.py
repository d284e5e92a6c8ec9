"""The start of reading on Pulsar; positions are `messages:0=12:5,1=13:0`, ledger and entry."""

from __future__ import annotations

from headgate.connectors.pulsar.message_ids import EntryId, find_entry_id
from headgate.connectors.starts import StartSyntax


def _find_position(value: object) -> EntryId | None:
    entry = find_entry_id(value)
    return None if entry is None or entry.ledger < 0 else entry


STARTS = StartSyntax("messages:", "messages:0=12:5,1=13:0", "messages", _find_position)
