"""The format of operators' state in Spark's folder, one number for all operators."""

from __future__ import annotations

from headgate.errors import HeadgateError

# 1: one entry per key, or for windows per bucket of keys. 2: one entry per bucket for all
# operators, which holds a map by key.
STATE_FORMAT = 2
# The format before manifests named it.
FIRST_STATE_FORMAT = 1
_WRITERS = {FIRST_STATE_FORMAT: "headgate 0.6 and older"}


def check_state_format(stored: int, *, what: str, hint: str) -> None:
    """Refuse state of a format that this release does not read.

    Args:
        what: What could not be done and to what, as in `cannot resume job 'orders'`.
        hint: The next step for state of an older release.

    Raises:
        HeadgateError: STATE_FORMAT_UNSUPPORTED.
    """
    if stored == STATE_FORMAT:
        return
    writer = f" ({_WRITERS[stored]})" if stored in _WRITERS else ""
    raise HeadgateError(
        "STATE_FORMAT_UNSUPPORTED",
        f"{what}: its state has format {stored}{writer}, and this release reads {STATE_FORMAT}",
        hint=hint
        if stored < STATE_FORMAT
        else "use the release of headgate that wrote it, or a newer one",
    )
