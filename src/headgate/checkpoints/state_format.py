"""The form of operators' state in Spark's folder, as one number for all of them."""

from __future__ import annotations

from headgate.errors import HeadgateError

# 1: under each key, or for windows under a bucket of them. 2: for all operators under the number
# of a bucket, which holds a map by key.
STATE_FORMAT = 2
# What was written before manifests named the form.
FIRST_STATE_FORMAT = 1
_WRITERS = {FIRST_STATE_FORMAT: "headgate 0.6 and before"}


def check_state_format(found: int, *, what: str, hint: str) -> None:
    """Refuse state of a form that this release does not read.

    Args:
        what: What cannot be done and to what, as in `cannot resume job 'orders'`.
        hint: What to do about state of an older release.

    Raises:
        HeadgateError: STATE_FORMAT_UNSUPPORTED.
    """
    if found == STATE_FORMAT:
        return
    writer = f" ({_WRITERS[found]})" if found in _WRITERS else ""
    raise HeadgateError(
        "STATE_FORMAT_UNSUPPORTED",
        f"{what}: its state is of format {found}{writer}, and this release reads {STATE_FORMAT}",
        hint=hint
        if found < STATE_FORMAT
        else "use the release of headgate that wrote it, or a newer one",
    )
