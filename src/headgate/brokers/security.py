"""The security of a local broker: certificates, made with the JDK's keytool, and secrets.

DIR/secure/
  ca.pem              the certificate that signed the broker's own
  broker.p12          the broker's key and certificate
  client.properties   settings for clients, with the Java client's names
  security.json       the broker's secrets
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headgate._artifacts import get_java
from headgate.errors import Domain, HeadgateError

FORMAT = 1
FOLDER = "secure"
AUTHORITY = f"{FOLDER}/ca.pem"
KEYSTORE = f"{FOLDER}/broker.p12"
CLIENT = f"{FOLDER}/client.properties"
_SECRETS = f"{FOLDER}/security.json"
_DAYS = "3650"
_NAMES = "san=dns:localhost,ip:127.0.0.1"


def find_client(folder: Path) -> Path | None:
    """Return the settings file for clients of a folder's broker; None for an open broker."""
    file = folder / CLIENT
    return file if file.is_file() else None


def find_secrets(folder: Path) -> Any:
    """Return the secrets that `make_security` stored; None for an open broker."""
    try:
        return json.loads((folder / _SECRETS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def make_security(folder: Path, known: Mapping[str, str], files: Mapping[str, bytes]) -> None:
    """Create certificates for 127.0.0.1 and localhost, and further files; all of it or nothing.

    Args:
        known: The broker's own secrets.
        files: The content of further files, by their path; only the user can read them.
    """
    # Letters and digits, which need no escaping in the settings files of other programs.
    password = secrets.token_hex(16)
    content = {"format": FORMAT, **known, "keystore_password": password}
    # The folder gets its name when it is complete.
    making = folder / f".{FOLDER}.making"
    # Left by an earlier try; only one process creates a broker in a folder.
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(mode=0o700)
    _make_certificates(making, password)
    stored = {**files, _SECRETS: f"{json.dumps(content, indent=2)}\n".encode()}
    for path, data in stored.items():
        _write_secret(making / Path(path).name, data)
    making.rename(folder / FOLDER)


def _make_certificates(folder: Path, password: str) -> None:
    """Create the authority and the key store; the signing key is deleted afterwards."""
    ca, broker = folder / "ca.p12", folder / Path(KEYSTORE).name
    key = ["-genkeypair", "-keyalg", "RSA", "-keysize", "2048", "-validity", _DAYS]
    _keytool(ca, password, *key, "-alias", "ca", "-dname", "CN=Headgate local CA", "-ext", "bc:c")
    _keytool(broker, password, *key, "-alias", "broker", "-dname", "CN=localhost", "-ext", _NAMES)
    request, signed = folder / "broker.csr", folder / "broker.pem"
    authority = folder / Path(AUTHORITY).name
    _keytool(broker, password, "-certreq", "-alias", "broker", "-file", str(request))
    sign = ["-gencert", "-alias", "ca", "-rfc", "-validity", _DAYS, "-ext", _NAMES]
    _keytool(ca, password, *sign, "-infile", str(request), "-outfile", str(signed))
    _keytool(ca, password, "-exportcert", "-alias", "ca", "-rfc", "-file", str(authority))
    take = ["-importcert", "-noprompt"]
    _keytool(broker, password, *take, "-alias", "ca", "-file", str(authority))
    _keytool(broker, password, *take, "-alias", "broker", "-file", str(signed))
    for file in (ca, request, signed):
        file.unlink()


def _write_secret(file: Path, content: bytes) -> None:
    """Create a file that only its owner can read."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as sink:
        sink.write(content)


def _keytool(store: Path, password: str, *words: str) -> None:
    keytool = Path(get_java("create certificates")).with_name("keytool")
    command = [str(keytool), *words, "-keystore", str(store), "-storetype", "PKCS12"]
    done = subprocess.run(
        [*command, "-storepass:env", "HEADGATE_STORE"],
        env={**os.environ, "HEADGATE_STORE": password},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise HeadgateError(
            "CERTIFICATES_NOT_MADE",
            f"cannot create certificates: keytool reports {lines[-1] if lines else 'nothing'}",
            hint="set JAVA_HOME to a JDK 17 or newer, which includes keytool",
            domain=Domain.EXTERNAL,
        )
