"""Errors of brokers as HeadgateErrors; the broker's own hints are data."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.errors import Domain, HeadgateError

_LONGEST = 300


@dataclass(frozen=True, slots=True)
class BrokerFailures:
    """The errors of one kind of broker.

    Attributes:
        broker: Its name.
        start: The hint for a broker that does not respond.
        login: The hint for a client that is refused.
    """

    broker: str
    start: str
    login: str

    def unreachable(self, doing: str, where: str, problem: str) -> HeadgateError:
        """Return the error for servers that do not respond.

        Args:
            doing: What could not be done, as in "cannot DOING".
            where: The servers of the request.
        """
        return HeadgateError(
            "BROKER_UNREACHABLE",
            f"cannot {doing}: no {self.broker} broker responds at {where} ({_one_line(problem)})",
            hint=self.start,
            domain=Domain.EXTERNAL,
            retryable=True,
        )

    def refused(self, doing: str, where: str, problem: str) -> HeadgateError:
        """Return the error for a broker that refused this client."""
        return HeadgateError(
            "BROKER_REFUSED",
            f"cannot {doing}: {self.broker} at {where} refused this client: {_one_line(problem)}",
            hint=self.login,
            domain=Domain.EXTERNAL,
        )

    def failed(self, doing: str, where: str, problem: str, *, retryable: bool) -> HeadgateError:
        """Return the error for a broker that responded with an error of its own."""
        return HeadgateError(
            "BROKER_FAILED",
            f"cannot {doing}: {self.broker} at {where} answered {_one_line(problem)}",
            hint="see the broker's log",
            domain=Domain.EXTERNAL,
            retryable=retryable,
        )


def _one_line(text: str) -> str:
    """Return the first line of a text that is not blank, truncated if it is long."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
    return (first if len(first) <= _LONGEST else f"{first[:_LONGEST]}…").rstrip(".: ")
