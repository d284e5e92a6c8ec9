"""Settings: flags, headgate.toml beside the flow and in the working directory, defaults."""

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate._units import format_duration
from headgate.engine.settings import Delivery, OnDataLoss
from headgate.errors import Domain, HeadgateError
from headgate.jobs.lifecycle.restart import Exponential, FixedDelay
from headgate.jobs.setting_table import LogLevel, OnCancel
from headgate.jobs.settings import CONFIG_FILE, Origin, Settings, read_settings

EXAMPLES = Path(__file__).parents[2] / "examples"
MIB = 1024 * 1024


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    """A flow's folder; the working directory is the one above."""
    folder = tmp_path / "flows"
    folder.mkdir()
    return folder


def write(folder: Path, text: str) -> None:
    (folder / CONFIG_FILE).write_text(text, encoding="utf-8")


def read(flow: Path, **flags: Any) -> Settings:
    given = {name.replace("_", "-"): value for name, value in flags.items()}
    return read_settings(flow, flags=given, working=flow.parent)


def refused(flow: Path, **flags: Any) -> HeadgateError:
    with pytest.raises(HeadgateError) as caught:
        read(flow, **flags)
    assert caught.value.domain is Domain.USER
    return caught.value


# What is by default


def test_without_a_file_or_a_flag_every_setting_is_the_default(flow: Path) -> None:
    settings = read(flow)
    assert settings["batch-every"] == timedelta(seconds=1)
    assert settings["checkpoint-every"] == timedelta(seconds=5)
    assert settings["min-pause"] == timedelta(0)
    assert (settings["retain"], settings["retain-for"]) == (10, None)
    assert settings["on-cancel"] is OnCancel.RETAIN
    assert settings["restart"] == Exponential(timedelta(seconds=1), timedelta(minutes=1), 1.5)
    assert (settings["parallelism"], settings["checkpoints"], settings["profile"]) == (
        None,
        None,
        None,
    )
    assert (settings["max-batch"], settings["max-record"]) == (64 * MIB, MIB)
    assert settings["on"] == "files:.headgate/topics"
    assert settings["driver-memory"] == 2048 * MIB
    assert settings["executor-memory"] == 1024 * MIB
    assert settings["state-memory"] == 512 * MIB
    assert (settings["master"], settings["log-level"]) == ("local[*]", LogLevel.INFO)
    assert set(settings.origins.values()) == {Origin.DEFAULT}


# What a file says

FULL = """
[job]
batch-every = "2s"
checkpoint-every = "1m"
min-pause = "250ms"
retain = 3
retain-for = "24h"
on-cancel = "delete"
restart = "none"
parallelism = 4
max-batch = "8MiB"
max-record = 4096
checkpoints = "/data/checkpoints"
on = "files:/data/topics"
delivery = "at-least-once"
on-data-loss = "continue"
profile = "large"

[profiles.large]
driver-memory = "8GiB"
executors = 3
executor-cores = 2
executor-memory = "4GiB"
executor-wait = "30s"
executor-timeout = "20s"
lease-expires = "20s"
driver-host = "gate.example"
driver-bind = "0.0.0.0"
python = "/opt/python"
py-env = "/data/env.tar.gz"
state-memory = "2GiB"
worker-memory = "3GiB"
metaspace = "300MiB"
code-cache = "200MiB"
direct-memory = "100MiB"
off-heap-memory = "400MiB"
executor-overhead = "1GiB"
call-timeout = "30s"
master = "spark://head:7077"
log-level = "warn"
log-format = "json"
"""


