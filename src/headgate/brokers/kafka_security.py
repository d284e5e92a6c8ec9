"""The security of a local Kafka broker: certificates, and a user with a password."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from headgate.brokers.certificates import (
    AUTHORITY,
    FOLDER,
    KEYSTORE,
    make_certificates,
    making_security,
    write_secret,
)
from headgate.brokers.kafka_settings import Security

FORMAT = 1
_USER = "headgate"


@dataclass(frozen=True, slots=True)
class ClientAccess:
    """The settings for clients of a secured broker.

    Attributes:
        file: Settings with the Java client's names, including the password; readable by its owner
            only.
        ca: The certificate, as PEM, that signed the broker's certificate.
    """

    security: Security
    file: Path
    ca: Path


def find_security(folder: Path) -> ClientAccess | None:
    """Return the settings for clients of a folder's broker, or None if they need none."""
    inner = folder / FOLDER
    try:
        content = json.loads((inner / "security.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    keystore = f"{FOLDER}/{KEYSTORE}"
    security = Security(
        content["user"], content["password"], keystore, content["keystore_password"]
    )
    return ClientAccess(security, inner / "client.properties", inner / AUTHORITY)


def make_security(folder: Path) -> ClientAccess:
    """Create certificates for 127.0.0.1 and localhost, and a user; all of it or nothing."""
    password = secrets.token_urlsafe(18)
    # Letters and digits, which need no escaping in the settings files of other programs.
    keystore_password = secrets.token_hex(16)
    content = {"format": FORMAT, "user": _USER, "password": password}
    content["keystore_password"] = keystore_password
    with making_security(folder) as making:
        make_certificates(making, keystore_password)
        client = _client_properties(folder / FOLDER, password)
        write_secret(making / "client.properties", client.encode())
        write_secret(making / "security.json", f"{json.dumps(content, indent=2)}\n".encode())
    made = find_security(folder)
    assert made is not None
    return made


def _client_properties(folder: Path, password: str) -> str:
    return (
        "security.protocol=SASL_SSL\n"
        "sasl.mechanism=SCRAM-SHA-256\n"
        f"sasl.username={_USER}\n"
        f"sasl.password={password}\n"
        f"ssl.ca.location={folder / AUTHORITY}\n"
    )
