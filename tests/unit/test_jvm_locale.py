"""What the JVM is told of the locale, and names that it could not find again."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from headgate import Files, HeadgateError
from headgate._kernel import locales
from headgate.engine.session.session import open_session, spark_conf
from headgate.engine.settings import SparkSettings

_NOT_UTF8 = os.fsdecode(b"/tmp/h\xf6me")


def test_driver_and_executors_are_told_the_same_locale(tmp_path: Path) -> None:
    conf = spark_conf(SparkSettings(parallelism=2, log_file=tmp_path / "spark.log"), [])
    for side in ("driver", "executor"):
        options = conf[f"spark.{side}.extraJavaOptions"].split()
        assert {"-Duser.language=en", "-Duser.country=US", "-Dfile.encoding=UTF-8"} <= {*options}
    assert conf["spark.executorEnv.LC_ALL"] == "C.UTF-8"


def test_a_jvm_is_started_in_a_utf8_locale_and_this_process_keeps_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LC_ALL", "POSIX")
    with locales.utf8_environment():
        assert os.environ["LC_ALL"].lower().replace("-", "").endswith("utf8")
    assert os.environ["LC_ALL"] == "POSIX"
    monkeypatch.delenv("LC_ALL")
    with locales.utf8_environment():
        assert "LC_ALL" in os.environ
    assert "LC_ALL" not in os.environ


def test_a_process_that_takes_file_names_for_something_else_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "iso8859-1")
    with pytest.raises(HeadgateError) as refused:
        locales.check_python()
    assert (refused.value.code, refused.value.retryable) == ("LOCALE_UNSUPPORTED", False)
    assert "iso8859-1" in refused.value.message


def test_a_jvm_that_takes_file_names_for_ascii_is_refused() -> None:
    def jvm(encoding: str) -> object:
        system = SimpleNamespace(getProperty=lambda _: encoding)
        return SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=system)))

    locales.check_jvm(jvm("UTF-8"))
    with pytest.raises(HeadgateError, match="LOCALE_UNSUPPORTED"):
        locales.check_jvm(jvm("ANSI_X3.4-1968"))


def test_a_home_or_a_topic_whose_name_is_not_utf8_is_refused() -> None:
    with pytest.raises(HeadgateError, match="PATH_NOT_UTF8"):
        Files("orders", dir=_NOT_UTF8)
    with pytest.raises(HeadgateError, match="PATH_NOT_UTF8"):
        open_session(SparkSettings(parallelism=1, log_file=Path(_NOT_UTF8) / "spark.log"))


def test_a_log_in_a_folder_of_any_script_is_written_where_it_belongs(tmp_path: Path) -> None:
    log = tmp_path / "hömé 😀" / "spark.log"
    spark_conf(SparkSettings(parallelism=1, log_file=log), [])
    written = log.with_suffix(".log4j2.properties").read_bytes()
    assert b"/h\\u00f6m\\u00e9 \\ud83d\\ude00/spark.log\n" in written
