"""The settings of a local Pulsar broker.

Paths are relative to the broker's folder, the working directory of its process: a comma in an
absolute path would split it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headgate.brokers import broker
from headgate.brokers.broker import HOST, properties
from headgate.brokers.security import (
    AUTHORITY,
    CLIENT,
    FOLDER,
    KEYSTORE,
    find_secrets,
    make_security,
)

DATA = "pulsar"
METADATA = f"{DATA}/metadata"
LEDGERS = f"{DATA}/ledgers"
TOKEN = f"{FOLDER}/token"
_KEY = f"{FOLDER}/token.key"

# A single broker has no replicas, and a small heap.
_ALONE = {
    "clusterName": "standalone",
    "bindAddress": HOST,
    "advertisedAddress": HOST,
    "loadManagerClassName": "org.apache.pulsar.broker.loadbalance.NoopLoadManager",
    "loadBalancerEnabled": "false",
    "webSocketServiceEnabled": "false",
    "managedLedgerDefaultEnsembleSize": "1",
    "managedLedgerDefaultWriteQuorum": "1",
    "managedLedgerDefaultAckQuorum": "1",
    "numIOThreads": "4",
    "numHttpServerThreads": "8",
    "bookkeeperUseV2WireProtocol": "true",
    # Otherwise a slow storage is avoided for half an hour, and there is no other.
    "bookkeeperClientHealthCheckEnabled": "false",
}
# Topics are created and deleted explicitly; by default a topic without readers is deleted after a
# minute, and a record with its ledger.
_TOPICS = {
    "allowAutoTopicCreation": "false",
    "brokerDeleteInactiveTopicsEnabled": "false",
    "topicLevelPoliciesEnabled": "true",
    "systemTopicEnabled": "true",
    "defaultRetentionTimeInMinutes": str(7 * 24 * 60),
    "defaultRetentionSizeInMB": "-1",
    # Unread records never make the broker refuse new ones.
    "backlogQuotaDefaultLimitGB": "-1",
    "forceDeleteNamespaceAllowed": "true",
    "forceDeleteTenantAllowed": "true",
}
# Records are in the journal before they are acknowledged. They survive the process, and an
# acknowledgement does not wait for the disk: nothing here survives the machine.
_STORAGE = {
    "ledgerStorageClass": "org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage",
    "allowLoopback": "true",
    "allowEphemeralPorts": "true",
    "journalSyncData": "false",
    "journalWriteData": "true",
    "journalMaxSizeMB": "64",
    "journalMaxBackups": "0",
    "journalPreAllocSizeMB": "4",
    # A message of the broker's maximum size (5 MiB), and the overhead of its storage.
    "nettyMaxFrameSizeBytes": "5253120",
    "logSizeLimit": str(256 * 1024**2),
    "gcWaitTime": "60000",
    "flushInterval": "10000",
    "dbStorage_writeCacheMaxSizeMb": "32",
    "dbStorage_readAheadCacheMaxSizeMb": "16",
    "dbStorage_rocksDB_blockCacheSize": str(8 * 1024**2),
    # The user judges whether the disk is full enough to stop; a bookie would refuse records.
    "diskUsageThreshold": "0.99",
    "diskUsageWarnThreshold": "0.99",
}

LOG4J = f"""\
{broker.LOG4J}\
# Each request, each change of the metadata, and all settings with their passwords.
logger.requests.name = org.eclipse.jetty.server.RequestLog
logger.requests.level = warn
logger.metadata.name = org.apache.pulsar.metadata.impl.AbstractMetadataStore
logger.metadata.level = warn
logger.settings.name = org.apache.bookkeeper.proto.BookieServer
logger.settings.level = warn
"""


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of a broker, all on the loopback.

    Attributes:
        clients: Pulsar's own protocol.
        admin: HTTP, or HTTPS if it is secured.
        bookie: The port of its storage, which is in the same process.
    """

    clients: int
    admin: int
    bookie: int


@dataclass(frozen=True, slots=True)
class Security:
    """The requirements of a secured broker: TLS, and a token.

    Attributes:
        folder: The broker's folder.
        role: The client's role in the token; may do everything.
        keystore_password: The password of the broker's key and certificate.
    """

    folder: Path
    role: str
    keystore_password: str

    def headers(self) -> dict[str, str]:
        """Return the headers of a request to the admin API."""
        token = (self.folder / TOKEN).read_text(encoding="ascii")
        return {"Authorization": f"Bearer {token}"}

    def trust(self) -> ssl.SSLContext:
        """Return the authorities that a client trusts."""
        return ssl.create_default_context(cafile=str(self.folder / AUTHORITY))


def find_security(folder: Path) -> Security | None:
    """Return the security of a folder's broker; None for an open broker."""
    known = find_secrets(folder)
    return None if known is None else Security(folder, known["role"], known["keystore_password"])


def secure(folder: Path) -> None:
    """Create certificates, and a token for clients."""
    key, role = secrets.token_bytes(32), "headgate"
    client = {
        "token": f"${{file:{folder / TOKEN}}}",
        "tlsTrustCertsFilePath": str(folder / AUTHORITY),
    }
    files = {
        _KEY: key,
        TOKEN: sign_token(key, role).encode(),
        CLIENT: properties(client).encode(),
    }
    make_security(folder, {"role": role}, files)


def sign_token(key: bytes, role: str) -> str:
    """Return a JSON web token that identifies its bearer; it does not expire."""
    head, body = _encode(b'{"alg":"HS256"}'), _encode(json.dumps({"sub": role}).encode())
    signed = f"{head}.{body}"
    return f"{signed}.{_encode(hmac.digest(key, signed.encode(), hashlib.sha256))}"


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def standalone_conf(
    ports: Ports, *, settings: Mapping[str, str], security: Security | None = None
) -> str:
    """Return the broker's settings file: broker and storage in one process.

    Args:
        settings: The user's settings; they override the others.
    """
    return properties(
        {
            **(_plain(ports) if security is None else _secured(ports, security)),
            **_ALONE,
            **_TOPICS,
            **_STORAGE,
            "listeningInterface": _loopback(),
            **settings,
        }
    )


def _plain(ports: Ports) -> dict[str, str]:
    return {"brokerServicePort": str(ports.clients), "webServicePort": str(ports.admin)}


def _secured(ports: Ports, security: Security) -> dict[str, str]:
    token = "org.apache.pulsar.client.impl.auth.AuthenticationToken"
    return {
        "brokerServicePort": "",
        "webServicePort": "",
        "brokerServicePortTls": str(ports.clients),
        "webServicePortTls": str(ports.admin),
        "tlsEnabledWithKeyStore": "true",
        "tlsKeyStoreType": "PKCS12",
        "tlsKeyStore": KEYSTORE,
        "tlsKeyStorePassword": security.keystore_password,
        "webServiceTlsProvider": "",
        "authenticationEnabled": "true",
        "authenticationProviders": (
            "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
        ),
        "tokenSecretKey": (security.folder / _KEY).as_uri(),
        "authorizationEnabled": "true",
        "superUserRoles": security.role,
        # The broker is its own client too.
        "brokerClientTlsEnabled": "true",
        "brokerClientTrustCertsFilePath": AUTHORITY,
        "brokerClientAuthenticationPlugin": token,
        "brokerClientAuthenticationParameters": (security.folder / TOKEN).as_uri(),
    }


def _loopback() -> str:
    """Return the name of the loopback interface: lo, or lo0."""
    names = [name for _, name in socket.if_nameindex()]
    return next((name for name in names if name.startswith("lo")), "lo")
