"""From the Java client's options to those of librdkafka, which Python's clients are made of."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from pathlib import Path

from headgate.connectors.kafka.client import ClientSpec, bad_option
from headgate.connectors.kafka.jaas import parse_jaas
from headgate.connectors.properties import read_properties
from headgate.connectors.references import resolve

# Java's value means nothing to librdkafka, or something else, and it does well without.
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
    """The kinds of clients; each is a prefix of options that are for it alone."""

    ADMIN = "admin"
    CONSUMER = "consumer"
    PRODUCER = "producer"


def read_settings(
    client: ClientSpec, role: Role, *, environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return what librdkafka is to be told: the file's options and the client's own over them.

    The result holds secrets: it is for the making of a client, and neither kept nor shown.

    Args:
        environment: Where references look; this process's, if left out.

    Raises:
        HeadgateError: CLIENT_CONFIG_UNREADABLE, SECRET_NOT_FOUND, BAD_CLIENT_OPTION.
    """
    file = {} if client.config is None else read_properties(Path(client.config), broker="Kafka")
    chosen = {**_for_role(file, role), **_for_role(dict(client.options), role)}
    resolved = {
        name: resolve(name, value, environment=environment) for name, value in chosen.items()
    }
    return {**translate(resolved), "bootstrap.servers": client.servers}


def translate(options: Mapping[str, str]) -> dict[str, str]:
    """Return the Java client's options as librdkafka's; names it may not know stay as they are.

    Raises:
        HeadgateError: BAD_CLIENT_OPTION: librdkafka cannot do what an option asks for.
    """
    left = {name: value for name, value in options.items() if name not in _LEFT_OUT}
    login = _login(left.pop("sasl.jaas.config", None), left)
    trust, key = _truststore(left), _keystore(left)
    if "ssl.endpoint.identification.algorithm" in left:
        checked = left.pop("ssl.endpoint.identification.algorithm").strip()
        trust["ssl.endpoint.identification.algorithm"] = checked or "none"
    renamed = {_RENAMED.get(name, name): value for name, value in left.items()}
    # As in jobs: a whole login wins over its parts, a store over a file of authorities.
    return {**renamed, **login, **trust, **key}


def _for_role(options: Mapping[str, str], role: Role) -> dict[str, str]:
    prefixes = {each: f"{each.value}." for each in Role}
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
        f"it names {module}, and the verbs on topics log in with PLAIN, SCRAM and OAUTHBEARER",
        "use sasl.mechanism=SCRAM-SHA-512 with sasl.username and sasl.password",
    )


def _named(options: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    return {new: options[old] for old, new in names.items() if old in options}


def _dotted(name: str) -> str:
    return "".join(f".{each.lower()}" if each.isupper() else each for each in name)


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
            f"{location} is of type {kind}, and the verbs on topics read PEM",
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
            f"{location} is of type {kind}, and the verbs on topics read PEM and PKCS12",
            f"keytool -importkeystore -srckeystore {location} -destkeystore client.p12 "
            "-deststoretype PKCS12, then use ssl.keystore.location=client.p12 and "
            "ssl.keystore.type=PKCS12",
        )
    del options["ssl.keystore.location"]
    options.pop("ssl.keystore.password", None)
    return {"ssl.certificate.location": location, "ssl.key.location": location}
