"""State that an older release wrote in another form is refused before there is any Spark.

The stored run is of the first form: its manifest, its checkpoint and all that is kept of it here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from stored_run import LAST, facts, local, unpack

from headgate import Flow, Graph, HeadgateError
from headgate._codec import encode
from headgate.checkpoints import manifest as manifests
from headgate.checkpoints import savepoint as savepoints
from headgate.checkpoints.catalog import keep, read_manifest
from headgate.checkpoints.state_format import STATE_FORMAT, check_state_format
from headgate.connectors.logs import bind, parse_log
from headgate.jobs.checkpoints import listing, portable
from headgate.jobs.checkpoints.listing import verify_anything
from headgate.jobs.checkpoints.portable import state_folder, take_portable
from headgate.jobs.checkpoints.restore_plan import find_target, plan_restore
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder, read_json, write_json
from headgate.jobs.runs.lineage import find_run, new_run, write_run
from headgate.jobs.startup.foreground import run_job
from headgate.jobs.state.client import StateDesk
from headgate.jobs.state.places import Place, list_places
from headgate.jobs.state.values import Held
from headgate.jobs.values import RunOptions, Watcher

JOB, RUN = "shop", "20261115T152501-31b689"
NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
FIRST = "its state has format 1 (headgate 0.6 and older), and this release reads 2"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobFolder:
    """Give the stored run as the present one of a job, with a checkpoint and a savepoint."""
    monkeypatch.chdir(tmp_path)
    home = JobFolder(tmp_path / "home", JOB)
    folder = home.run_folder(RUN)
    folder.mkdir(parents=True)
    checkpoint = unpack(folder)
    (folder / "flow.json").rename(tmp_path / "flow.json")
    home.write_job(RUN, flow="flow.json", options=encode(RunOptions(home=home.root)))
    run = find_run(home, RUN)
    assert run is not None
    told = facts(
        lineage=RUN,
        tables={name: [each.to_json() for each in all_] for name, all_ in run.history.items()},
        keys={name: list(key) for name, key in run.keys.items()},
        flow=json.loads(run.flow.to_json()),
    )
    keep(checkpoint, LAST - 1, home.checkpoints_folder(RUN), told)
    savepoints.create(checkpoint, LAST, home.savepoints_folder / "before", told)
    for kept in (
        local(home.checkpoints_folder(RUN)) / f"chk-{LAST - 1}",
        home.savepoints_folder / "before",
    ):
        make_old(kept)
    return home


def make_old(folder: Path) -> None:
    """Rewrite a manifest as releases wrote it that knew one form of state."""
    file = manifests.find_file(folder)
    assert file is not None
    content = json.loads(file.read_text())
    del content["state_format"]
    file.write_text(json.dumps({**content, "format": 1}))


class NoLauncher:
    """Fails whoever would start Spark."""

    def launch(self, _spec: Any) -> Any:
        raise AssertionError("an attempt is launched")

    def clean_up(self) -> None:
        """Nothing was started."""


def start(home: JobFolder, **options: Any) -> None:
    on = f"files:{home.root.parent / 'topics'}"
    chosen = RunOptions(home=home.root, on=on, **options)
    run_job("flow.json", chosen, Watcher(), launcher=NoLauncher())


def refusal(what: Callable[[], Any]) -> HeadgateError:
    """Return the error of a refusal for the state's form."""
    with pytest.raises(HeadgateError) as caught:
        what()
    assert (caught.value.code, caught.value.retryable) == ("STATE_FORMAT_UNSUPPORTED", False)
    return caught.value


def test_a_job_is_not_resumed_and_its_run_stays_as_it_was(home: JobFolder) -> None:
    before = (home.run_folder(RUN) / "run.json").read_bytes()
    error = refusal(lambda: start(home))
    assert error.message == f"cannot resume job 'shop': {FIRST}"
    assert "headgate savepoint shop --portable" in error.hint
    assert "--fresh" in error.hint
    assert (home.run_folder(RUN) / "run.json").read_bytes() == before
    assert home.find_present_run() == RUN


