"""How many examples a property test tries."""

from __future__ import annotations

import os

# A quarter as many in `make test` as in `make test-all`.
_SHARE = float(os.environ.get("HEADGATE_EXAMPLES", "0.25"))


def examples(most: int) -> int:
    """Return the number of examples to try of at most so many."""
    return max(1, round(most * _SHARE))
