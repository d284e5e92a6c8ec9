"""The security of a local Pulsar broker: certificates, and a token for its clients."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import ssl
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
from headgate.brokers.pulsar_settings import Security

FORMAT = 1
_ROLE = "headgate"
_KEY = "token.key"
_TOKEN = "token"


@dataclass(frozen=True, slots=True)
class ClientAccess:
    """The settings for clients of a secured broker.

    Attributes:
        file: Settings with the Java client's names; the token is a reference to its file.
        ca: The certificate, as PEM, that signed the broker's certificate.
    """

    security: Security
    file: Path
    ca: Path
    token: Path

    def headers(self) -> dict[str, str]:
        """Return the headers of a request to the admin API."""
        return {"Authorization": f"Bearer {self.token.read_text(encoding='ascii')}"}

    def trust(self) -> ssl.SSLContext:
        """Return the authorities that a client trusts."""
        return ssl.create_default_context(cafile=str(self.ca))


def find_security(folder: Path) -> ClientAccess | None:
    """Return the settings for clients of a folder's broker, or None if they need none."""
    inner = folder / FOLDER
    try:
        content = json.loads((inner / "security.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    security = Security(
        role=content["role"],
        keystore=f"{FOLDER}/{KEYSTORE}",
        keystore_password=content["keystore_password"],
        ca=f"{FOLDER}/{AUTHORITY}",
        key=(inner / _KEY).as_uri(),
        token=(inner / _TOKEN).as_uri(),
    )
    return ClientAccess(security, inner / "client.properties", inner / AUTHORITY, inner / _TOKEN)


def make_security(folder: Path) -> ClientAccess:
    """Create certificates for 127.0.0.1 and localhost, and a token; all of it or nothing."""
    key, keystore_password = secrets.token_bytes(32), secrets.token_hex(16)
    content = {"format": FORMAT, "role": _ROLE, "keystore_password": keystore_password}
    with making_security(folder) as making:
        make_certificates(making, keystore_password)
        write_secret(making / _KEY, key)
        write_secret(making / _TOKEN, sign_token(key, _ROLE).encode())
        write_secret(making / "client.properties", _client_properties(folder / FOLDER).encode())
        write_secret(making / "security.json", f"{json.dumps(content, indent=2)}\n".encode())
    made = find_security(folder)
    assert made is not None
    return made


def sign_token(key: bytes, role: str) -> str:
    """Return a JSON web token that identifies its bearer; it does not expire."""
    head, body = _encode(b'{"alg":"HS256"}'), _encode(json.dumps({"sub": role}).encode())
    said = f"{head}.{body}"
    return f"{said}.{_encode(hmac.digest(key, said.encode(), hashlib.sha256))}"


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _client_properties(folder: Path) -> str:
    return f"token=${{file:{folder / _TOKEN}}}\ntlsTrustCertsFilePath={folder / AUTHORITY}\n"
