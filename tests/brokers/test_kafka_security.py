"""A broker that asks who is there: jobs get in with the right secret, and tell it to nobody."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from bench import Bench, refused
from kafka_broker import KafkaBroker

from headgate import Flow, Kafka

ROW = "id BIGINT NOT NULL"


def options(broker: KafkaBroker, password: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": broker.client["sasl.username"],
        "sasl.password": password,
        "ssl.ca.location": broker.client["ssl.ca.location"],
    }


def copy(broker: KafkaBroker, source: str, target: str, password: str) -> Flow:
    def bound(topic: str) -> Kafka:
        return Kafka(topic, servers=broker.address, options=options(broker, password))

    flow = Flow("copy", dead_letters=bound(broker.make_topic()))
    flow.stream(bound(source), ROW, uid="in").to(bound(target))
    return flow


def test_no_secret_is_written_down_or_told(tmp_path: Path, secure_kafka: KafkaBroker) -> None:
    password = secure_kafka.client["sasl.password"]
    source, target = secure_kafka.make_topic(), secure_kafka.make_topic()
    secure_kafka.send(source, [b'{"id": 1}', b'{"id": 2}'])
    bench = Bench(tmp_path)
    file = bench.flow_file(copy(secure_kafka, source, target, "${env:KAFKA_SECRET}"))
    words = ["run", str(file), "--home", str(bench.home), "--until-caught-up", "--restart", "none"]
    done = subprocess.run(
        [sys.executable, "-m", "headgate", *words],
        env={**os.environ, "KAFKA_SECRET": password},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(json.loads(value or b"")["id"] for value in secure_kafka.values(target)) == [1, 2]
    written = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert any(file.name == "spark.log" for file in written)
    for each in written:
        assert password.encode() not in each.read_bytes(), f"{each} has the password"
    assert password not in done.stdout + done.stderr
    show = subprocess.run(
        [sys.executable, "-m", "headgate", "show", "copy", "--home", str(bench.home), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert password not in show.stdout


def test_a_wrong_password_is_told_and_not_retried(
    tmp_path: Path, secure_kafka: KafkaBroker
) -> None:
    source, target = secure_kafka.make_topic(), secure_kafka.make_topic()
    secret = tmp_path / "secret"
    secret.write_text("wrong-and-never-told\n")
    bench = Bench(tmp_path / "bench")
    bench.root.mkdir()
    with refused("BROKER_REFUSED") as caught:
        bench.run(copy(secure_kafka, source, target, f"${{file:{secret}}}"))
    assert not caught.value.retryable
    assert "wrong-and-never-told" not in str(caught.value)


def test_a_secret_that_is_not_there_is_named(tmp_path: Path, secure_kafka: KafkaBroker) -> None:
    source, target = secure_kafka.make_topic(), secure_kafka.make_topic()
    with refused("SECRET_NOT_FOUND") as caught:
        Bench(tmp_path).run(copy(secure_kafka, source, target, "${file:/nowhere/secret}"))
    assert "/nowhere/secret" in caught.value.message
