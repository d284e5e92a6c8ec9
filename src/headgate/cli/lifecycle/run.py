"""The command that runs a job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from headgate.cli.parts.options import FlowFile, takes_settings
from headgate.cli.parts.output import note
from headgate.cli.parts.place import Place, list_options, refuse_with_server, was_typed
from headgate.cli.parts.running import show_detached, show_run, show_started
from headgate.jobs.flow_file import name_of_flow
from headgate.jobs.setting_table import Panel
from headgate.jobs.settings import resolve_options
from headgate.jobs.values import LATEST, Consent, RunOptions

if TYPE_CHECKING:
    from headgate.client.server_home import ServerHome

_ROWS_PRINTED = 20
# Options that a server does not support.
_HERE_ALONE = (
    *("until_caught_up", "drain", "watch", "restore_at", "drop_state", "start", "strict"),
    *("check_determinism", "print_rows", "verbose", "ui", "ui_port"),
)
# Options that exclude each other.
_EXCLUSIVE = (
    ("fresh", "restore_from", "restore_at"),
    ("fresh", "open_batch"),
    ("restore_at", "open_batch"),
    ("watch", "detach"),
    ("watch", "drain"),
    ("ui", "detach"),
    ("ui_port", "detach"),
)


def _flag(*names: str, help_: str, panel: Panel | None = Panel.STARTING, **more: Any) -> Any:
    return typer.Option(*names, help=help_, rich_help_panel=panel, **more)


Detach: TypeAlias = Annotated[
    bool, _flag("--detach", "-d", help_="Return at once; the job runs in the background.")
]
UntilCaughtUp: TypeAlias = Annotated[
    bool, _flag("--until-caught-up", help_="End once all existing records have been read.")
]
Drain: TypeAlias = Annotated[
    bool, _flag("--drain", help_="Likewise, and close every window first, as 'stop --drain' does.")
]
Watch: TypeAlias = Annotated[
    bool, _flag("--watch", help_="Restart with its state whenever the flow's file changes.")
]
Ui: TypeAlias = Annotated[
    bool, _flag("--ui", help_="Show the job in a browser as long as it runs.")
]
UiPort: TypeAlias = Annotated[
    int | None,
    _flag(
        "--ui-port",
        help_="Port of --ui.",
        metavar="N",
        min=0,
        max=65535,
        show_default="8270, or any free port",
    ),
]
Fresh: TypeAlias = Annotated[
    bool, _flag("--fresh", help_="Start empty, in a new run; the old run stays unchanged.")
]
RestoreFrom: TypeAlias = Annotated[
    str | None,
    _flag(
        "--from",
        help_="Restore chk-17, a savepoint's name, folder or address, or latest, where the present "
        "run ended, in a new run.",
        metavar="CHECKPOINT",
    ),
]
RestoreAt: TypeAlias = Annotated[
    str | None,
    _flag(
        "--at",
        help_="Restore the checkpoint of '2026-11-15 10:05' (local time) or '10m ago'.",
        metavar="MOMENT",
    ),
]
DropState: TypeAlias = Annotated[
    list[str] | None,
    _flag("--drop-state", help_="Drop this operator's state in a restore.", metavar="UID"),
]
Start: TypeAlias = Annotated[
    list[str] | None,
    _flag(
        "--start",
        help_="Start position of a source without a position: earliest, latest, a time, or "
        "offsets:0=15,1=20; without SOURCE, of all streams.",
        panel=Panel.READING,
        metavar="[SOURCE=]POSITION",
    ),
]
Strict: TypeAlias = Annotated[
    bool,
    _flag(
        "--strict",
        help_="Stop if the newest checkpoint is corrupted, instead of falling back to an older "
        "one.",
        panel=Panel.KEEPING,
    ),
]
CheckDeterminism: TypeAlias = Annotated[
    bool,
    _flag(
        "--check-determinism",
        help_="Call every Python function twice, and fail if the results differ.",
        panel=None,
    ),
]
PrintRows: TypeAlias = Annotated[
    bool, _flag("--print", help_="Show the first rows of each output and batch.", panel=None)
]
Verbose: TypeAlias = Annotated[
    bool, _flag("--verbose", "-v", help_="Also show Spark's log on the terminal.", panel=None)
]


@takes_settings("run", panels=True)
def run(
    flow: FlowFile,
    *,
    detach: Detach = False,
    until_caught_up: UntilCaughtUp = False,
    drain: Drain = False,
    watch: Watch = False,
    ui: Ui = False,
    ui_port: UiPort = None,
    fresh: Fresh = False,
    restore_from: RestoreFrom = None,
    restore_at: RestoreAt = None,
    drop_state: DropState = None,
    consent: Consent,
    settings: Mapping[str, Any],
    start: Start = None,
    strict: Strict = False,
    check_determinism: CheckDeterminism = False,
    print_rows: PrintRows = False,
    verbose: Verbose = False,
    place: Place,
) -> None:
    """Run a flow as a job, until Ctrl-C or until it has caught up.

    An existing job continues from its newest checkpoint; --fresh starts it empty, --from goes back
    to a checkpoint or a savepoint. --restart says how a failed job is restarted. Ctrl-C ends the
    job before its next batch. Spark's log is in the job's folder, .headgate/jobs/NAME/logs.

    A headgate.toml beside the flow or in the working directory can hold settings; options on the
    command line take precedence. With --server the flow is in the server's folder of flows, and the
    job runs there: Ctrl-C only ends the view of it.

    [bold]Examples[/bold]

      headgate run examples/visits/flow.py --drain
      headgate run flow.py --checkpoint-every 30s --retain 20 --restart fixed-delay:5,10s
      headgate run orders/flow.py --server http://build-7:8270 --detach
    """
    _check_exclusive(place.context)
    base = RunOptions(
        home=place.local.folder,
        until_caught_up=until_caught_up,
        drain=drain,
        fresh=fresh,
        restore_from=restore_from,
        restore_at=restore_at,
        drop_state=tuple(drop_state or ()),
        consent=consent,
        strict=strict,
        check_determinism=check_determinism,
        start=tuple(start or ()),
        print_rows=_ROWS_PRINTED if print_rows else 0,
        verbose=verbose,
    )
    if place.server is not None:
        _run_there(place.server, flow, settings, base, place, detach=detach)
        return
    serving = ui or ui_port is not None
    options = resolve_options(flow, settings, base)
    _run_here(flow, options, place, ui_port, serving=serving, detach=detach, watch=watch)


def _run_here(
    flow: str,
    options: RunOptions,
    place: Place,
    ui_port: int | None,
    *,
    serving: bool,
    detach: bool,
    watch: bool,
) -> None:
    if detach:
        show_detached(flow, options, as_json=place.as_json)
        return
    with _server_beside(flow, options, ui_port, wanted=serving):
        show_run(flow, options, as_json=place.as_json, watch=watch)


def _run_there(
    server: ServerHome,
    flow: str,
    settings: Mapping[str, Any],
    base: RunOptions,
    place: Place,
    *,
    detach: bool,
) -> None:
    refuse_with_server(place.context, *_HERE_ALONE)
    started = server.submit(
        flow,
        _sent_settings(place.context, settings),
        fresh=base.fresh,
        restore_from=base.restore_from,
        consent=base.consent,
    )
    show_started(server, started, detach=detach, as_json=place.as_json)


@contextmanager
def _server_beside(
    flow: str, options: RunOptions, port: int | None, *, wanted: bool
) -> Iterator[None]:
    """Serve the console of a job as long as it runs, if wanted."""
    if not wanted:
        yield
        return
    from headgate.server.beside import serve_beside

    name = name_of_flow(flow)
    with serve_beside(options.home, name, on=options.on, port=port) as address:
        note(f"Job '{name}' is shown at {address}/jobs/{name}")
        yield


def _sent_settings(context: typer.Context, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given settings for a request."""
    # HEADGATE_ON is the log of this terminal, not of the server.
    hidden = () if was_typed(context, "on") else ("on",)
    return {
        name: value if isinstance(value, int) else str(value)
        for name, value in settings.items()
        if value is not None and name not in hidden
    }


def _check_exclusive(context: typer.Context) -> None:
    for names in _EXCLUSIVE:
        given = [name for name in names if context.params[name] not in (None, False)]
        if len(given) > 1:
            raise typer.BadParameter(f"{list_options(context, given)} exclude each other")
    if context.params["open_batch"] and context.params["restore_from"] not in (None, LATEST):
        raise typer.BadParameter(f"--open-batch goes with --from {LATEST} only")
