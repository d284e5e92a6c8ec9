"""The web console: pages that show jobs and act on them, served by the server itself.

`parts.frame` is the frame of every page, `parts.widgets` what pages are made of. `Live` is HTML
that changes in place; a page is a few of these, whatever it shows, so that one that is open for
hours stays small. Reads of disk go through `widgets.read` or `widgets.ask`, to a thread.
"""

from __future__ import annotations

from fastapi import FastAPI, Request
from starlette.responses import HTMLResponse, Response

_EARLY = "\n        headgate.apply();\n"
# A browser that was away for less finds its page as it left it.
_RECONNECT_S = 30.0
# On a busy machine, a page that comes late is better than none.
_LONGEST_BUILD_S = 30.0


def mount(app: FastAPI) -> None:
    """Serve the console under `app`; its pages answer on the paths that `app` leaves free.

    NiceGUI has one app for the whole process, so this is called once in a process.
    """
    from nicegui import app as console
    from nicegui import ui

    from headgate.server.console.pages import checkpoints, jobs, outputs, overview, processes, state
    from headgate.server.console.parts.templates import plain_page
    from headgate.server.console.parts.theme import ICON, head

    for path, page in (
        ("/", jobs),
        ("/jobs/{job}", overview),
        ("/jobs/{job}/checkpoints", checkpoints),
        ("/jobs/{job}/state", state),
        ("/jobs/{job}/outputs", outputs),
        ("/jobs/{job}/processes", processes),
    ):
        ui.page(path, response_timeout=_LONGEST_BUILD_S)(page.show_page)
    ui.add_head_html(head(), shared=True)
    console.config.vue_config_script += _EARLY
    ui.run_with(
        app,
        title="Headgate",
        favicon=ICON,
        dark=None,
        language="en-US",
        tailwind=False,
        binding_refresh_interval=None,
        reconnect_timeout=_RECONNECT_S,
        show_welcome_message=False,
    )

    @console.exception_handler(404)
    async def not_found(request: Request, _error: Exception) -> Response:
        return HTMLResponse(plain_page("not_found", path=request.url.path[:256]), status_code=404)