def test_a_fresh_start_gets_as_far_as_spark(home: JobFolder) -> None:
    with pytest.raises(AssertionError, match="launched"):
        start(home, fresh=True)


@pytest.mark.parametrize(
    ("source", "name"), [(f"chk-{LAST - 1}", f"chk-{LAST - 1}"), ("before", "before")]
)
def test_neither_a_checkpoint_nor_a_savepoint_is_restored(
    home: JobFolder, source: str, name: str
) -> None:
    runs = sorted((home.path / "runs").iterdir())
    error = refusal(lambda: start(home, restore_from=source))
    assert error.message == f"cannot restore job 'shop' from {name}: {FIRST}"
    assert "headgate savepoint shop --portable" in error.hint
    assert sorted((home.path / "runs").iterdir()) == runs


def plan(home: JobFolder, graph: Graph, source: str, drop: Collection[str] = ()) -> Any:
    kept = find_target(home, source=source, at=None, now=NOW)
    return plan_restore(home, graph, kept, RunOptions(drop_state=tuple(drop)))


def test_what_leaves_all_of_the_state_behind_may_go_on_from_its_positions(home: JobFolder) -> None:
    run = find_run(home, RUN)
    assert run is not None
    uids = ("with-user", "with-item")
    found = plan(home, run.flow, "before", uids)
    assert (found.state_taken, found.state_dropped, found.as_it_was) == ((), uids, False)
    refusal(lambda: plan(home, run.flow, "before", uids[:1]))


def test_where_there_is_no_portable_form_the_hint_has_what_is_left(home: JobFolder) -> None:
    flow = Flow(JOB)
    events = flow.stream("events", "id BIGINT, at BIGINT", event_time="at")
    events.dedupe("once", by="id", within="1h").unique.to("out")
    graph = bind(flow.graph(), parse_log("files:topics"))
    kept = home.savepoints_folder / "before"
    file = kept / "manifest.json"
    content = json.loads(file.read_text())
    content |= {
        "operators": ["once"],
        "tables": {},
        "keys": {},
        "flow": json.loads(graph.to_json()),
    }
    file.write_text(json.dumps(content))
    assert refusal(lambda: plan(home, graph, "before")).hint == (
        "add --drop-state once to go on without the state"
    )
    run = new_run(home, graph, parallelism=2, checkpoints=None, now=NOW)
    write_run(home, run)
    told = home.run_folder(run.lineage) / "run.json"
    old = read_json(told, newest=3)
    assert old is not None
    write_json(told, {**{k: v for k, v in old.items() if k != "state_format"}, "format": 1})
    home.write_job(run.lineage, flow="flow.json", options={})
    Path("flow.json").write_text(flow.graph().to_json())
    assert refusal(lambda: start(home)).hint == (
        "start empty with --fresh, or go on with headgate 0.6"
    )


def test_no_portable_savepoint_is_taken_of_it(home: JobFolder) -> None:
    error = refusal(lambda: take_portable(home, to=home.root / "taken"))
    assert error.message == f"cannot take a portable savepoint of job 'shop': {FIRST}"
    assert not (home.root / "taken").exists()


def test_a_portable_savepoint_of_an_older_release_is_as_good_as_one_of_this(
    home: JobFolder,
) -> None:
    run = find_run(home, RUN)
    assert run is not None
    folder = home.root / "taken"
    for uid in run.operators:
        state_folder(folder, uid).mkdir(parents=True)
    content = portable._describe(home, run, LAST, run.checkpoint, dict.fromkeys(run.operators, 1))
    (folder / portable.FILE).write_text(json.dumps(content))
    assert content["format"] == portable.FORMAT == 1
    assert "state_format" not in content
    assert plan(home, run.flow, str(folder)).state_taken == run.operators


@pytest.mark.parametrize("at", [None, f"chk-{LAST - 1}", "before"])
def test_its_state_is_listed_and_not_read(home: JobFolder, at: str | None) -> None:
    desk = StateDesk(home.root)
    asked: list[Callable[[], Any]] = [
        lambda: desk.look_up(JOB, "with-user", "1", at=at),
        lambda: desk.first_rows(JOB, "with-user", at=at),
        lambda: desk.query(JOB, "select 1", at=at),
    ]
    for each in asked:
        error = refusal(each)
        assert error.message == f"cannot read the state of job 'shop' at {at or 'now'}: {FIRST}"
    assert not (home.root / "state-reader").exists()
    assert [each.uid for each in FolderHome(home.root).operators(JOB, at=at).operators] == [
        "with-user",
        "with-item",
    ]


