"""What secures a local Pulsar broker: certificates, and a token for its clients."""

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
    """What a client needs to reach a secured broker.

    Attributes:
        file: Settings in the Java client's terms; the token in it is a reference to its file.
        ca: The certificate, as PEM, that the broker's own is signed with.
    """

    security: Security
    file: Path
    ca: Path
    token: Path

    def headers(self) -> dict[str, str]:
        """Return what a request to the administration carries."""
        return {"Authorization": f"Bearer {self.token.read_text(encoding='ascii')}"}

    def trust(self) -> ssl.SSLContext:
        """Return whom a client believes."""
        return ssl.create_default_context(cafile=str(self.ca))


def find_security(folder: Path) -> ClientAccess | None:
    """Return what clients of a folder's broker need, or None where they need nothing."""
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
    """Make certificates for 127.0.0.1 and localhost, and a token; they are there whole or not."""
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
    """Return a JSON web token that says who its bearer is; it is good for ever."""
    head, body = _encode(b'{"alg":"HS256"}'), _encode(json.dumps({"sub": role}).encode())
    said = f"{head}.{body}"
    return f"{said}.{_encode(hmac.digest(key, said.encode(), hashlib.sha256))}"


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _client_properties(folder: Path) -> str:
    return f"token=${{file:{folder / _TOKEN}}}\ntlsTrustCertsFilePath={folder / AUTHORITY}\n"
