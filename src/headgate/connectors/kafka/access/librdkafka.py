"""Options of the Java client, translated for librdkafka and its Python clients."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from pathlib import Path

from headgate._references import resolve
from headgate.connectors.broker.properties import read_properties
from headgate.connectors.kafka.descriptor import KafkaLog, bad_option
from headgate.connectors.kafka.jaas import parse_jaas

# librdkafka has no counterpart, or another meaning, and works without them.
_LEFT_OUT = frozenset(
    {
        "auto.offset.reset",
        "bootstrap.servers",
        "partition.assignment.strategy",
        "sasl.login.callback.handler.class",
        "ssl.cipher.suites",
        "ssl.enabled.protocols",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
        "transactional.id",
    }
)
_RENAMED = {
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "sasl.mechanism": "sasl.mechanisms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
}
_PASSWORD_LOGINS = frozenset({"PlainLoginModule", "ScramLoginModule"})
_TOKEN_LOGIN = "OAuthBearerLoginModule"


class Role(enum.StrEnum):
    """The kinds of clients; each is also the prefix of its own options."""

    ADMIN = "admin"
    CONSUMER = "consumer"
    PRODUCER = "producer"


def read_settings(
    log: KafkaLog, role: Role, *, environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the configuration of librdkafka: the file's options, overridden by the client's own.

    The result holds secrets: use it only to create a client, never store or print it.

    Args:
        environment: The variables for references; by default this process's.

    Raises:
        HeadgateError: CLIENT_CONFIG_UNREADABLE, SECRET_NOT_FOUND, BAD_CLIENT_OPTION.
    """
    file = {} if log.config is None else read_properties(Path(log.config), broker="Kafka")
    chosen = {**_for_role(file, role), **_for_role(dict(log.options), role)}
    resolved = {
        name: resolve(name, value, environment=environment) for name, value in chosen.items()
    }
    return {**translate(resolved), "bootstrap.servers": log.servers}


def translate(options: Mapping[str, str]) -> dict[str, str]:
    """Return the Java client's options as librdkafka's; unknown names are unchanged.

    Raises:
        HeadgateError: BAD_CLIENT_OPTION: librdkafka does not support an option.
    """
    left = {name: value for name, value in options.items() if name not in _LEFT_OUT}
    login = _login(left.pop("sasl.jaas.config", None), left)
    trust, key = _truststore(left), _keystore(left)
    if "ssl.endpoint.identification.algorithm" in left:
        checked = left.pop("ssl.endpoint.identification.algorithm").strip()
        trust["ssl.endpoint.identification.algorithm"] = checked or "none"
    renamed = {_RENAMED.get(name, name): value for name, value in left.items()}
    # As in jobs: a JAAS login overrides its parts, a trust store overrides a CA file.
    return {**renamed, **login, **trust, **key}


def _for_role(options: Mapping[str, str], role: Role) -> dict[str, str]:
    prefixes = {other: f"{other.value}." for other in Role}
    general = {
        name: value
        for name, value in options.items()
        if not name.startswith(tuple(prefixes.values()))
    }
    own = prefixes[role]
    special = {
        name.removeprefix(own): value for name, value in options.items() if name.startswith(own)
    }
    return {**general, **special}


def _login(jaas: str | None, options: Mapping[str, str]) -> dict[str, str]:
    if not jaas:
        return {}
    login = parse_jaas(jaas)
    if login is not None and login.module in _PASSWORD_LOGINS:
        return _named(login.options, {"username": "sasl.username", "password": "sasl.password"})
    if login is not None and login.module == _TOKEN_LOGIN:
        endpoint = "sasl.oauthbearer.token.endpoint.url"
        names = {name: f"sasl.oauthbearer.{_dotted(name)}" for name in login.options}
        known = {"clientId", "clientSecret", "scope"} & set(names)
        method = {"sasl.oauthbearer.method": "oidc"} if endpoint in options else {}
        return {**_named(login.options, {name: names[name] for name in known}), **method}
    module = "no login module" if login is None else login.module
    raise bad_option(
        "sasl.jaas.config",
        f"it names {module}, and the commands on topics support PLAIN, SCRAM and OAUTHBEARER only",
        "use sasl.mechanism=SCRAM-SHA-512 with sasl.username and sasl.password",
    )


def _named(options: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    return {new: options[old] for old, new in names.items() if old in options}


def _dotted(name: str) -> str:
    return "".join(f".{letter.lower()}" if letter.isupper() else letter for letter in name)


def _truststore(options: dict[str, str]) -> dict[str, str]:
    kind = options.pop("ssl.truststore.type", "JKS").upper()
    options.pop("ssl.truststore.password", None)
    location = options.pop("ssl.truststore.location", None)
    if location is None:
        return {}
    if kind != "PEM" and "ssl.ca.location" in options:
        return {}
    if kind != "PEM":
        raise bad_option(
            "ssl.truststore.location",
            f"{location} is of type {kind}, and the commands on topics support PEM only",
            f"keytool -exportcert -rfc -keystore {location} -alias ALIAS -file ca.pem, then use "
            "ssl.ca.location=ca.pem",
        )
    return {"ssl.ca.location": location}


def _keystore(options: dict[str, str]) -> dict[str, str]:
    kind = options.pop("ssl.keystore.type", "JKS").upper()
    location = options.get("ssl.keystore.location")
    if location is None or kind == "PKCS12":
        return {}
    if kind != "PEM":
        raise bad_option(
            "ssl.keystore.location",
            f"{location} is of type {kind}, and the commands on topics support PEM and PKCS12 only",
            f"keytool -importkeystore -srckeystore {location} -destkeystore client.p12 "
            "-deststoretype PKCS12, then use ssl.keystore.location=client.p12 and "
            "ssl.keystore.type=PKCS12",
        )
    del options["ssl.keystore.location"]
    options.pop("ssl.keystore.password", None)
    return {"ssl.certificate.location": location, "ssl.key.location": location}