def test_a_history_says_which_checkpoints_are_of_the_older_form(home: JobFolder) -> None:
    refusal(lambda: StateDesk(home.root).history(JOB, "with-user", "1"))
    run = find_run(home, RUN)
    assert run is not None
    keep(run.checkpoint, LAST, home.checkpoints_folder(RUN), read_facts(home, STATE_FORMAT))
    told = read_json(home.run_folder(RUN) / "run.json")
    assert told is not None
    write_json(
        home.run_folder(RUN) / "run.json", {**told, "format": 2, "state_format": STATE_FORMAT}
    )
    found = {each.checkpoint: each for each in list_places(home, "with-user").kept}
    assert isinstance(found[f"chk-{LAST}"], Place)
    for name in (f"chk-{LAST - 1}", "before"):
        old = found[name]
        assert isinstance(old, Held)
        assert FIRST in old.problem


def read_facts(home: JobFolder, state_format: int) -> manifests.CheckpointFacts:
    told = read_manifest(home.savepoints_folder / "before").facts
    return facts(
        lineage=RUN, tables=told.tables, keys=told.keys, flow=told.flow, state_format=state_format
    )


def test_its_files_are_listed_and_verified_and_its_state_is_not_opened(
    home: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "open_state", NoLauncher().launch)
    assert [each.status for each in FolderHome(home.root).checkpoints(JOB)] == ["COMPLETED"] * 2
    found = verify_anything(home.root, JOB)
    assert {each.id: (each.problems, each.rows) for each in found} == {
        f"chk-{LAST - 1}": ((), None),
        "before": ((), None),
        "present": ((), None),
    }


def test_a_savepoint_that_is_copied_out_of_it_says_so(home: JobFolder) -> None:
    taken = FolderHome(home.root).take_savepoint(JOB, to=None)
    assert read_manifest(taken.folder).facts.state_format == 1
    refusal(lambda: start(home, restore_from=str(taken.folder)))


def test_what_is_kept_now_says_of_what_form_it_is(home: JobFolder) -> None:
    run = find_run(home, RUN)
    assert run is not None
    kept = keep(run.checkpoint, LAST, home.root / "kept", facts())
    told = json.loads((kept.folder / "checkpoint.json").read_text())
    assert (told["format"], told["state_format"]) == (2, STATE_FORMAT)
    assert read_manifest(kept.folder).facts.has_known_state
    write_run(home, new_run(home, run.flow, parallelism=2, checkpoints=None, now=NOW))
    [file] = [each for each in home.path.glob("runs/*/run.json") if each.parent.name != RUN]
    told = json.loads(file.read_text())
    # Releases that know one form of state, or one placement of rows, refuse the file as a whole.
    assert (told["format"], told["state_format"]) == (3, STATE_FORMAT)


def test_a_flow_without_state_goes_on_whatever_wrote_its_run(home: JobFolder) -> None:
    flow = Flow(JOB)
    flow.stream("orders", "id BIGINT NOT NULL").to("out")
    told = read_json(home.run_folder(RUN) / "run.json")
    assert told is not None
    plain = bind(flow.graph(), parse_log(f"files:{home.root.parent / 'topics'}"))
    told |= {"operators": [], "flow": json.loads(plain.to_json())}
    write_json(home.run_folder(RUN) / "run.json", told)
    Path("flow.json").write_text(flow.graph().to_json())
    with pytest.raises(AssertionError, match="launched"):
        start(home)


def test_state_of_a_form_to_come_needs_a_newer_release() -> None:
    error = refusal(lambda: check_state_format(9, what="cannot resume job 'x'", hint="never told"))
    assert error.message == (
        "cannot resume job 'x': its state has format 9, and this release reads 2"
    )
    assert error.hint == "use the release of headgate that wrote it, or a newer one"
