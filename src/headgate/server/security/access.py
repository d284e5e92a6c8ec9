"""What somebody who was let in may do."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from headgate.errors import HeadgateError


class Role(enum.StrEnum):
    """What somebody may do."""

    VIEW = "view"
    OPERATE = "operate"


@dataclass(frozen=True, slots=True)
class Access:
    """Somebody who was let in.

    Attributes:
        who: A name for the audit log; no secret.
        address: Where they come from.
        session: The browser's session; None for a token, and where none is needed.
    """

    who: str
    role: Role
    address: str = ""
    session: str | None = field(default=None, repr=False)

    @property
    def may_operate(self) -> bool:
        """Whether they may change anything."""
        return self.role is Role.OPERATE

    def check(self, role: Role, *, to: str) -> None:
        """Refuse what the role does not allow.

        Args:
            to: What they want to do.

        Raises:
            HeadgateError: NOT_ALLOWED.
        """
        if role is Role.OPERATE and not self.may_operate:
            raise HeadgateError(
                "NOT_ALLOWED",
                f"cannot {to}: the role of this token is {self.role}, and it needs {role}",
                hint="use a token with the role operate",
            )


# Without a token everybody on this machine may do everything.
LOCAL = Access("local", Role.OPERATE)
