"""`headgate cluster`: a real Spark cluster on this machine, to try jobs and for tests."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from headgate._codec import encode
from headgate._units import format_size, parse_size
from headgate.cli.parts.options import Json
from headgate.cli.parts.output import format_age, note, print_json, print_table, say, show
from headgate.jobs.sandbox.cluster import (
    FOLDER,
    ClusterOptions,
    ClusterState,
    LocalCluster,
    get_cluster_url,
    look_at_cluster,
    start_cluster,
    stop_cluster,
)

Folder: TypeAlias = Annotated[
    Path, typer.Option("--folder", metavar="DIR", help="The cluster's folder.", file_okay=False)
]


def cluster() -> None:
    """Start and stop a Spark cluster on this machine, to try jobs on one.

    It is a standalone cluster from the jars of PySpark: a master and some workers, each a process
    in the background, on 127.0.0.1 only.

    [bold]Examples[/bold]

      headgate cluster start --workers 2
      headgate cluster status
      headgate run flow.py --master $(headgate cluster url)
      headgate cluster stop
    """


def start(
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", min=1, help="Number of workers.")
    ] = 2,
    cores: Annotated[
        int, typer.Option("--cores", metavar="N", min=1, help="Cores of each worker.")
    ] = 1,
    memory: Annotated[
        str,
        typer.Option("--memory", metavar="SIZE", help="Memory of each worker for executors."),
    ] = "2GiB",
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="N",
            min=0,
            max=65535,
            help="Port of the master; by default the last one, or 7077; 0 takes a free port.",
        ),
    ] = None,
    folder: Folder = FOLDER,
    as_json: Json = False,
) -> None:
    """Start a cluster in the background, and return when all workers have registered.

    Processes that run are unchanged, and those that have ended are started again. The cluster
    outlives this terminal.

    [bold]Examples[/bold]

      headgate cluster start --workers 2 --cores 1 --memory 2g
      headgate cluster start --port 0 --folder /tmp/cluster
    """
    options = ClusterOptions(
        folder=folder, workers=workers, cores=cores, memory=parse_size(memory), port=port
    )
    found, started = start_cluster(options, progress=None if as_json else note)
    if as_json:
        print_json({**encode(found), "started": started})
        return
    say(f"the cluster {'is running' if started else 'is already running'} at {found.master}")
    _print_processes(found)
    say(f"\nheadgate run FLOW --master {found.master} runs a job on it")


def stop(folder: Folder = FOLDER, as_json: Json = False) -> None:
    """Stop a cluster, and wait until its processes have exited.

    Jobs on it lose their executors, and start again as their restart strategy says.

    [bold]Examples[/bold]

      headgate cluster stop
    """
    found, stopped = stop_cluster(folder)
    if as_json:
        print_json({**encode(found), "stopped": stopped})
    else:
        say(f"the cluster {'has stopped' if stopped else 'is not running'}")


def status(folder: Folder = FOLDER, as_json: Json = False) -> None:
    """Show the processes of a cluster, and the cores that are in use.

    [bold]Examples[/bold]

      headgate cluster status
      headgate cluster status --json
    """
    show(look_at_cluster(folder), lambda found: _print_status(found, folder), as_json=as_json)


def url(folder: Folder = FOLDER, as_json: Json = False) -> None:
    """Print the address of a cluster as a value for --master.

    [bold]Examples[/bold]

      headgate run flow.py --master $(headgate cluster url)
    """
    found = get_cluster_url(folder)
    show({"url": found}, lambda _: print(found), as_json=as_json)


def _print_status(found: LocalCluster, folder: Path) -> None:
    if found.state is ClusterState.STOPPED:
        say("the cluster is stopped")
        say(f"headgate cluster start{_option(folder)} starts it")
        return
    say(f"the cluster is {found.state.value} at {found.master}")
    say(
        f"  {found.cores_used} of {found.cores} cores in use, "
        f"{format_size(found.memory)} for executors, {len(found.applications)} drivers"
    )
    _print_processes(found)
    if found.state is ClusterState.INCOMPLETE:
        say(f"headgate cluster start{_option(folder)} starts the processes that have ended")


def _print_processes(found: LocalCluster) -> None:
    rows = [
        [
            process.name,
            "ended" if process.pid is None else str(process.pid),
            format_age(process.since),
            str(process.log),
        ]
        for process in found.processes
    ]
    print_table(["process", "pid", "since", "log"], rows)


def _option(folder: Path) -> str:
    return "" if folder == FOLDER else f" --folder {shlex.quote(str(folder))}"
