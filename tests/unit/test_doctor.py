"""What the doctor makes of the facts, and how the facts are read; no JVM is started."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from headgate.jobs.host.doctor import SPARK_VERSION, Finding, Status, judge, parse_java_version
from headgate.jobs.host.facts import (
    FetchedJars,
    Folder,
    Java,
    Kernel,
    Machine,
    read_folder,
    read_java,
    read_memory,
)

MIB = 1024**2
GIB = 1024**3
JAVA_17 = 'openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment\n'
FIT = Machine(
    python=(3, 11, 7),
    pyspark=SPARK_VERSION,
    spark_home=None,
    own_spark="/site/pyspark",
    java=Java(path="/usr/bin/java", says=JAVA_17, modules="java.base\njdk.incubator.vector\n"),
    kernel=Kernel(jar="kernel.jar", carried="abc", wanted="abc", javac="/usr/bin/javac"),
    kafka=(
        FetchedJars(what="client", cache=Path("c"), missing=0),
        FetchedJars(what="broker", cache=Path("c"), missing=0),
    ),
    pulsar=(
        FetchedJars(what="client", cache=Path("c"), missing=0),
        FetchedJars(what="broker", cache=Path("b"), missing=0),
    ),
    postgres=(
        FetchedJars(what="driver", cache=Path("c"), missing=0),
        FetchedJars(what="server", cache=Path("p"), missing=0),
    ),
    prepared=("embedded", "kafka"),
    cores=2,
    memory=8 * GIB,
    memory_free=6 * GIB,
    loopback_problem="",
    folders=(
        Folder(role="topics", path=Path("t"), free=50 * GIB, device=1),
        Folder(role="jobs", path=Path("j"), free=50 * GIB, device=1),
    ),
)


def find(machine: Machine, name: str) -> Finding:
    return next(finding for finding in judge(machine) if finding.name == name)


def test_a_fit_machine_is_fine_throughout() -> None:
    findings = judge(FIT)
    assert {finding.status for finding in findings} == {Status.OK}
    assert [finding.name for finding in findings] == [
        *("python", "java", "spark", "kernel", "kafka", "pulsar", "postgres", "classes"),
        *("cores", "memory", "loopback"),
        *("topics", "jobs", "disk"),
    ]


OTHER_JAVA = replace(FIT.java, says='java version "1.8.0_392"')
UNFIT = [
    ("python", replace(FIT, python=(3, 10, 1)), Status.FAIL, "3.11 or newer"),
    ("java", replace(FIT, java=Java(path=None)), Status.FAIL, "install a JDK 17"),
    ("java", replace(FIT, java=Java(path=None, home="/x")), Status.FAIL, "unset JAVA_HOME"),
    ("java", replace(FIT, java=OTHER_JAVA), Status.FAIL, "install a JDK 17"),
    ("java", replace(FIT, java=replace(FIT.java, says="?")), Status.FAIL, "install a JDK 17"),
    ("java", replace(FIT, java=replace(FIT.java, modules="")), Status.FAIL, "install a JDK 17"),
    ("spark", replace(FIT, pyspark=None), Status.FAIL, f"pip install pyspark=={SPARK_VERSION}"),
    ("spark", replace(FIT, pyspark="3.5.1"), Status.FAIL, "pip install"),
    ("spark", replace(FIT, spark_home="/opt/spark"), Status.WARN, "unset SPARK_HOME"),
    ("kernel", replace(FIT, kernel=replace(FIT.kernel, carried="old")), Status.WARN, "make kernel"),
    (
        "kernel",
        replace(FIT, kernel=replace(FIT.kernel, carried=None, javac=None)),
        Status.FAIL,
        "not only a JRE",
    ),
    (
        "kernel",
        replace(FIT, kernel=replace(FIT.kernel, carried=None, wanted=None)),
        Status.FAIL,
        "pip install --force-reinstall headgate",
    ),
    ("cores", replace(FIT, cores=1), Status.WARN, "2 cores or more"),
    ("memory", replace(FIT, memory_free=900 * MIB), Status.FAIL, "more memory"),
    ("memory", replace(FIT, memory_free=2 * GIB), Status.WARN, "--profile small"),
    ("memory", replace(FIT, memory=512 * MIB, memory_free=None), Status.FAIL, "more memory"),
    ("loopback", replace(FIT, loopback_problem="refused"), Status.FAIL, "127.0.0.1"),
]


@pytest.mark.parametrize(("name", "machine", "status", "advice"), UNFIT)
def test_what_is_not_fit_is_told_with_what_to_do(
    name: str, machine: Machine, status: Status, advice: str
) -> None:
    finding = find(machine, name)
    assert finding.status is status
    assert advice in finding.advice
    assert [each.name for each in judge(machine) if each.status is not Status.OK] == [name]


def test_a_machine_without_an_archive_of_classes_is_fit_and_told_how_to_make_one() -> None:
    finding = find(replace(FIT, prepared=()), "classes")
    assert finding.status is Status.OK
    assert finding.advice == "headgate prepare"


def test_a_spark_home_that_is_pysparks_own_is_fine() -> None:
    assert find(replace(FIT, spark_home=FIT.own_spark), "spark").status is Status.OK


def test_a_jar_that_came_with_the_package_needs_no_sources() -> None:
    kernel = replace(FIT.kernel, wanted=None, javac=None)
    assert find(replace(FIT, kernel=kernel), "kernel").status is Status.OK


def test_what_kafka_needs_is_fetched_on_first_use_and_nothing_to_mend() -> None:
    client, broker = FIT.kafka
    finding = find(FIT, "kafka")
    assert finding.found == "client and broker in c"
    some = replace(FIT, kafka=(client, replace(broker, missing=44 * MIB)))
    none = replace(
        FIT, kafka=(replace(client, missing=10 * MIB), replace(broker, missing=44 * MIB))
    )
    assert find(some, "kafka").found == "client in c; fetched on first use: broker 44MiB"
    assert find(none, "kafka").found == "fetched on first use: client 10MiB, broker 44MiB"
    assert {find(machine, "kafka").status for machine in (some, none)} == {Status.OK}


def test_what_pulsar_needs_lies_in_two_places() -> None:
    client, broker = FIT.pulsar
    assert find(FIT, "pulsar").found == "client in c; broker in b"
    some = replace(FIT, pulsar=(client, replace(broker, missing=234 * MIB)))
    assert find(some, "pulsar").found == "client in c; fetched on first use: broker 234MiB"


def test_a_system_that_tells_no_memory_is_not_blamed() -> None:
    assert find(replace(FIT, memory=None, memory_free=None), "memory").status is Status.OK


@pytest.mark.parametrize(
    ("free", "status"),
    [(100 * MIB, Status.FAIL), (1 * GIB, Status.WARN), (6 * GIB, Status.OK)],
)
def test_a_disk_is_told_of_once_and_judged_by_what_is_free(free: int, status: Status) -> None:
    folders = tuple(replace(folder, free=free) for folder in FIT.folders)
    disks = [each for each in judge(replace(FIT, folders=folders)) if each.name == "disk"]
    assert [each.status for each in disks] == [status]


def test_two_disks_are_judged_apart() -> None:
    topics, jobs = FIT.folders
    machine = replace(FIT, folders=(topics, replace(jobs, device=2, free=0)))
    disks = [each.status for each in judge(machine) if each.name == "disk"]
    assert disks == [Status.OK, Status.FAIL]


def test_a_folder_that_cannot_be_written_names_the_option_to_choose_another() -> None:
    folders = tuple(replace(each, problem="Permission denied", free=None) for each in FIT.folders)
    machine = replace(FIT, folders=folders)
    assert "--on files:DIR" in find(machine, "topics").advice
    assert "--home DIR" in find(machine, "jobs").advice


def test_missing_hard_links_are_a_warning() -> None:
    topics, jobs = FIT.folders
    machine = replace(FIT, folders=(replace(topics, has_links=False), jobs))
    assert find(machine, "topics").status is Status.WARN


@pytest.mark.parametrize(
    ("text", "release"),
    [
        (JAVA_17, 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21.0.1"', 21),
        ("bash: java: not found", None),
    ],
)
def test_javas_release_is_read_from_what_it_says(text: str, release: int | None) -> None:
    assert parse_java_version(text) == release


def test_java_home_is_the_only_place_looked_at_when_it_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, version in (("home", "21"), ("elsewhere", "11")):
        _write_java(tmp_path / folder / "bin", version)
    monkeypatch.setenv("PATH", f"{tmp_path}/elsewhere/bin:/usr/bin:/bin")
    monkeypatch.setenv("JAVA_HOME", f"{tmp_path}/home")
    assert parse_java_version(read_java().says) == 21
    monkeypatch.setenv("JAVA_HOME", f"{tmp_path}/nothing")
    assert read_java() == Java(path=None, home=f"{tmp_path}/nothing")
    monkeypatch.delenv("JAVA_HOME")
    java = read_java()
    assert parse_java_version(java.says) == 11
    assert "jdk.incubator.vector" in java.modules


def test_a_java_that_cannot_be_started_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/no/such/program\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    finding = find(replace(FIT, java=read_java()), "java")
    assert finding.status is Status.FAIL
    assert "No such file" in finding.found


def _write_java(folder: Path, version: str) -> None:
    folder.mkdir(parents=True)
    program = folder / "java"
    program.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = -version ] && echo \'openjdk version "{version}.0.1"\' >&2\n'
        '[ "$1" = --list-modules ] && echo jdk.incubator.vector@17\n'
        "exit 0\n"
    )
    program.chmod(0o755)


def test_memory_is_what_a_container_leaves_of_the_machines(tmp_path: Path) -> None:
    proc, cgroup = tmp_path / "proc", tmp_path / "cgroup"
    proc.mkdir()
    cgroup.mkdir()
    (proc / "meminfo").write_text("MemTotal:    8388608 kB\nMemAvailable:    4194304 kB\n")
    assert read_memory(proc, cgroup) == (8 * GIB, 4 * GIB)
    (cgroup / "memory.max").write_text("max\n")
    assert read_memory(proc, cgroup) == (8 * GIB, 4 * GIB)
    (cgroup / "memory.max").write_text(f"{2 * GIB}\n")
    (cgroup / "memory.current").write_text(f"{GIB}\n")
    assert read_memory(proc, cgroup) == (2 * GIB, 1 * GIB)
    (cgroup / "memory.max").write_text(f"{64 * GIB}\n")
    assert read_memory(proc, cgroup) == (8 * GIB, 4 * GIB)


def test_a_folder_that_is_not_there_yet_is_tried_at_its_nearest_parent(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    folder = read_folder("topics", path)
    assert folder.problem == ""
    assert folder.has_links
    assert folder.free
    assert folder.path == path
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_is_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert read_folder("jobs", tmp_path / "file").problem
    assert read_folder("jobs", tmp_path / "file" / "below").problem


def test_hard_links_are_tried_and_not_assumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("os.link", refuse)
    assert not read_folder("topics", tmp_path).has_links


def test_the_spark_that_is_asked_for_is_the_one_that_is_installed_with_headgate() -> None:
    project = Path(__file__).parents[2] / "pyproject.toml"
    pinned = re.search(r'"pyspark==([0-9.]+)"', project.read_text())
    assert pinned
    assert pinned[1] == SPARK_VERSION
