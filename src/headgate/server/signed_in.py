"""The client of a request: set by the gate, and read while the request is served."""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any

from headgate.errors import HeadgateError
from headgate.server.context import get_context
from headgate.server.security.access import Access

_SCOPE = "headgate.access"

_current: contextvars.ContextVar[Access | None] = contextvars.ContextVar(
    "headgate_access", default=None
)


def let_in(scope: MutableMapping[str, Any], access: Access) -> None:
    """Set the client of a request."""
    scope[_SCOPE] = access
    _current.set(access)


def access_of(scope: Mapping[str, Any]) -> Access:
    """Return the client of a request.

    Raises:
        HeadgateError: NOT_SIGNED_IN if the gate set none.
    """
    access = scope.get(_SCOPE)
    if isinstance(access, Access):
        return access
    raise not_signed_in()


def current_access() -> Access:
    """Return the client that is served, inside a route or a page of the console.

    Inside a page this is the client that opened it, as long as its session lasts.

    Raises:
        HeadgateError: NOT_SIGNED_IN if there is none, or its session has ended.
    """
    access = _find_page_access() or _current.get()
    if access is None:
        raise not_signed_in()
    if access.session is not None and get_context().sessions.find(access.session) is None:
        raise not_signed_in()
    return access


def not_signed_in() -> HeadgateError:
    """Return the refusal of a client without a token."""
    return HeadgateError(
        "NOT_SIGNED_IN",
        "access denied: this server needs a token",
        hint="send the header 'Authorization: Bearer TOKEN', or sign in at /login",
    )


def _find_page_access() -> Access | None:
    # REST alone does not load NiceGUI.
    if "nicegui" not in sys.modules:
        return None
    from nicegui import context

    try:
        request = context.client.request
    except RuntimeError:
        # Outside of a page.
        return None
    access = None if request is None else request.scope.get(_SCOPE)
    return access if isinstance(access, Access) else None
