"""A local PostgreSQL server.

DIR/, beside the files of every broker (`lifecycle`):
  postgres/   its databases, in PostgreSQL's own form
  secure/     the password of its user, and the settings of clients, if it is secured

It listens on 127.0.0.1 alone, and has the user `headgate` and the database `postgres`. PostgreSQL
refuses to run as root: root's server runs as the user nobody.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from headgate._clock import Clock
from headgate._disk import replace_file
from headgate.brokers import lifecycle
from headgate.brokers.broker import HOST, find_ports
from headgate.brokers.postgres.distribution import get_distribution
from headgate.brokers.security import CLIENT, FOLDER, find_client
from headgate.errors import Domain, HeadgateError

DEFAULT_PORT = 5432
USER = "headgate"
DATABASE = "postgres"
DATA = "postgres"
PASSWORD = f"{FOLDER}/password"
_ANSWERS_WITHIN = timedelta(seconds=2)
# Who runs root's server.
_SERVANT = "nobody"
# Root's folders may be closed to others: the server may pass them nevertheless.
_PASSES = "+dac_override,+dac_read_search"


class _Postgres:
    """The PostgreSQL part of a server's lifecycle."""

    kind = "postgres"
    name = "PostgreSQL"
    data = DATA
    # Clients are disconnected; at SIGTERM the server would wait until they leave.
    stop_signal = signal.SIGINT

    def url(self, folder: Path, facts: lifecycle.Facts) -> str:  # noqa: ARG002
        return f"postgresql://{USER}@{lifecycle.address_of(facts)}/{DATABASE}"

    def is_serving(self, folder: Path, facts: lifecycle.Facts) -> bool:
        import psycopg

        password = find_password(folder)
        try:
            with psycopg.connect(
                host=HOST,
                port=int(facts["port"]),
                user=USER,
                dbname=DATABASE,
                password=password,
                connect_timeout=round(_ANSWERS_WITHIN.total_seconds()),
            ):
                return True
        except psycopg.OperationalError:
            return False

    def is_stuck(self, folder: Path, clock: Clock) -> bool:  # noqa: ARG002
        return False

    def prepare(self, start: lifecycle.Start) -> tuple[list[str], lifecycle.Facts]:
        folder, options = start.folder, start.options
        usual = int(start.last.get("port", DEFAULT_PORT))
        port = lifecycle.choose_port(self, options, usual, find_ports(HOST, 1)[0])
        programs = get_distribution(progress=start.progress)
        if not (folder / DATA).is_dir():
            start.progress("creating the server's folder")
            if options.secure:
                _make_password(folder)
            self._create(folder, programs)
        command = [str(programs / "bin" / "postgres"), "-D", str(folder / DATA)]
        settings = {
            "port": str(port),
            "listen_addresses": HOST,
            # Its clients are on this machine, and reach it by its port.
            "unix_socket_directories": "",
            **options.settings,
        }
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        return _as_servant(command), {"port": port}

    def _create(self, folder: Path, programs: Path) -> None:
        """Create the folder of databases, named when it is complete."""
        making = folder / f".{DATA}.making"
        # Left by an earlier try; no other process uses the folder now.
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(mode=0o700)
        if os.geteuid() == 0:
            servant = pwd.getpwnam(_SERVANT)
            os.chown(making, servant.pw_uid, servant.pw_gid)
        password = folder / PASSWORD
        login = ["--auth=trust"]
        if password.is_file():
            login = ["--auth=scram-sha-256", f"--pwfile={password}"]
        command = [str(programs / "bin" / "initdb"), "-D", str(making), "-U", USER, *login]
        command += ["--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
        done = subprocess.run(
            _as_servant(command), cwd=folder, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            said = done.stderr or done.stdout
            raise lifecycle.not_started(self, folder, "its folder cannot be created", said)
        making.rename(folder / DATA)


POSTGRES = _Postgres()


def find_password(folder: Path) -> str | None:
    """Return the password of a secured server; None for an open one."""
    try:
        return (folder / PASSWORD).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None


def _make_password(folder: Path) -> None:
    if find_client(folder) is not None:
        return
    (folder / FOLDER).mkdir(mode=0o700, exist_ok=True)
    replace_file(folder / PASSWORD, f"{secrets.token_hex(16)}\n", mode=0o600)
    client = f"user={USER}\npassword=${{file:{folder / PASSWORD}}}\n"
    replace_file(folder / CLIENT, client, mode=0o600)


def _as_servant(command: Sequence[str]) -> list[str]:
    """Return the command, as an unprivileged user if this user is root."""
    if os.geteuid() != 0:
        return list(command)
    tool = shutil.which("setpriv")
    if tool is None:
        raise HeadgateError(
            "BROKER_NOT_STARTED",
            "cannot start PostgreSQL as root: it refuses that, and the program setpriv, which "
            "starts it as another user, was not found",
            hint="apt install util-linux, or run this as another user",
            domain=Domain.EXTERNAL,
        )
    servant = pwd.getpwnam(_SERVANT)
    user = ["--reuid", str(servant.pw_uid), "--regid", str(servant.pw_gid), "--clear-groups"]
    return [tool, *user, "--inh-caps", _PASSES, "--ambient-caps", _PASSES, *command]
