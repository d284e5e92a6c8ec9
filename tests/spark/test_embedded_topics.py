"""Jobs on embedded topics: every record is read once, whatever the files look like."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, bag, refused, stop_now

from headgate import Console, Files, Flow
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.values import JobSnapshot

MIB = 1024 * 1024
_MANY = 4000


def copying(name: str = "copy", source: str = "in", target: str = "out") -> Flow:
    """Return a flow that writes the numbers it reads."""
    flow = Flow(name)
    flow.stream(source, "n BIGINT NOT NULL, text STRING").select("n").to(target)
    return flow


def numbers(*ns: int) -> list[Any]:
    """Return one record for each number."""
    return [{"n": n} for n in ns]


def wait_for(condition: Callable[[JobSnapshot], bool], then: Callable[[], object]) -> Any:
    """Return a watcher that does something once; a job that never gets there is ended."""
    done: list[bool] = []

    def watch(snapshot: JobSnapshot) -> None:
        if not done and (condition(snapshot) or snapshot.elapsed > timedelta(seconds=60)):
            done.append(True)
            then()

    return watch


def test_files_at_any_depth_are_read_and_hidden_ones_are_not(bench: Bench) -> None:
    bench.put("in", numbers(1), path="a.jsonl")
    bench.put("in", numbers(2), path="part-0/a.jsonl")
    bench.put("in", numbers(3), path="x/y/z/deep.jsonl")
    bench.put("in", numbers(4), path="Größe/ünïcode 😀.jsonl")
    bench.put("in", numbers(91), path="_hidden.jsonl")
    bench.put("in", numbers(92), path=".hidden.jsonl")
    bench.put("in", numbers(93), path="_hidden/a.jsonl")
    bench.put("in", numbers(94), path="x/.hidden/a.jsonl")
    bench.put("in", numbers(95), path="notes.txt")
    done = bench.run(copying())
    assert bench.bag("out") == bag(numbers(1, 2, 3, 4))
    assert done.state is JobState.FINISHED
    assert done.totals.inputs == {"in": 4}
    assert done.totals.outputs == {"out": 4, "dead-letters": 0}
    assert done.totals.lag_bytes == {"in": 0}


def test_lines_end_as_they_like_and_blank_ones_are_no_records(bench: Bench) -> None:
    bench.put_bytes("in", b'\n\r\n  \t\n{"n": 1}\r\n\n{"n": 2}   \n \r\n{"n": 3}')
    bench.put_bytes("in", b"")
    bench.put_bytes("in", b"\n")
    bench.put_bytes("in", b'{"n": 4}')
    bench.put_bytes("in", b'\xef\xbb\xbf{"n": 5}\r\n')
    done = bench.run(copying())
    assert bench.bag("out") == bag(numbers(1, 2, 3, 4, 5))
    assert done.totals.inputs == {"in": 5}
    assert bench.read("dead-letters") == []


@pytest.mark.parametrize("empty_first", [True, False])
def test_files_without_a_byte_hold_nothing_up(bench: Bench, empty_first: bool) -> None:
    if empty_first:
        bench.put_bytes("in", b"")
        bench.put_bytes("in", b"")
        assert bench.run(copying()).totals.inputs.get("in", 0) == 0
    bench.put("in", numbers(1))
    bench.run(copying())
    bench.put_bytes("in", b"")
    bench.run(copying())
    assert bench.bag("out") == bag(numbers(1))


def test_topics_that_are_not_there_yet_are_empty(bench: Bench) -> None:
    done = bench.run(copying())
    assert (done.state, done.totals.batches) == (JobState.FINISHED, 0)
    bench.put("in", numbers(1))
    assert bench.run(copying()).totals.outputs["out"] == 1


def test_a_long_line_is_one_record(bench: Bench) -> None:
    long = {"n": 2, "text": "é" * (5 * MIB // 2)}
    bench.put("in", [{"n": 1}, json.dumps(long, ensure_ascii=False), {"n": 3}])
    done = bench.run(copying(), max_record=6 * MIB)
    assert bench.bag("out") == bag(numbers(1, 2, 3))
    assert done.totals.inputs == {"in": 3}


def test_a_line_above_the_limit_is_a_dead_letter_with_its_beginning(bench: Bench) -> None:
    line, other = (json.dumps({"n": 2, "text": "x" * size}) for size in (5 * MIB, 300_000))
    bench.put("in", [{"n": 1}, line, {"n": 3}, other])
    bench.run(copying(), max_record=200_000)
    assert bench.bag("out") == bag(numbers(1, 3))
    letters = {letter["offset"]: letter for letter in bench.read("dead-letters")}
    first, second = letters[9], letters[9 + len(line) + 1 + 9]
    assert (first["code"], first["bytes"]) == ("TOO_LARGE", len(line))
    assert (second["code"], second["bytes"]) == ("TOO_LARGE", len(other))
    assert len(first["raw"]) == len(second["raw"]) == 4 * ((256 * 1024 + 2) // 3)


@pytest.mark.parametrize(("max_batch", "parallelism"), [(100, 2), (7, 3)])
def test_batches_smaller_than_a_line_read_every_record_once(
    bench: Bench, max_batch: int, parallelism: int
) -> None:
    made = [{"n": n, "text": "é" * (n % 5)} for n in range(max_batch // 3)]
    third = len(made) // 3
    bench.put("in", made[:third])
    bench.put_bytes("in", b"")
    bench.put("in", made[third : 2 * third])
    last = "\r\n\n".join(json.dumps(each, ensure_ascii=False) for each in made[2 * third :])
    bench.put_bytes("in", last.encode())
    done = bench.run(copying(), max_batch=max_batch, parallelism=parallelism)
    assert bench.bag("out") == bag(numbers(*range(len(made))))
    assert done.totals.inputs == {"in": len(made)}
    assert done.totals.batches >= 4


def test_hundreds_of_small_files_are_read_in_one_go(bench: Bench) -> None:
    for n in range(400):
        bench.put("in", numbers(n), path=f"{n % 7}/{n}.jsonl")
    done = bench.run(copying())
    assert bench.bag("out") == bag(numbers(*range(400)))
    assert done.totals.batches == 1


def test_a_file_that_is_renamed_in_while_the_job_runs_is_read(bench: Bench) -> None:
    bench.put("in", numbers(1))
    steps = [
        wait_for(
            lambda now: now.totals.outputs.get("out") == 1,
            lambda: bench.put("in", numbers(2), path="later/2.jsonl"),
        ),
        wait_for(lambda now: now.totals.outputs.get("out") == 2, stop_now),
    ]

    def watch(now: JobSnapshot) -> None:
        for step in steps:
            step(now)

    done = bench.run(copying(), until_caught_up=False, watch=watch)
    assert done.state is JobState.STOPPED
    assert bench.bag("out") == bag(numbers(1, 2))


def test_positions_survive_a_moved_folder(bench: Bench) -> None:
    bench.put("in", numbers(1, 2))
    bench.run(copying())
    bench.topics.rename(bench.root / "elsewhere")
    bench.topics_name = "elsewhere"
    bench.put("in", numbers(3))
    done = bench.run(copying())
    assert done.totals.inputs == {"in": 1}
    assert bench.bag("out") == bag(numbers(1, 2, 3))


def test_a_topic_made_anew_is_read_from_its_start(bench: Bench) -> None:
    bench.put("in", numbers(1, 2), path="a.jsonl")
    bench.put("in", numbers(3), path="b.jsonl")
    bench.run(copying())
    shutil.rmtree(bench.topics / "in")
    bench.put("in", numbers(4), path="a.jsonl")
    done = bench.run(copying())
    assert done.totals.inputs == {"in": 1}
    assert bench.bag("out") == bag(numbers(1, 2, 3, 4))


def test_a_table_made_anew_takes_the_place_of_the_old_rows(bench: Bench) -> None:
    bench.put("t", [{"id": 1, "v": n} for n in range(10)])
    bench.put("in", [{"k": 1}])
    bench.run(_joining())
    shutil.rmtree(bench.topics / "t")
    bench.put("t", [{"id": 1, "v": 77}])
    bench.put("in", [{"k": 1}])
    bench.run(_joining())
    assert [row["row"]["v"] for row in bench.read("out")] == [9, 77]


def _joining() -> Flow:
    flow = Flow("joining")
    table = flow.table("t", "id BIGINT NOT NULL, v BIGINT", key="id")
    flow.stream("in", "k BIGINT").enrich("e", table, on="k", into="row").matched.to("out")
    return flow


def test_a_file_that_is_gone_before_it_was_read_is_told_as_data_lost(bench: Bench) -> None:
    # So many batches that the job is still at it when the watcher hears of the first one.
    lost = bench.put("in", numbers(*range(_MANY)), path="lost.jsonl")
    bench.put("in", numbers(_MANY), path="other.jsonl")
    lose = wait_for(lambda now: now.totals.batch is not None, lost.unlink)
    with refused("DATA_LOST") as caught:
        bench.run(copying(), max_batch=20, watch=lose)
    assert str(lost) in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.exit_code == 3


def test_a_file_that_shrank_is_told_as_data_lost(bench: Bench) -> None:
    cut = bench.put("in", numbers(*range(_MANY)))
    lose = wait_for(lambda now: now.totals.batch is not None, lambda: _cut(cut))
    with refused("DATA_LOST"):
        bench.run(copying(), max_batch=20, watch=lose)


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:10])


def test_two_jobs_that_read_one_topic_agree_on_its_order(bench: Bench) -> None:
    for n in range(5):
        bench.put("in", numbers(n))
    bench.run(copying("one", target="out-one"))
    ledger = _ledger(bench)
    bench.put("in", numbers(5))
    bench.run(copying("two", target="out-two"))
    bench.run(copying("one", target="out-one"))
    assert bench.bag("out-one") == bench.bag("out-two") == bag(numbers(*range(6)))
    assert _ledger(bench)[: len(ledger)] == ledger
    assert [entry["path"] for entry in _ledger(bench)] == [f"{n:06d}.jsonl" for n in range(1, 7)]


def _ledger(bench: Bench) -> list[Any]:
    pages = sorted((bench.topics / "in" / "_ledger").iterdir())
    return [entry for page in pages for entry in json.loads(page.read_text())["files"]]


def test_rows_for_the_console_reach_the_watcher_and_no_file(bench: Bench) -> None:
    flow = Flow("shown")
    flow.stream("in", "n BIGINT").to(Console(rows=3))
    bench.put("in", numbers(*range(10)))
    done = bench.run(flow, parallelism=2)
    assert done.totals.outputs == {"console": 10, "dead-letters": 0}
    assert [output for output, _ in bench.rows] == ["console"] * 3
    assert {row["n"] for _, row in bench.rows} <= set(range(10))
    assert not (bench.topics / "console").exists()


def test_some_rows_of_each_output_are_shown_on_demand(bench: Bench) -> None:
    bench.put("in", [*numbers(*range(10)), "x", "y", "z"])
    bench.run(copying(), print_rows=2, parallelism=2)
    assert sorted(output for output, _ in bench.rows) == ["dead-letters"] * 2 + ["out"] * 2
    assert bench.bag("out") == bag(numbers(*range(10)))


def test_topics_bound_on_their_own_lie_where_they_say(bench: Bench) -> None:
    flow = Flow("bound", dead_letters=Files("rejected", dir=bench.root / "r"))
    flow.stream(Files("in", dir=bench.root / "i"), "n BIGINT").to("out")
    (bench.root / "i").mkdir()
    (bench.root / "i" / "a.jsonl").write_text('{"n": 1}\nx')
    bench.run(flow)
    assert bench.bag("out") == bag(numbers(1))
    assert len(list((bench.root / "r").rglob("*.jsonl"))) == 1


def test_a_source_may_have_any_name_that_a_topic_may_have(bench: Bench) -> None:
    flow = Flow("9-names")
    table = flow.table("1.a-b_c", "id BIGINT NOT NULL", key="id")
    stream = flow.stream("1_a-b.c", "k BIGINT")
    stream.enrich("0-e", table, on="k", into="row").matched.to("-.x_Y")
    bench.put("1.a-b_c", [{"id": 1}])
    bench.put("1_a-b.c", [{"k": 1}, {"k": 2}])
    done = bench.run(flow)
    assert done.totals.inputs == {"1.a-b_c": 1, "1_a-b.c": 2}
    assert bench.bag("-.x_Y") == bag([{"k": 1, "row": {"id": 1}}])


def test_a_topic_that_lost_its_id_is_not_read_again(bench: Bench) -> None:
    bench.put("in", numbers(1, 2))
    bench.run(copying())
    file = bench.topics / "in" / "_topic.json"
    content = file.read_bytes()
    file.unlink()
    bench.put("in", numbers(3))
    with refused("TOPIC_UNREADABLE") as told:
        bench.run(copying())
    assert "_ledger" in told.value.hint
    assert not file.exists()
    assert bench.bag("out") == bag(numbers(1, 2))
    file.write_bytes(content)
    bench.run(copying())
    assert bench.bag("out") == bag(numbers(1, 2, 3))
