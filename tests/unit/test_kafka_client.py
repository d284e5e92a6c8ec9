"""How Kafka is reached: servers, options, secrets by reference, and librdkafka's words for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate import HeadgateError
from headgate._references import is_secret, resolve
from headgate.connectors.broker.properties import parse_properties
from headgate.connectors.kafka.access.librdkafka import Role, read_settings, translate
from headgate.connectors.kafka.descriptor import KafkaLog
from headgate.connectors.kafka.jaas import parse_jaas

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("h", "h:9092"),
        ("h:1", "h:1"),
        ("a, b:9093", "a:9092,b:9093"),
        ("[::1]:9092", "[::1]:9092"),
        ("[::1]", "[::1]:9092"),
        ("broker_1.example.com:65535", "broker_1.example.com:65535"),
    ],
)
def test_servers_are_hosts_with_ports_and_9092_where_none_is_named(text: str, servers: str) -> None:
    assert KafkaLog.of(text).servers == servers
    assert KafkaLog.of(servers).servers == servers


@pytest.mark.parametrize("text", ["", "h:", "h:0", "h:65536", "h,,i", "h:x", "a b", "h:1/x", "::1"])
def test_anything_else_is_no_server(text: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        KafkaLog.of(text)
    assert caught.value.code == "BAD_SERVERS"


def test_a_password_before_the_servers_is_refused_and_not_repeated() -> None:
    with pytest.raises(HeadgateError) as caught:
        KafkaLog.of("me:hunter2@h:9092")
    assert caught.value.code == "BAD_SERVERS"
    assert "hunter2" not in str(caught.value)


def test_the_kernel_gets_references_and_the_file_from_the_root() -> None:
    spec = KafkaLog.of("h", {"sasl.password": "${env:P}", "linger.ms": 5}, "client.properties")
    assert json.loads(spec.to_text()) == {
        "servers": "h:9092",
        "options": {"linger.ms": "5", "sasl.password": "${env:P}"},
        "config": str(Path.cwd() / "client.properties"),
    }
    assert json.loads(KafkaLog.of("h").to_text())["config"] is None


def test_equal_descriptions_are_one_cluster_whatever_the_order_of_options() -> None:
    first = KafkaLog.of("h", {"a.b": "1", "c": True})
    second = KafkaLog.of("h:9092", {"c": "true", "a.b": 1})
    assert first == second
    assert hash(first) == hash(second)
    assert first.to_text() == second.to_text()
    assert first != KafkaLog.of("h", {"a.b": "1"})


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"bootstrap.servers": "h"}, "BAD_CLIENT_OPTION"),
        ({"a b": "1"}, "BAD_CLIENT_OPTION"),
        ({"a": None}, "BAD_CLIENT_OPTION"),
        ({"a": ["1"]}, "BAD_CLIENT_OPTION"),
        ({"sasl.password": "hunter2"}, "SECRET_IN_PLAIN"),
        ({"consumer.sasl.password": "hunter2"}, "SECRET_IN_PLAIN"),
        ({"SSL.Key.Password": "hunter2"}, "SECRET_IN_PLAIN"),
        ({"ssl.keystore.key": "hunter2"}, "SECRET_IN_PLAIN"),
        ({"sasl.oauthbearer.client.secret": "hunter2"}, "SECRET_IN_PLAIN"),
        ({"sasl.jaas.config": "hunter2"}, "SECRET_IN_PLAIN"),
        (
            {"sasl.jaas.config": f'{SCRAM} required username="${{env:U}}" password="hunter2";'},
            "SECRET_IN_PLAIN",
        ),
    ],
)
def test_an_option_that_cannot_be_kept_is_refused_without_its_value(
    options: dict[str, object], code: str
) -> None:
    with pytest.raises(HeadgateError) as caught:
        KafkaLog.of("h", options)
    assert caught.value.code == code
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sasl.password", "${env:P}"),
        ("sasl.password", "${file:/run/secrets/p}"),
        ("sasl.password", "prefix-${env:P}"),
        ("sasl.jaas.config", "${file:/etc/kafka/jaas}"),
        ("sasl.jaas.config", f'{SCRAM} required username="me" password="${{env:P}}";'),
        ("ssl.keystore.location", "/etc/kafka/client.pem"),
        ("ssl.keystore.type", "PEM"),
        ("sasl.oauthbearer.token.endpoint.url", "https://login.example.com"),
        ("ssl.key.password", ""),
        ("sasl.username", "me"),
    ],
)
def test_a_reference_and_what_is_no_secret_are_kept_as_they_are(name: str, value: str) -> None:
    assert KafkaLog.of("h", {name: value}).options == ((name, value),)


def test_references_are_resolved_inside_a_value(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("  from file\n")
    text = f"a ${{env:A}} b ${{file:{tmp_path / 'secret'}}} ${{other:x}}"
    assert resolve("x", text, environment={"A": "one"}) == "a one b from file ${other:x}"


@pytest.mark.parametrize("reference", ["${env:NOT_THERE}", "${file:/not/there}"])
def test_a_reference_that_leads_nowhere_is_told_by_name(reference: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        resolve("sasl.password", reference, environment={})
    assert caught.value.code == "SECRET_NOT_FOUND"
    assert reference in caught.value.message


def test_a_properties_file_is_read_as_java_reads_it() -> None:
    text = r"""
# a comment
! another
plain=value
  spaced = a value
colon: b
blank c d
escaped\ name=\u0041\tx\\
long=one,\
     two,\
     three
