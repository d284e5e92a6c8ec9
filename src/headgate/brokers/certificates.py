"""Certificates and a password for a secured local broker, made with the JDK's own keytool."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from headgate._artifacts import get_java
from headgate.brokers.kafka_settings import Security
from headgate.errors import Domain, HeadgateError

FORMAT = 1
FOLDER = "secure"
_USER = "headgate"
_DAYS = "3650"
_NAMES = "san=dns:localhost,ip:127.0.0.1"


@dataclass(frozen=True, slots=True)
class ClientAccess:
    """What a client needs to reach a secured broker.

    Attributes:
        file: Settings in the Java client's terms, with the password in it; for its owner alone.
        ca: The certificate, as PEM, that the broker's own is signed with.
    """

    security: Security
    file: Path
    ca: Path


def find_security(folder: Path) -> ClientAccess | None:
    """Return what clients of a folder's broker need, or None where they need nothing."""
    inner = folder / FOLDER
    try:
        content = json.loads((inner / "security.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    keystore = f"{FOLDER}/broker.p12"
    security = Security(
        content["user"], content["password"], keystore, content["keystore_password"]
    )
    return ClientAccess(security, inner / "client.properties", inner / "ca.pem")


def make_security(folder: Path) -> ClientAccess:
    """Make certificates for 127.0.0.1 and localhost, and a user; they are there whole or not.

    The key that signed them is thrown away, so that nothing else can be signed with it.
    """
    making = folder / f".{FOLDER}.making"
    # What an earlier try left; whoever makes a broker is alone in its folder.
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(mode=0o700)
    password = secrets.token_urlsafe(18)
    # Letters and digits: it goes through the settings files of several programs.
    keystore_password = secrets.token_hex(16)
    _make_certificates(making, keystore_password)
    _write(making / "client.properties", _client_properties(folder / FOLDER, password))
    content = {"format": FORMAT, "user": _USER, "password": password}
    content["keystore_password"] = keystore_password
    _write(making / "security.json", json.dumps(content, indent=2) + "\n")
    making.rename(folder / FOLDER)
    made = find_security(folder)
    assert made is not None
    return made


def _client_properties(folder: Path, password: str) -> str:
    return (
        "security.protocol=SASL_SSL\n"
        "sasl.mechanism=SCRAM-SHA-256\n"
        f"sasl.username={_USER}\n"
        f"sasl.password={password}\n"
        f"ssl.ca.location={folder / 'ca.pem'}\n"
    )


def _make_certificates(folder: Path, password: str) -> None:
    """Make ca.pem and broker.p12 in a folder."""
    ca, broker = folder / "ca.p12", folder / "broker.p12"
    key = ["-genkeypair", "-keyalg", "RSA", "-keysize", "2048", "-validity", _DAYS]
    _keytool(ca, password, *key, "-alias", "ca", "-dname", "CN=Headgate local CA", "-ext", "bc:c")
    _keytool(broker, password, *key, "-alias", "broker", "-dname", "CN=localhost", "-ext", _NAMES)
    request, signed, authority = folder / "broker.csr", folder / "broker.pem", folder / "ca.pem"
    _keytool(broker, password, "-certreq", "-alias", "broker", "-file", str(request))
    sign = ["-gencert", "-alias", "ca", "-rfc", "-validity", _DAYS, "-ext", _NAMES]
    _keytool(ca, password, *sign, "-infile", str(request), "-outfile", str(signed))
    _keytool(ca, password, "-exportcert", "-alias", "ca", "-rfc", "-file", str(authority))
    take = ["-importcert", "-noprompt"]
    _keytool(broker, password, *take, "-alias", "ca", "-file", str(authority))
    _keytool(broker, password, *take, "-alias", "broker", "-file", str(signed))
    for file in (ca, request, signed):
        file.unlink()


def _keytool(store: Path, password: str, *words: str) -> None:
    keytool = Path(get_java("make certificates")).with_name("keytool")
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
            f"cannot make certificates: keytool says {said[-1] if said else 'nothing'}",
            hint="set JAVA_HOME to a JDK 17 or newer; it brings keytool",
            domain=Domain.EXTERNAL,
        )


def _write(file: Path, text: str) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as sink:
        sink.write(text)
