"""The verb that runs a job."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.cli.following import show_started
from headgate.cli.job_options import AllowRepeats, OpenBatchChoice
from headgate.cli.options import ON_VARIABLE, Home, Json, Server, TokenFile
from headgate.cli.output import note
from headgate.cli.place import find_server, refuse_with_server, was_typed
from headgate.cli.running import show_detached, show_run
from headgate.jobs.service import (
    DEFAULT_HOME,
    DEFAULT_LOG,
    Consent,
    Delivery,
    OnDataLoss,
    RunOptions,
    name_of_flow,
    resolve_options,
)

_HELP = """Run a flow as a job, until Ctrl-C or until it has caught up.

A job that exists goes on from its newest checkpoint; --fresh starts it empty, --from goes back to
a checkpoint or a savepoint. A job that fails is restarted as --restart says. Ctrl-C ends it before
its next batch, so that nothing is left half done. What Spark says goes to the job's folder,
.headgate/jobs/NAME/logs.

Settings may lie in a headgate.toml beside the flow or in the working directory; flags win.

With --server the flow is one of the server's flows folder, and the job runs there: Ctrl-C stops
looking at it, and no more.

[bold]Examples[/bold]

  headgate run examples/orders/flow.py

  headgate run examples/orders/flow.py --detach

  headgate run examples/orders/flow.py --until-caught-up --json

  headgate run flow.py --checkpoint-every 30s --retain 20 --restart fixed-delay:5,10s

  headgate run orders/flow.py --server http://build-7:8270 --detach
"""
_ROWS_PRINTED = 20
# What a server does not do for a flow that is sent to it.
_HERE_ALONE = (
    *("until_caught_up", "watch", "restore_at", "drop_state", "start", "strict"),
    *("print_rows", "verbose", "ui", "ui_port"),
)
_STARTING = "How it starts and ends"
_READING = "What it reads"
_KEEPING = "Checkpoints and restarts"


class OnCancel(enum.StrEnum):
    """What becomes of a job's checkpoints when it is cancelled."""

    RETAIN = "retain"
    DELETE = "delete"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("run", help=_HELP)(_run)


def _setting(
    name: str,
    metavar: str,
    default: str,
    help_: str,
    panel: str,
    *more: str,
    variable: str | None = None,
) -> Any:
    """Return the option of a setting: what is not given may be in headgate.toml."""
    return typer.Option(
        name,
        *more,
        envvar=variable,
        metavar=metavar,
        help=help_,
        show_default=default,
        rich_help_panel=panel,
    )


