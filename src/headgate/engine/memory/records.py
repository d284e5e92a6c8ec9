"""Records for a flow in memory, from Python values. No Spark."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import asdict, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from headgate.errors import HeadgateError

_DECIMAL = re.compile(r'"\\u0000([^"]*)\\u0000"')


def write_record(value: Any) -> bytes:
    """Return a dict or a dataclass as JSON; text and bytes stay as they are."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    plain = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    text = json.dumps(plain, ensure_ascii=False, default=_plain)
    return _DECIMAL.sub(r"\1", text).encode()


def _plain(value: Any) -> str:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        # The codec of the standard library knows numbers as floats only.
        return f"\0{value:f}\0"
    raise HeadgateError(
        "INPUT_UNKNOWN",
        f"cannot write a record as JSON: it contains a {type(value).__name__}",
        hint="pass a dict, a dataclass, or the JSON as text",
    )