def test_a_file_may_set_everything(flow: Path) -> None:
    write(flow, FULL)
    settings = read(flow)
    assert settings["batch-every"] == timedelta(seconds=2)
    assert settings["checkpoint-every"] == timedelta(minutes=1)
    assert settings["min-pause"] == timedelta(milliseconds=250)
    assert (settings["retain"], settings["retain-for"]) == (3, timedelta(days=1))
    assert settings["on-cancel"] is OnCancel.DELETE
    assert str(settings["restart"]) == "none"
    assert (settings["parallelism"], settings["max-batch"], settings["max-record"]) == (
        4,
        8 * MIB,
        4096,
    )
    assert settings["checkpoints"] == Path("/data/checkpoints")
    assert settings["delivery"] is Delivery.AT_LEAST_ONCE
    assert settings["on-data-loss"] is OnDataLoss.CONTINUE
    assert (settings["on"], settings["profile"]) == ("files:/data/topics", "large")
    assert settings["driver-memory"] == 8192 * MIB
    assert (settings["executors"], settings["executor-cores"]) == (3, 2)
    assert settings["executor-memory"] == 4096 * MIB
    assert settings["executor-wait"] == timedelta(seconds=30)
    assert settings["executor-timeout"] == timedelta(seconds=20)
    assert settings["lease-expires"] == timedelta(seconds=20)
    assert (settings["driver-host"], settings["driver-bind"]) == ("gate.example", "0.0.0.0")
    assert (settings["python"], settings["py-env"]) == ("/opt/python", Path("/data/env.tar.gz"))
    assert settings["state-memory"] == 2048 * MIB
    assert settings["worker-memory"] == 3072 * MIB
    assert (settings["metaspace"], settings["code-cache"]) == (300 * MIB, 200 * MIB)
    assert (settings["direct-memory"], settings["off-heap-memory"]) == (100 * MIB, 400 * MIB)
    assert settings["executor-overhead"] == 1024 * MIB
    assert settings["call-timeout"] == timedelta(seconds=30)
    assert (settings["master"], settings["log-level"]) == ("spark://head:7077", LogLevel.WARN)
    assert settings["log-format"] == "json"
    assert set(settings.origins.values()) == {Origin.FILE}


def test_the_orders_example_has_the_settings_of_the_original(tmp_path: Path) -> None:
    settings = read_settings(EXAMPLES / "orders", working=tmp_path)
    assert settings["checkpoint-every"] == timedelta(seconds=5)
    assert settings["min-pause"] == timedelta(milliseconds=500)
    assert settings["on-cancel"] is OnCancel.RETAIN
    assert settings["restart"] == FixedDelay(5, timedelta(seconds=10))
    from_file = {name for name, origin in settings.origins.items() if origin is Origin.FILE}
    assert from_file == {"checkpoint-every", "min-pause", "on-cancel", "restart"}


def test_an_empty_file_changes_nothing(flow: Path) -> None:
    before = read(flow)
    write(flow, "# nothing yet\n\n[job]\n[profiles.small]\n")
    assert read(flow) == before


# Who wins


def test_the_file_beside_the_flow_wins_key_by_key(flow: Path) -> None:
    write(flow.parent, '[job]\nretain = 20\nmin-pause = "1s"\n')
    write(flow, "[job]\nretain = 30\n")
    settings = read(flow)
    assert (settings["retain"], settings["min-pause"]) == (30, timedelta(seconds=1))


def test_profiles_are_put_together_from_both_files(flow: Path) -> None:
    write(flow.parent, '[profiles.a]\nmaster = "yarn"\ndriver-memory = "1GiB"\n')
    write(flow, '[job]\nprofile = "a"\n[profiles.a]\ndriver-memory = "3GiB"\n')
    settings = read(flow)
    assert (settings["master"], settings["driver-memory"]) == ("yarn", 3072 * MIB)


def test_a_flag_wins_over_the_file(flow: Path) -> None:
    write(flow, '[job]\nretain = 30\nmin-pause = "1s"\nretain-for = "24h"\n')
    settings = read(flow, retain=5, min_pause="2s", retain_for="none", batch_every=None)
    assert (settings["retain"], settings["min-pause"]) == (5, timedelta(seconds=2))
    assert settings["retain-for"] is None
    assert settings.origins["retain"] is settings.origins["retain-for"] is Origin.FLAG
    assert settings.origins["batch-every"] is Origin.DEFAULT


def test_a_flag_wins_over_the_profile_and_chooses_it(flow: Path) -> None:
    write(flow, '[job]\nprofile = "a"\n[profiles.a]\n[profiles.b]\nmaster = "yarn"\n')
    settings = read(flow, profile="b", driver_memory="1GiB")
    assert (settings["profile"], settings["master"]) == ("b", "yarn")
    assert settings["driver-memory"] == 1024 * MIB
    assert settings.origins["driver-memory"] is Origin.FLAG


