"""The access of a client: its name, role and address."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from headgate.errors import HeadgateError


class Role(enum.StrEnum):
    """What a client may do."""

    VIEW = "view"
    OPERATE = "operate"


@dataclass(frozen=True, slots=True)
class Access:
    """A client that passed the gate.

    Attributes:
        who: Its name in the audit log; not a secret.
        address: The address that it comes from.
        session: The browser's session; None for a token, and on a server without tokens.
    """

    who: str
    role: Role
    address: str = ""
    session: str | None = field(default=None, repr=False)

    @property
    def may_operate(self) -> bool:
        """Whether the client may change anything."""
        return self.role is Role.OPERATE

    def check(self, role: Role, *, to: str) -> None:
        """Refuse what the role does not allow.

        Args:
            to: What the client wants to do.

        Raises:
            HeadgateError: NOT_ALLOWED.
        """
        if role is Role.OPERATE and not self.may_operate:
            raise HeadgateError(
                "NOT_ALLOWED",
                f"cannot {to}: the role of this token is {self.role}, and it needs {role}",
                hint="use a token with the role operate",
            )


# On a server without tokens, every user of this machine may do everything.
LOCAL = Access("local", Role.OPERATE)
