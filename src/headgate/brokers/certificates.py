"""Certificates for a secured local broker, created with the JDK's keytool."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from headgate._artifacts import get_java
from headgate.errors import Domain, HeadgateError

FOLDER = "secure"
AUTHORITY = "ca.pem"
KEYSTORE = "broker.p12"
_DAYS = "3650"
_NAMES = "san=dns:localhost,ip:127.0.0.1"


@contextlib.contextmanager
def making_security(folder: Path) -> Iterator[Path]:
    """Open a folder for the security files of a broker; it gets its name when it is complete."""
    making = folder / f".{FOLDER}.making"
    # Left by an earlier try; only one process creates a broker in a folder.
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(mode=0o700)
    yield making
    making.rename(folder / FOLDER)


def make_certificates(folder: Path, password: str) -> None:
    """Create AUTHORITY and KEYSTORE in a folder, for 127.0.0.1 and localhost.

    The signing key is deleted, so that nothing else can be signed with it.
    """
    ca, broker = folder / "ca.p12", folder / KEYSTORE
    key = ["-genkeypair", "-keyalg", "RSA", "-keysize", "2048", "-validity", _DAYS]
    _keytool(ca, password, *key, "-alias", "ca", "-dname", "CN=Headgate local CA", "-ext", "bc:c")
    _keytool(broker, password, *key, "-alias", "broker", "-dname", "CN=localhost", "-ext", _NAMES)
    request, signed, authority = folder / "broker.csr", folder / "broker.pem", folder / AUTHORITY
    _keytool(broker, password, "-certreq", "-alias", "broker", "-file", str(request))
    sign = ["-gencert", "-alias", "ca", "-rfc", "-validity", _DAYS, "-ext", _NAMES]
    _keytool(ca, password, *sign, "-infile", str(request), "-outfile", str(signed))
    _keytool(ca, password, "-exportcert", "-alias", "ca", "-rfc", "-file", str(authority))
    take = ["-importcert", "-noprompt"]
    _keytool(broker, password, *take, "-alias", "ca", "-file", str(authority))
    _keytool(broker, password, *take, "-alias", "broker", "-file", str(signed))
    for file in (ca, request, signed):
        file.unlink()


def write_secret(file: Path, content: bytes) -> None:
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
        said = (done.stderr or done.stdout).strip().splitlines()
        raise HeadgateError(
            "CERTIFICATES_NOT_MADE",
            f"cannot create certificates: keytool reports {said[-1] if said else 'nothing'}",
            hint="set JAVA_HOME to a JDK 17 or newer, which includes keytool",
            domain=Domain.EXTERNAL,
        )