def test_a_profile_that_nobody_chose_changes_nothing(flow: Path) -> None:
    write(flow, '[profiles.a]\nmaster = "yarn"\n')
    assert read(flow)["master"] == "local[*]"


def test_the_working_directory_is_the_process_s_own_unless_told(
    flow: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(flow.parent, "[job]\nretain = 7\n")
    monkeypatch.chdir(flow.parent)
    assert read_settings(Path("flows"))["retain"] == 7


# Folders


def test_a_folder_in_a_file_is_seen_from_the_file(flow: Path) -> None:
    write(flow, '[job]\ncheckpoints = "kept"\non = "files:topics"\n')
    settings = read(flow)
    assert settings["checkpoints"] == flow / "kept"
    assert settings["on"] == f"files:{flow}/topics"


def test_a_folder_in_the_working_directory_s_file_stays_as_it_is(flow: Path) -> None:
    write(flow.parent, '[job]\ncheckpoints = "kept"\non = "files:topics"\n')
    settings = read(flow)
    assert (settings["checkpoints"], settings["on"]) == (Path("kept"), "files:topics")


def test_a_folder_of_a_flag_is_seen_from_the_working_directory(flow: Path) -> None:
    settings = read(flow, checkpoints=Path("kept"), on="files:topics")
    assert (settings["checkpoints"], settings["on"]) == (Path("kept"), "files:topics")


@pytest.mark.parametrize(
    "url", ["file:///data/all%20jobs", "file:/data/all jobs", "FILE://localhost/data/all jobs"]
)
def test_a_file_url_is_the_folder_that_it_names(flow: Path, url: str) -> None:
    assert read(flow, checkpoints=url)["checkpoints"] == Path("/data/all jobs")
    write(flow, f'[job]\ncheckpoints = "{url}"\n')
    assert read(flow)["checkpoints"] == Path("/data/all jobs")


@pytest.mark.parametrize("url", ["gs://bucket/jobs", "hdfs:///jobs", "hdfs:/jobs", "s3a:///jobs"])
def test_checkpoints_in_a_store_that_is_not_supported_are_refused(flow: Path, url: str) -> None:
    error = refused(flow, checkpoints=url)
    assert error.code == "BAD_STORE"
    assert error.message.startswith(f"cannot use {url}: ")
    assert error.message.endswith(" (in --checkpoints)")
    assert "s3a://BUCKET/FOLDER" in error.hint
    write(flow, f'[job]\ncheckpoints = "{url}"\n')
    assert refused(flow).message.endswith("(in [job] of flows/headgate.toml, line 2)")


@pytest.mark.parametrize("url", ["s3://bucket/jobs", "s3a://bucket/jobs/"])
def test_checkpoints_may_be_on_s3(flow: Path, url: str) -> None:
    assert str(read(flow, checkpoints=url)["checkpoints"]) == "s3a://bucket/jobs"
    write(flow, f'[job]\ncheckpoints = "{url}"\n')
    settings = read(flow)
    assert str(settings["checkpoints"]) == "s3a://bucket/jobs"
    assert settings.to_json()["checkpoints"]["value"] == "s3a://bucket/jobs"


def test_a_missing_package_of_a_store_is_not_the_users_mistake(
    flow: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "upath", None)
    with pytest.raises(HeadgateError) as caught:
        read(flow, checkpoints="s3a://bucket/jobs")
    assert (caught.value.code, caught.value.exit_code) == ("PACKAGE_MISSING", 3)
    assert caught.value.hint == "pip install 'headgate[s3]'"


@pytest.mark.parametrize("lease", ["4s", "0s", "soon"])
def test_a_lease_that_cannot_be_renewed_in_time_is_refused(flow: Path, lease: str) -> None:
    write(flow, f'[job]\nprofile = "a"\n[profiles.a]\nlease-expires = "{lease}"\n')
    assert refused(flow).code in ("BAD_SETTING", "BAD_DURATION")


@pytest.mark.parametrize("url", ["file://otherhost/data", "file:data", "file://", "file:"])
def test_a_file_url_without_an_absolute_path_here_is_refused(flow: Path, url: str) -> None:
    error = refused(flow, checkpoints=url)
    assert error.message.startswith(f"cannot keep checkpoints in '{url}': a file: URL must have")
    assert error.hint == "write it as file:///mnt/checkpoints"


def test_a_folder_may_have_a_colon_in_its_name(flow: Path) -> None:
    assert read(flow, checkpoints="kept:1")["checkpoints"] == Path("kept:1")
    assert read(flow, checkpoints="./s3:/x")["checkpoints"] == Path("s3:/x")


def test_another_log_than_a_folder_stays_as_it_is(flow: Path) -> None:
    write(flow, '[job]\non = "kafka://localhost:9092"\n')
    assert read(flow)["on"] == "kafka://localhost:9092"


# Refusals


@pytest.mark.parametrize(
    ("text", "told", "hint"),
    [
        (
            "[job]\n\nretian = 3\n",
            (
                "cannot use setting 'retian': there is no such setting (in [job] of "
                "flows/headgate.toml, line 3)"
            ),
            "did you mean 'retain'?",
        ),
        (
            '[job]\nbatch_every = "1s"\n',
            (
                "cannot use setting 'batch_every': there is no such setting (in [job] of "
                "flows/headgate.toml, line 2)"
            ),
            "did you mean 'batch-every'?",
        ),
        (
            '[job]\ndriver-memory = "1g"\n',
            (
                "cannot use setting 'driver-memory': there is no such setting (in [job] of "
                "flows/headgate.toml, line 2)"
            ),
            "move it to [profiles.NAME]",
        ),
        (
            "[profiles.a]\nretain = 3\n",
            (
                "cannot use setting 'retain': there is no such setting (in [profiles.a] of "
                "flows/headgate.toml, line 2)"
            ),
            "move it to [job]",
        ),
        (
            "[jobs]\nretain = 3\n",
            "cannot use setting 'jobs': there is no such setting (in flows/headgate.toml, line 1)",
            "did you mean 'job'?",
        ),
        (
            "retain = 3\n",
            (
                "cannot use setting 'retain': there is no such setting (in flows/headgate.toml, "
                "line 1)"
            ),
            "write [job] on a line above retain",
        ),
        (
            "[profile.a]\n",
            (
                "cannot use setting 'profile': there is no such setting (in flows/headgate.toml, "
                "line 1)"
            ),
            "did you mean 'profiles'?",
        ),
        (
            "job = {retian = 3}\n",
            (
                "cannot use setting 'retian': there is no such setting (in [job] of "
                "flows/headgate.toml)"
            ),
            "did you mean 'retain'?",
        ),
    ],
)
def test_an_unknown_setting_is_refused_with_its_place(
    flow: Path, text: str, told: str, hint: str
) -> None:
    write(flow, text)
    error = refused(flow)
    assert (error.code, error.message, error.hint) == ("UNKNOWN_SETTING", told, hint)


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("retain = 0", "BAD_SETTING", "retain must be a positive integer, got 0"),
        ('retain = "3"', "BAD_SETTING", "retain must be a positive integer, got '3'"),
        ("retain = true", "BAD_SETTING", "retain must be a positive integer, got True"),
        ("retain = 2.5", "BAD_SETTING", "retain must be a positive integer, got 2.5"),
        ("min-pause = 5", "BAD_SETTING", "min-pause must be a duration, got 5"),
        ('min-pause = "5"', "BAD_DURATION", "cannot read duration '5': it is not a number"),
        ('retain-for = "x"', "BAD_DURATION", "cannot read duration 'x': it is not a number"),
        ('on-cancel = "keep"', "BAD_SETTING", "on-cancel must be one of"),
        ('restart = "never"', "BAD_RESTART", "cannot read restart strategy 'never': there is"),
        ('max-batch = "big"', "BAD_SIZE", "cannot read size 'big': it is not a number with a"),
        ("max-batch = 0", "BAD_SETTING", "max-batch must be a size, got 0"),
        ('max-batch = "0"', "BAD_SETTING", "max-batch must be a size, got '0'"),
        ('on = ""', "BAD_SETTING", "on must be text, got ''"),
        ("checkpoints = 3", "BAD_SETTING", "checkpoints must be a folder or an address, got 3"),
        ("restart = {}", "BAD_SETTING", "restart must be a restart strategy, got {}"),
    ],
)
def test_a_bad_value_is_refused_with_its_place_and_a_good_one(
    flow: Path, line: str, code: str, told: str
) -> None:
    write(flow, f"[job]\n# a comment\n{line}\n")
    error = refused(flow)
    assert error.code == code
    assert error.message.startswith(told)
    assert error.message.endswith("(in [job] of flows/headgate.toml, line 3)")
    assert error.hint