empty=
plain=last
"""
    assert parse_properties(text) == {
        "plain": "last",
        "spaced": "a value",
        "colon": "b",
        "blank": "c d",
        "escaped name": "A\tx\\",
        "long": "one,two,three",
        "empty": "",
    }


def test_a_line_of_jaas_is_a_module_and_its_options() -> None:
    login = parse_jaas(f"{SCRAM} required\n username=\"me\" password='p\\'w\"' tokenauth=true ;")
    assert login is not None
    assert login.module == "ScramLoginModule"
    assert login.options == {"username": "me", "password": "p'w\"", "tokenauth": "true"}
    assert parse_jaas("${file:/etc/jaas}") is None


@pytest.mark.parametrize(
    ("java", "librdkafka"),
    [
        ({"sasl.mechanism": "PLAIN"}, {"sasl.mechanisms": "PLAIN"}),
        (
            {"sasl.jaas.config": f'{SCRAM} required username="me" password="pw";'},
            {"sasl.username": "me", "sasl.password": "pw"},
        ),
        (
            {
                "sasl.jaas.config": f'{OAUTH} required clientId="c" clientSecret="s" scope="a";',
                "sasl.oauthbearer.token.endpoint.url": "https://t",
                "sasl.login.callback.handler.class": "org.example.Handler",
            },
            {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": "c",
                "sasl.oauthbearer.client.secret": "s",
                "sasl.oauthbearer.scope": "a",
                "sasl.oauthbearer.token.endpoint.url": "https://t",
            },
        ),
        (
            {"ssl.truststore.location": "/ca.pem", "ssl.truststore.type": "PEM"},
            {"ssl.ca.location": "/ca.pem"},
        ),
        (
            {"ssl.truststore.location": "/t.jks", "ssl.ca.location": "/ca.pem"},
            {"ssl.ca.location": "/ca.pem"},
        ),
        ({"ssl.truststore.certificates": "---"}, {"ssl.ca.pem": "---"}),
        (
            {"ssl.keystore.location": "/me.pem", "ssl.keystore.type": "pem"},
            {"ssl.certificate.location": "/me.pem", "ssl.key.location": "/me.pem"},
        ),
        (
            {"ssl.keystore.certificate.chain": "c", "ssl.keystore.key": "k"},
            {"ssl.certificate.pem": "c", "ssl.key.pem": "k"},
        ),
        (
            {
                "ssl.keystore.location": "/me.p12",
                "ssl.keystore.type": "PKCS12",
                "ssl.keystore.password": "p",
            },
            {"ssl.keystore.location": "/me.p12", "ssl.keystore.password": "p"},
        ),
        (
            {"ssl.endpoint.identification.algorithm": ""},
            {"ssl.endpoint.identification.algorithm": "none"},
        ),
        ({"ssl.endpoint.identification.algorithm": "https"},) * 2,
        ({"linger.ms": "5", "buffer.memory": "1"},) * 2,
        ({"auto.offset.reset": "none", "transactional.id": "t"}, {}),
    ],
)
def test_javas_options_are_said_in_librdkafkas_words(
    java: dict[str, str], librdkafka: dict[str, str]
) -> None:
    assert translate(java) == librdkafka


@pytest.mark.parametrize(
    ("java", "hint"),
    [
        ({"ssl.truststore.location": "/t.jks"}, "ssl.ca.location=ca.pem"),
        ({"ssl.keystore.location": "/t.jks", "ssl.keystore.type": "JKS"}, "PKCS12"),
        ({"sasl.jaas.config": "com.sun.Krb5LoginModule required;"}, "SCRAM-SHA-512"),
    ],
)
def test_what_librdkafka_cannot_use_is_refused_with_what_it_can(
    java: dict[str, str], hint: str
) -> None:
    with pytest.raises(HeadgateError) as caught:
        translate(java)
    assert caught.value.code == "BAD_CLIENT_OPTION"
    assert hint in caught.value.hint


def test_options_win_over_the_file_and_prefixes_are_for_one_kind_of_client(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "bootstrap.servers=elsewhere:1\n"
        "linger.ms=1\nconsumer.linger.ms=2\nclient.id=${env:WHO}\nproducer.acks=all\n"
    )
    spec = KafkaLog.of("h", {"linger.ms": "3", "producer.linger.ms": "4"}, str(file))
    environment = {"WHO": "me"}
    common = {"bootstrap.servers": "h:9092", "client.id": "me"}
    assert read_settings(spec, Role.ADMIN, environment=environment) == {**common, "linger.ms": "3"}
    assert read_settings(spec, Role.CONSUMER, environment=environment) == {
        **common,
        "linger.ms": "3",
    }
    assert read_settings(spec, Role.PRODUCER, environment=environment) == {
        **common,
        "linger.ms": "4",
        "acks": "all",
    }


def test_a_file_that_cannot_be_read_is_named() -> None:
    with pytest.raises(HeadgateError) as caught:
        read_settings(KafkaLog.of("h", {}, "/not/there.properties"), Role.ADMIN)
    assert caught.value.code == "CLIENT_CONFIG_UNREADABLE"
    assert "/not/there.properties" in caught.value.message


@pytest.mark.parametrize(
    ("name", "secret"),
    [("sasl.password", True), ("ssl.key.pem", True), ("ssl.keystore.location", False)],
)
def test_names_tell_what_is_secret(name: str, secret: bool) -> None:
    assert is_secret(name) is secret
