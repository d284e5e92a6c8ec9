"""How Pulsar is reached: service, admin API, options, secrets by reference, and logins."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from headgate import HeadgateError
from headgate.connectors.pulsar.access.clients import open_client
from headgate.connectors.pulsar.access.settings import read_settings
from headgate.connectors.pulsar.descriptor import PulsarLog, parse_admin, parse_service
from headgate.connectors.pulsar.login import Login

TOKEN = "org.apache.pulsar.client.impl.auth.AuthenticationToken"
BASIC = "org.apache.pulsar.client.impl.auth.AuthenticationBasic"
TLS = "org.apache.pulsar.client.impl.auth.AuthenticationTls"
OAUTH = "org.apache.pulsar.client.impl.auth.oauth2.AuthenticationOAuth2"
SERVICE = "pulsar://h:6650"


@pytest.mark.parametrize(
    ("text", "service", "admin"),
    [
        ("pulsar://h", "pulsar://h:6650", "http://h:8080"),
        ("pulsar://h:1/", "pulsar://h:1", "http://h:8080"),
        ("pulsar://a, b:2", "pulsar://a:6650,b:2", "http://a:8080"),
        ("pulsar+ssl://h", "pulsar+ssl://h:6651", "https://h:8443"),
        ("pulsar://[::1]:6650", "pulsar://[::1]:6650", "http://[::1]:8080"),
    ],
)
def test_a_service_has_ports_and_an_admin_api_beside_it(
    text: str, service: str, admin: str
) -> None:
    spec = PulsarLog.of(text)
    assert (spec.service, spec.admin) == (service, admin)
    assert parse_service(service) == service


@pytest.mark.parametrize(
    "text",
    [
        "",
        "h:6650",
        "kafka://h",
        "pulsar://",
        "pulsar://h:0",
        "pulsar://h,,i",
        "pulsar://a b",
        "::1",
    ],
)
def test_anything_else_is_no_service(text: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        parse_service(text)
    assert caught.value.code == "BAD_SERVERS"


def test_an_admin_api_may_lie_behind_a_path() -> None:
    assert parse_admin("https://gate.example.com/pulsar/") == "https://gate.example.com:443/pulsar"
    assert parse_admin("http://[::1]:8080") == "http://[::1]:8080"


@pytest.mark.parametrize("text", ["", "h:8080", "ftp://h", "http://", "http://h:x", "http://h?a=b"])
def test_anything_else_is_no_admin_api(text: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        parse_admin(text)
    assert caught.value.code == "BAD_SERVERS"


@pytest.mark.parametrize(
    ("service", "admin"),
    [
        ("pulsar://me:hunter2@h", None),
        (SERVICE, "http://me:hunter2@h:8080"),
        (SERVICE, "http://h:8080?token=hunter2"),
    ],
)
def test_a_password_in_an_address_is_refused_and_not_repeated(
    service: str, admin: str | None
) -> None:
    with pytest.raises(HeadgateError) as caught:
        PulsarLog.of(service, admin)
    assert caught.value.code == "BAD_SERVERS"
    assert "hunter2" not in str(caught.value)


def test_the_kernel_gets_references_and_the_file_from_the_root() -> None:
    spec = PulsarLog.of("pulsar://h", "http://a:1", {"token": "${env:T}", "numIoThreads": 2}, "c.p")
    assert json.loads(spec.to_text()) == {
        "service": SERVICE,
        "admin": "http://a:1",
        "options": {"numIoThreads": "2", "token": "${env:T}"},
        "config": str(Path.cwd() / "c.p"),
    }


def test_equal_descriptions_are_one_cluster_whatever_the_order_of_options() -> None:
    first = PulsarLog.of("pulsar://h", None, {"a": "1", "b": True})
    second = PulsarLog.of(SERVICE, "http://h:8080/", {"b": "true", "a": 1})
    assert first == second
    assert first.to_text() == second.to_text()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"serviceUrl": "pulsar://h"}, "BAD_CLIENT_OPTION"),
        ({"a b": "1"}, "BAD_CLIENT_OPTION"),
        ({"a": None}, "BAD_CLIENT_OPTION"),
        ({"token": "hunter2"}, "SECRET_IN_PLAIN"),
        ({"authParams": "token:hunter2"}, "SECRET_IN_PLAIN"),
        ({"authParams": "hunter2"}, "SECRET_IN_PLAIN"),
        ({"authParams": '{"userId":"me","password":"hunter2"}'}, "SECRET_IN_PLAIN"),
        ({"authParams": '{"hunter2'}, "SECRET_IN_PLAIN"),
        ({"tlsTrustStorePassword": "hunter2"}, "SECRET_IN_PLAIN"),
    ],
)
def test_an_option_that_cannot_be_kept_is_refused_without_its_value(
    options: dict[str, object], code: str
) -> None:
    with pytest.raises(HeadgateError) as caught:
        PulsarLog.of(SERVICE, None, options)
    assert caught.value.code == code
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("token", "${env:T}"),
        ("authParams", "token:${file:/run/secrets/t}"),
        ("authParams", "file:///run/secrets/t"),
        ("authParams", "tlsCertFile:/c.pem,tlsKeyFile:/k.pem"),
        ("authParams", '{"userId":"me","password":"${env:P}"}'),
        ("authParams", '{"issuerUrl":"https://i","privateKey":"file:///k.json"}'),
        ("tlsKeyFilePath", "/k.pem"),
        ("operationTimeoutMs", "5000"),
    ],
)
def test_a_reference_and_what_is_no_secret_are_kept_as_they_are(name: str, value: str) -> None:
    assert PulsarLog.of(SERVICE, None, {name: value}).options == ((name, value),)


@pytest.mark.parametrize(
    ("options", "login"),
    [
        ({}, Login()),
        ({"token": "${env:T}"}, Login(token="secret")),
        ({"authPluginClassName": TOKEN, "authParams": "token:${env:T}"}, Login(token="secret")),
        ({"authPluginClassName": TOKEN, "authParams": "${env:T}"}, Login(token="secret")),
        (
            {
                "authPluginClassName": BASIC,
                "authParams": '{"userId":"me","password":"${env:T}"}',
            },
            Login(user=("me", "secret")),
        ),
        (
            {"authPluginClassName": TLS, "authParams": "tlsCertFile:/c,tlsKeyFile:/k"},
            Login(certificate="/c", key="/k"),
        ),
    ],
)
def test_logins_of_the_java_client_are_those_of_python_too(
    options: dict[str, object], login: Login
) -> None:
    spec = PulsarLog.of(SERVICE, None, options)
    assert read_settings(spec, environment={"T": "secret"}).login == login


def test_a_token_is_read_from_the_file_that_the_parameters_name(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("secret\n")
    options = {"authPluginClassName": TOKEN, "authParams": f"file://{tmp_path / 't'}"}
    assert read_settings(PulsarLog.of(SERVICE, None, options)).login.token == "secret"
    (tmp_path / "t").unlink()
    with pytest.raises(HeadgateError) as caught:
        read_settings(PulsarLog.of(SERVICE, None, options))
    assert caught.value.code == "SECRET_NOT_FOUND"


def test_a_login_is_never_shown() -> None:
    spec = PulsarLog.of(SERVICE, None, {"token": "${env:T}"})
    assert "secret" not in repr(read_settings(spec, environment={"T": "secret"}))


@pytest.mark.parametrize(
    "options",
    [
        {"authPluginClassName": OAUTH, "authParams": '{"issuerUrl":"https://i"}'},
        {"authPluginClassName": BASIC, "authParams": "${env:T}"},
        {"authPluginClassName": TOKEN, "token": "${env:T}"},
        {"useKeyStoreTls": True, "tlsTrustStorePath": "t.jks"},
        {"tlsAllowInsecureConnection": "maybe"},
        {"operationTimeoutMs": "soon"},
    ],
)
def test_what_python_cannot_do_is_told_without_the_secret(options: dict[str, object]) -> None:
    with pytest.raises(HeadgateError) as caught:
        read_settings(PulsarLog.of(SERVICE, None, options), environment={"T": "hunter2"})
    assert caught.value.code == "BAD_CLIENT_OPTION"
    assert "hunter2" not in str(caught.value)


def test_options_win_over_the_file_and_those_of_readers_are_no_concern(tmp_path: Path) -> None:
    (tmp_path / "c.p").write_text(
        "tlsTrustCertsFilePath=/ca.pem\noperationTimeoutMs=1000\ntlsHostnameVerificationEnable=true\n"
    )
    options = {"operationTimeoutMs": 2500, "reader.operationTimeoutMs": 1, "numIoThreads": 4}
    found = read_settings(PulsarLog.of(SERVICE, None, options, str(tmp_path / "c.p")))
    assert (found.trust, found.check_name, found.insecure) == ("/ca.pem", True, False)
    assert found.operation_timeout_s == 2.5


def test_a_service_where_nobody_listens_is_told_at_once() -> None:
    began = time.monotonic()
    with pytest.raises(HeadgateError) as caught:
        open_client(PulsarLog.of("pulsar://127.0.0.1:1"), doing="try it")
    assert caught.value.code == "BROKER_UNREACHABLE"
    assert caught.value.retryable
    assert time.monotonic() - began < 15


def test_a_token_that_the_shell_has_emptied_is_refused(tmp_path: Path) -> None:
    client = PulsarLog.of("pulsar://h:6650", None, {"token": ""})
    with pytest.raises(HeadgateError) as caught:
        read_settings(client)
    assert caught.value.code == "BAD_CLIENT_OPTION"
    assert "single quotes" in caught.value.hint