def test_the_hint_for_a_bad_value_is_one_that_works(flow: Path) -> None:
    write(flow, "[job]\nmin-pause = 5\n")
    hint = refused(flow).hint
    assert hint == 'write min-pause = "500ms"'
    write(flow, f"[job]\n{hint.removeprefix('write ')}\n")
    assert read(flow)["min-pause"] == timedelta(milliseconds=500)


def test_a_bad_flag_is_refused_by_its_name(flow: Path) -> None:
    error = refused(flow, retain=0)
    assert error.message == ("retain must be a positive integer, got 0 (in --retain)")
    assert error.hint == "--retain 10"
    assert refused(flow, on_cancel="keep").hint == "--on-cancel retain"
    assert refused(flow, restart="often").message.endswith("(in --restart)")


def test_a_profile_is_checked_even_where_nobody_chose_it(flow: Path) -> None:
    write(flow, '[profiles.a]\nlog-level = "loud"\n')
    error = refused(flow)
    assert error.message == (
        "log-level must be one of error, warn, info, debug, got 'loud' "
        "(in [profiles.a] of flows/headgate.toml, line 2)"
    )


def test_a_profile_that_is_not_there_is_refused_with_those_that_are(flow: Path) -> None:
    write(flow, "[profiles.slow]\n[profiles.large]\n")
    error = refused(flow, profile="lagre")
    assert error.code == "PROFILE_NOT_FOUND"
    assert error.message == "cannot use profile 'lagre': available profiles: large, slow, small"
    assert error.hint == "did you mean 'large'?"