def _run(
    context: typer.Context,
    flow: Annotated[
        str, typer.Argument(metavar="FLOW", help="A flow's file: flow.py, or flow.py:name.")
    ],
    detach: Annotated[
        bool,
        typer.Option(
            "--detach", "-d", help="Return at once; the job runs on.", rich_help_panel=_STARTING
        ),
    ] = False,
    until_caught_up: Annotated[
        bool,
        typer.Option(
            "--until-caught-up",
            help="End once all that is there has been read.",
            rich_help_panel=_STARTING,
        ),
    ] = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Run on with state kept whenever the flow's file changes.",
            rich_help_panel=_STARTING,
        ),
    ] = False,
    ui: Annotated[
        bool,
        typer.Option(
            "--ui",
            help="Show the job in a browser as long as it runs.",
            rich_help_panel=_STARTING,
        ),
    ] = False,
    ui_port: Annotated[
        int | None,
        typer.Option(
            "--ui-port",
            metavar="N",
            min=0,
            max=65535,
            show_default="8270, or any that is free",
            help="The port of --ui.",
            rich_help_panel=_STARTING,
        ),
    ] = None,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help="Start empty, in a new run; the old one stays as it is.",
            rich_help_panel=_STARTING,
        ),
    ] = False,
    restore_from: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="CHECKPOINT",
            help="Go back to chk-17, a savepoint's name or folder, or latest; in a new run.",
            rich_help_panel=_STARTING,
        ),
    ] = None,
    restore_at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="MOMENT",
            help="Go back to the checkpoint of '2026-11-15 10:05' (local) or '10m ago'.",
            rich_help_panel=_STARTING,
        ),
    ] = None,
    drop_state: Annotated[
        list[str] | None,
        typer.Option(
            "--drop-state",
            metavar="UID",
            help="Leave this operator's state behind when going back.",
            rich_help_panel=_STARTING,
        ),
    ] = None,
    open_batch: OpenBatchChoice = None,
    allow_repeats: AllowRepeats = False,
    on: Annotated[
        str | None,
        _setting(
            "--on",
            "LOG",
            DEFAULT_LOG,
            "Where the topics are: files:DIR, kafka://HOST:9092, pulsar://HOST:6650.",
            _READING,
            variable=ON_VARIABLE,
        ),
    ] = None,
    start: Annotated[
        list[str] | None,
        typer.Option(
            "--start",
            metavar="[SOURCE=]POSITION",
            help="Where a source with no position yet begins: earliest, latest, a time, or "
            "offsets:0=15,1=20; without a source, all streams.",
            rich_help_panel=_READING,
        ),
    ] = None,
    on_data_loss: Annotated[
        OnDataLoss | None,
        _setting(
            "--on-data-loss",
            "fail|continue",
            "fail",
            "What to do where records are gone that were not read.",
            _READING,
        ),
    ] = None,
    delivery: Annotated[
        Delivery | None,
        _setting(
            "--delivery",
            "exactly-once|at-least-once",
            "exactly-once",
            "How often a row is in an output, whatever was killed.",
            _KEEPING,
        ),
    ] = None,
    batch_every: Annotated[
        str | None,
        _setting(
            "--batch-every",
            "DURATION",
            "1s",
            "How often a batch begins; 0s: without a pause.",
            _READING,
        ),
    ] = None,
    min_pause: Annotated[
        str | None,
        _setting(
            "--min-pause",
            "DURATION",
            "0s",
            "The least time between the end of a batch and the next.",
            _READING,
        ),
    ] = None,
    max_batch: Annotated[
        str | None,
        _setting(
            "--max-batch", "SIZE", "64MiB", "What a batch reads of a topic at most.", _READING
        ),
    ] = None,
    max_record: Annotated[
        str | None,
        _setting("--max-record", "SIZE", "1MiB", "A larger record is a dead letter.", _READING),
    ] = None,
    checkpoint_every: Annotated[
        str | None,
        _setting(
            "--checkpoint-every",
            "DURATION",
            "5s",
            "One batch in each of these is kept as a checkpoint.",
            _KEEPING,
        ),
    ] = None,
    retain: Annotated[
        int | None, _setting("--retain", "N", "10", "How many checkpoints are kept.", _KEEPING)
    ] = None,
    retain_for: Annotated[
        str | None,
        _setting(
            "--retain-for",
            "DURATION",
            "none",
            "How long more of them are kept, thinned with age.",
            _KEEPING,
        ),
    ] = None,
    on_cancel: Annotated[
        OnCancel | None,
        _setting(
            "--on-cancel",
            "retain|delete",
            "retain",
            "What becomes of checkpoints when the job is cancelled.",
            _KEEPING,
        ),
    ] = None,
    checkpoints: Annotated[
        Path | None,
        _setting(
            "--checkpoints",
            "DIR",
            "the job's folder",
            "Where the checkpoints of new runs go.",
            _KEEPING,
        ),
    ] = None,
    restart: Annotated[
        str | None,
        _setting(
            "--restart",
            "STRATEGY",
            "exponential:1s,60s,1.5",
            "exponential:FIRST,LONGEST,FACTOR, fixed-delay:RESTARTS,WAIT, "
            "failure-rate:RESTARTS,PER,WAIT or none.",
            _KEEPING,
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Stop where the newest checkpoint is damaged, rather than fall back.",
            rich_help_panel=_KEEPING,
        ),
    ] = False,
    parallelism: Annotated[
        int | None,
        _setting("--parallelism", "N", "cores", "State partitions.", "Spark", "-p"),
    ] = None,
    driver_memory: Annotated[
        str | None,
        _setting("--driver-memory", "SIZE", "2GiB", "Memory of Spark's driver.", "Spark"),
    ] = None,
    profile: Annotated[
        str | None,
        _setting(
            "--profile",
            "NAME",
            "none",
            "A profile of headgate.toml: memory, master, log level.",
            "Spark",
        ),
    ] = None,
    print_rows: Annotated[
        bool, typer.Option("--print", help="Show the first rows of each output and batch too.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show Spark's log on the terminal too.")
    ] = False,
    home: Home = DEFAULT_HOME,
    server: Server = None,
    token_file: TokenFile = None,
    as_json: Json = False,
) -> None:
    _exclude({"--fresh": fresh, "--from": restore_from, "--at": restore_at})
    _exclude({"--fresh": fresh, "--open-batch": open_batch})
    _exclude({"--from": restore_from, "--at": restore_at, "--open-batch": open_batch})
    _exclude({"--watch": watch, "--detach": detach})
    _exclude({"--ui": ui or ui_port is not None, "--detach": detach})
    settings: dict[str, Any] = {
        "on": on,
        "parallelism": parallelism,
        "batch-every": batch_every,
        "min-pause": min_pause,
        "max-batch": max_batch,
        "max-record": max_record,
        "checkpoint-every": checkpoint_every,
        "retain": retain,
        "retain-for": retain_for,
        "on-cancel": on_cancel,
        "checkpoints": checkpoints,
        "restart": restart,
        "driver-memory": driver_memory,
        "delivery": delivery,
        "on-data-loss": on_data_loss,
        "profile": profile,
    }
    consent = Consent(open_batch=open_batch, allow_repeats=allow_repeats)
    remote = find_server(context, server, token_file)
    if remote is not None:
        refuse_with_server(context, *_HERE_ALONE)
        # Where this terminal's topics are is nothing to a server.
        given = settings if was_typed(context, "on") else {**settings, "on": None}
        started = remote.submit(
            flow,
            {name: _plain(value) for name, value in given.items() if value is not None},
            fresh=fresh,
            restore_from=restore_from,
            consent=consent,
        )
        show_started(remote, started, detach=detach, as_json=as_json)
        return
    options = resolve_options(
        flow,
        settings,
        RunOptions(
            home=home,
            until_caught_up=until_caught_up,
            fresh=fresh,
            restore_from=restore_from,
            restore_at=restore_at,
            drop_state=tuple(drop_state or ()),
            consent=consent,
            strict=strict,
            start=tuple(start or ()),
            print_rows=_ROWS_PRINTED if print_rows else 0,
            verbose=verbose,
        ),
    )
    if detach:
        show_detached(flow, options, as_json=as_json)
    elif ui or ui_port is not None:
        _run_shown(flow, options, port=ui_port, as_json=as_json, watch=watch)
    else:
        show_run(flow, options, as_json=as_json, watch=watch)


def _run_shown(
    flow: str, options: RunOptions, *, port: int | None, as_json: bool, watch: bool
) -> None:
    """Run a job with a server beside it that shows it, and ends with it."""
    from headgate.server.beside import serve_beside

    name = name_of_flow(flow)
    with serve_beside(options.home, name, on=options.on, port=port) as address:
        note(f"Job '{name}' is shown at {address}/jobs/{name}")
        show_run(flow, options, as_json=as_json, watch=watch)


def _plain(value: Any) -> Any:
    return value if isinstance(value, int) else str(value)


def _exclude(flags: dict[str, object]) -> None:
    given = [name for name, value in flags.items() if value]
    if len(given) > 1:
        raise typer.BadParameter(f"{' and '.join(given)} exclude each other")