def test_a_profile_without_a_file_is_refused_with_what_to_write(flow: Path) -> None:
    error = refused(flow, profile="large")
    assert error.hint == "add a table [profiles.large] to headgate.toml"


@pytest.mark.parametrize("text", ["job = 3\n", "profiles = 3\n", "[profiles]\na = 3\n"])
def test_a_value_where_a_table_belongs_is_refused(flow: Path, text: str) -> None:
    write(flow, text)
    error = refused(flow)
    assert error.code == "BAD_SETTING"
    assert "must be a table, got" in error.message


def test_a_file_that_is_no_toml_is_refused_with_the_line(flow: Path) -> None:
    write(flow, "[job]\nmin-pause = 500ms\n")
    error = refused(flow)
    assert error.code == "CONFIG_BROKEN"
    assert error.message.startswith("cannot read flows/headgate.toml: ")
    assert "line 2" in error.message


def test_a_file_that_is_no_text_is_refused(flow: Path) -> None:
    (flow / CONFIG_FILE).write_bytes(b"[job]\n\xff\xfe\n")
    assert refused(flow).code == "CONFIG_BROKEN"


# Showing


def test_settings_are_shown_as_they_are_written_with_where_they_came_from(flow: Path) -> None:
    write(flow, '[job]\nmin-pause = "0.5s"\nrestart = "fixed-delay:5,10s"\n')
    shown = read(flow, retain=3).to_json()
    assert shown["min-pause"] == {"value": "500ms", "from": "headgate.toml"}
    assert shown["restart"] == {"value": "fixed-delay:5,10s", "from": "headgate.toml"}
    assert shown["retain"] == {"value": 3, "from": "flag"}
    assert shown["retain-for"] == {"value": None, "from": "default"}
    assert shown["max-batch"] == {"value": "64MiB", "from": "default"}
    assert shown["on-cancel"] == {"value": "retain", "from": "default"}
    assert len(shown) == 37


@given(
    st.timedeltas(timedelta(0), timedelta(days=9)),
    st.integers(1, 10**6),
)
def test_what_is_shown_can_be_given_again(pause: timedelta, retain: int) -> None:
    given_flags = {"min-pause": format_duration(pause), "retain": retain}
    settings = read_settings(EXAMPLES, flags=given_flags, working=EXAMPLES)
    shown = settings.to_json()
    again = {name: shown[name]["value"] for name in given_flags}
    assert read_settings(EXAMPLES, flags=again, working=EXAMPLES) == settings
    assert settings["min-pause"] == pause
