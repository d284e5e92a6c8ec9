"""Dead letters of a job on embedded topics, whose folder is made by hand."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from audited_job import AuditedJob, make_job
from typer.testing import CliRunner, Result

from headgate import Flow, HeadgateError
from headgate.cli.app import app
from headgate.cli.views.dead_letters import dump
from headgate.connectors import Kafka, Pulsar
from headgate.connectors.contract.places import PlacedRecord
from headgate.connectors.files.folder.topic import TopicFolder
from headgate.connectors.files.log import FilesLog
from headgate.connectors.files.places import FilesPlaces
from headgate.connectors.logs import bind
from headgate.flow.operators.nodes import label
from headgate.flow.topics import Topic
from headgate.jobs.dead_letters import replay as replaying
from headgate.jobs.dead_letters.letter import find_letter, is_text
from headgate.jobs.dead_letters.replay import Replayed
from headgate.jobs.dead_letters.way_back import find_way_back
from headgate.jobs.folder_home import FolderHome

SEEN = 1_763_300_000_000
LIMIT = 256 * 1024


def declare() -> Flow:
    flow = Flow("shop")
    orders = flow.stream("orders", "n BIGINT NOT NULL")
    orders.select("n", "100 / n AS share").to("shares")
    visits = flow.stream("visits", "n BIGINT NOT NULL")
    visits.select("100 / n AS share").to("left")
    visits.to("right")
    return flow


def declare_tables() -> Flow:
    flow = Flow("shop")
    users = flow.table("users", "id BIGINT NOT NULL, name STRING", key="id")
    goods = flow.table("goods", "id BIGINT NOT NULL, at BIGINT NOT NULL", key="id", version="at")
    orders = flow.stream("orders", "user BIGINT, good BIGINT")
    known = orders.enrich("who", users, on="user", into="u").matched
    known.enrich("what", goods, on="good", into="g").matched.to("sold")
    return flow


@dataclass
class Place:
    """The topics and the job of one test; letters are written as the kernel does."""

    root: Path
    topics: Path
    job: AuditedJob
    batches: int = 0

    def publish(self, topic: str, lines: Sequence[bytes], *, partition: int = 0) -> list[int]:
        """Write a file of an input and its line in the ledger; return where lines begin."""
        folder = TopicFolder(self.topics / topic)
        folder.create(2)
        data = b"".join(line + b"\n" for line in lines)
        path = folder.publish(data, partition=partition)
        known = folder.read_ledger()
        page = {
            "path": path.relative_to(folder.path).as_posix(),
            "size": len(data),
            "start": sum(each.size for each in known),
            "seen": SEEN + len(known),
        }
        ledger = folder.path / "_ledger"
        ledger.mkdir(exist_ok=True)
        content = {"format": 1, "first": len(known), "files": [page]}
        (ledger / f"{len(known):020d}.json").write_text(json.dumps(content))
        return [sum(len(line) + 1 for line in lines[:at]) for at in range(len(lines))]

    def write(self, *letters: bytes, task: int = 0) -> None:
        """Write letters as one task of one batch does."""
        folder = TopicFolder(self.topics / "dead-letters")
        folder.create(2)
        name = f"{self.job.lineage}-{self.batches:010d}-{task:05d}.jsonl"
        folder.publish(b"".join(each + b"\n" for each in letters), partition=task, name=name)
        self.batches += 1

    def replay(self, **asked: Any) -> Replayed:
        return FolderHome(self.root).replay_dead_letters(
            "shop", replaying.ReplayRequest(**asked), by="test"
        )

    def lines(self, topic: str) -> list[bytes]:
        folder = TopicFolder(self.topics / topic)
        return [line for file in folder.files() for line in file.path.read_bytes().splitlines()]

    def ids(self, **asked: Any) -> list[str]:
        found = FolderHome(self.root).dead_letters("shop", **asked)
        return [each.id for each in found.letters]


def letter(
    raw: bytes | None,
    spot: tuple[int, int] = (0, 0),
    *,
    source: str = "orders",
    topic: str | None = "orders",
    code: str = "BAD_JSON",
    size: int | None = None,
    timestamp: int | None = None,
    job: str | None = None,
) -> bytes:
    """Return a letter as the kernel writes it; release 0.7 left the job out."""
    content = {
        **({} if job is None else {"job": job}),
        "source": source,
        "topic": topic,
        "partition": spot[0],
        "offset": spot[1],
        "timestamp": SEEN + spot[0] if timestamp is None else timestamp,
        "code": code,
        "reason": f"why {code}",
        "bytes": len(raw or b"") if size is None else size,
        "raw": None if raw is None else base64.b64encode(raw[:LIMIT]).decode(),
    }
    return json.dumps(content).encode()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return make_place(tmp_path, declare())


def make_place(tmp_path: Path, flow: Flow) -> Place:
    topics, root = tmp_path / "topics", tmp_path / "home"
    graph = bind(flow.graph(), FilesLog(topics))
    sources = (*graph.streams(), *graph.tables())
    return Place(root, topics, make_job(root, graph, {each.id: None for each in sources}))


def run(place: Place, *args: str) -> Result:
    return CliRunner().invoke(app, ["dead-letters", "shop", *args, "--home", str(place.root)])


def refused(call: Callable[[], object]) -> HeadgateError:
    with pytest.raises(HeadgateError) as caught:
        call()
    return caught.value


def test_a_job_without_dead_letters_has_none(place: Place) -> None:
    found = FolderHome(place.root).dead_letters("shop")
    assert (found.total, found.counts, found.letters) == (0, (), ())
    assert "no dead letters" in run(place, "list").stdout
    assert place.replay().total == 0


def test_letters_are_counted_by_topic_and_reason_and_listed_newest_first(place: Place) -> None:
    place.write(letter(b"1"), letter(b"2"), letter(b"3", code="NOT_UTF8"))
    place.write(letter(b"4", source="visits", topic="visits"), b'{"no": "letter"}', task=1)
    found = FolderHome(place.root).dead_letters("shop", limit=3)
    assert {(each.topic, each.reason): each.count for each in found.counts} == {
        ("orders", "BAD_JSON"): 2,
        ("orders", "NOT_UTF8"): 1,
        ("visits", "BAD_JSON"): 1,
    }
    assert (found.total, found.at_least, found.foreign) == (4, False, 1)
    lineage = place.job.lineage
    second = len(letter(b"1")) + 1
    assert [each.id for each in found.letters][:2] == [
        f"{lineage}-1-1:0",
        f"{lineage}-0-0:{2 * second}",
    ]
    assert [each.raw for each in found.letters] == [b"4", b"3", b"2"]


def test_jobs_that_share_a_topic_see_their_own_letters_alone(place: Place) -> None:
    starts = place.publish("orders", [b"a", b"b", b"c"])
    place.write(
        letter(b"a", (0, starts[0]), job="shop"),
        letter(b"b", (0, starts[1]), job="bank"),
        # Letters of release 0.7: the flow reads the one's topic, and has the other's operator not.
        letter(b"c", (0, starts[2])),
        letter(b"d", topic="clicks", source="clicks"),
        letter(b'{"n":0}', source="select 'nowhere'", topic=None, code="EXPRESSION_FAILED"),
        letter(b'{"n":1}', source="select 'n'", topic=None, code="NO_KEY", job="bank"),
    )
    found = FolderHome(place.root).dead_letters("shop")
    assert (found.total, found.others, found.foreign) == (2, 4, 0)
    assert [each.raw for each in found.letters] == [b"c", b"a"]
    assert {(each.topic, each.count) for each in found.counts} == {("orders", 2)}
    assert "4 letters in the topic belong to other jobs" in run(place, "list").stderr
    tailed = FolderHome(place.root).output_records("shop", "dead-letters")
    assert [json.loads(each.value or "")["raw"] for each in tailed] == ["YQ==", "Yw=="]

    mine, foreign = (each.id for each in found.letters)
    other = _id_behind(foreign, letter(b"a", (0, starts[0]), job="shop"))
    for ask in (
        partial(FolderHome(place.root).dead_letter, "shop", other),
        partial(place.replay, ids=[other]),
    ):
        error = refused(ask)
        assert error.code == "DEAD_LETTER_NOT_FOUND"
        assert "it is of job 'bank'" in error.message
    assert place.replay(dry_run=True).total == 2
    assert place.replay().sent == {"orders": 2}
    assert place.lines("orders") == [b"a", b"b", b"c", b"a", b"c"]
    assert mine != other


def _id_behind(place: str, line: bytes) -> str:
    """Return the id of the letter that stands behind another in its file."""
    file, _, byte = place.rpartition(":")
    return f"{file}:{int(byte) + len(line) + 1}"


def test_a_reason_chooses_letters_and_all_are_counted(place: Place) -> None:
    place.write(*[letter(b"%d" % n) for n in range(50)], letter(b"x", code="NOT_UTF8"))
    place.write(*[letter(b"%d" % n) for n in range(50)])
    found = FolderHome(place.root).dead_letters("shop", reason="not_utf8", limit=2)
    assert [each.raw for each in found.letters] == [b"x"]
    assert found.total == 101


def test_what_was_counted_is_not_read_again_and_what_is_gone_does_not_count(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    real = FilesPlaces.read

    def note(self: FilesPlaces, stretch: Any) -> Any:
        read.append(stretch.part)
        return real(self, stretch)

    monkeypatch.setattr(FilesPlaces, "read", note)
    place.write(letter(b"1"))
    place.write(letter(b"2"))
    assert FolderHome(place.root).dead_letters("shop").total == 2
    place.write(letter(b"3"))
    read.clear()
    assert FolderHome(place.root).dead_letters("shop").total == 3
    assert len(read) == 1
    files = sorted((place.topics / "dead-letters").rglob("*.jsonl"))
    files[0].unlink()
    assert FolderHome(place.root).dead_letters("shop").total == 2


def test_very_many_letters_are_counted_as_at_least_so_many(place: Place) -> None:
    for _ in range(4):
        place.write(*[letter(b"1")] * 10)
    found = FolderHome(place.root).dead_letters("shop", count_up_to=20)
    assert (found.total, found.at_least) == (20, True)
    # The next look goes on where this one ended.
    assert FolderHome(place.root).dead_letters("shop", count_up_to=20).total == 40


def test_show_tells_every_field_and_raw_gives_the_bytes(place: Place) -> None:
    place.write(letter(b'{"n": ', (3, 17)), letter(b"\x00\xff\x1b[2J", code="NOT_UTF8"))
    newest, oldest = place.ids()
    told = json.loads(run(place, "show", oldest, "--json").stdout)
    assert (told["topic"], told["partition"], told["offset"]) == ("orders", 3, 17)
    assert (told["reason"], told["detail"]) == ("BAD_JSON", "why BAD_JSON")
    assert (told["text"], base64.b64decode(told["raw"])) == ('{"n": ', b'{"n": ')
    assert (told["is_text"], told["cut"], told["bytes"]) == (True, False, 6)
    assert '{"n": ' in run(place, "show", oldest).stdout
    binary = run(place, "show", newest)
    assert "00 ff 1b 5b 32 4a" in binary.stdout
    assert "\x1b" not in binary.stdout
    assert run(place, "show", newest, "--raw").stdout_bytes == b"\x00\xff\x1b[2J"


def test_an_id_that_is_none_is_refused_with_the_next_step(place: Place) -> None:
    place.write(letter(b"1"))
    (known,) = place.ids()
    name = known.partition(":")[0]
    for wrong in (f"{name}:1", "nothing", f"{name}:-1", f"{name}:²", "../../etc/passwd:0"):
        error = refused(partial(FolderHome(place.root).dead_letter, "shop", wrong))
        assert error.code == "DEAD_LETTER_NOT_FOUND"
        assert error.hint == "headgate dead-letters shop list"
    assert refused(lambda: place.replay(ids=[known, "nothing"])).code == "DEAD_LETTER_NOT_FOUND"
    assert "orders" not in {each.name for each in place.topics.iterdir()}


def test_files_made_by_hand_have_ids_too(place: Place) -> None:
    folder = place.topics / "dead-letters" / "by hand" / "old"
    folder.mkdir(parents=True)
    (folder / "some.jsonl").write_bytes(letter(b"1") + b"\n\n" + letter(b"2"))
    ids = place.ids()
    assert ids == [f"by hand@old@some:{len(letter(b'1')) + 2}", "by hand@old@some:0"]
    assert [FolderHome(place.root).dead_letter("shop", each).raw for each in ids] == [b"2", b"1"]


def test_a_replay_sends_each_record_once_to_its_topic_and_partition(place: Place) -> None:
    lines = [b"bad one", b'{"n": 1}', b"bad two\r"]
    starts = place.publish("orders", lines, partition=1)
    place.publish("visits", [b"bad three"])
    place.write(letter(b"bad one", (0, starts[0])), letter(b"bad two\r", (0, starts[2])))
    place.write(letter(b"bad three", (0, 0), source="visits", topic="visits"))
    done = place.replay()
    assert done.sent == {"orders": 2, "visits": 1}
    assert place.lines("orders") == [*lines[:2], b"bad two", b"bad one", b"bad two"]
    assert place.lines("visits") == [b"bad three", b"bad three"]
    assert len(list((place.topics / "orders" / "part-1").iterdir())) == 2
    again = place.replay()
    assert (again.total, again.skipped) == (0, 3)
    assert place.lines("visits") == [b"bad three", b"bad three"]
    assert all(each.replayed_at for each in FolderHome(place.root).dead_letters("shop").letters)
    third = place.replay(reason="bad_json", again=True)
    assert third.sent == {"orders": 2, "visits": 1}


def test_a_dry_run_sends_and_remembers_nothing(place: Place) -> None:
    place.publish("orders", [b"bad"])
    place.write(letter(b"bad"))
    told = run(place, "replay", "--all", "--dry-run")
    assert told.stdout == "1 record would be sent: 1 to 'orders'\n"
    assert place.lines("orders") == [b"bad"]
    assert not (place.job.home.path / "replays.jsonl").exists()
    assert place.replay(ids=place.ids()).sent == {"orders": 1}


def test_a_letter_whose_file_is_gone_is_replayed_from_what_it_holds(place: Place) -> None:
    place.publish("orders", [b'{"n": 1}'])
    place.write(letter(b"bad", (7, 0)))
    assert place.replay().sent == {"orders": 1}
    assert place.lines("orders") == [b'{"n": 1}', b"bad"]


def test_a_cut_record_is_sent_whole_where_it_is_kept_and_refused_where_it_is_not(
    place: Place,
) -> None:
    long = b"x" * (LIMIT + 10)
    place.publish("orders", [long])
    place.write(letter(long, (0, 0)), letter(long, (5, 0)))
    gone, kept = place.ids()
    result = run(place, "replay", "--all", "--json")
    done = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (done["sent"], done["refused"], done["refused_for"]) == (1, 1, {"cut": 1})
    assert [each["id"] for each in done["refused_letters"]] == [gone]
    assert place.lines("orders") == [long, long]
    shown = FolderHome(place.root).dead_letter("shop", kept)
    assert (shown.cut, shown.size, len(shown.raw or b"")) == (True, len(long), LIMIT)
    assert f"refused {gone}: it holds" in run(place, "replay", "--all").stdout


def test_another_record_at_the_same_place_is_not_sent_in_its_stead(place: Place) -> None:
    long = b"x" * (LIMIT + 10)
    place.publish("orders", [b"y" * len(long)])
    place.write(letter(long, (0, 0)))
    assert place.replay().refused == {"cut": 1}


def test_the_record_of_a_row_that_failed_is_sent_where_it_went_no_other_way(
    place: Place,
) -> None:
    flow = declare().graph()
    ours, theirs = (label(node) for node in flow.nodes if label(node).startswith("select"))
    (start,) = place.publish("orders", [b'{"n": 0}'])
    place.publish("visits", [b'{"n": 0}'])
    for name in (ours, theirs, "select 'gone'"):
        row = letter(
            b'{"n":0}', (0, start), source=name, topic=None, code="EXPRESSION_FAILED", job="shop"
        )
        place.write(row)
    found = FolderHome(place.root).dead_letters("shop")
    assert [each.topic for each in found.letters] == ["", "visits", "orders"]
    done = place.replay()
    assert done.sent == {"orders": 1}
    assert place.lines("orders") == [b'{"n": 0}', b'{"n": 0}']
    assert {each.words.split(" (")[0] for each in done.named} == {
        "its record went other ways too",
        "the flow has no select 'gone' any more",
    }


def test_a_record_with_two_letters_is_sent_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = place.publish("orders", [b"bad one", b"bad two"])
    one, two = letter(b"bad one", (0, starts[0])), letter(b"bad two", (0, starts[1]))
    place.write(one, one)
    dry = place.replay(dry_run=True)
    assert (dry.total, dry.skipped) == (1, 1)
    done = place.replay()
    assert (done.total, done.skipped) == (1, 1)
    place.write(one, two)
    later = place.replay()
    assert (later.total, later.skipped) == (1, 3)
    assert place.lines("orders") == [b"bad one", b"bad two", b"bad one", b"bad two"]
    assert all(each.replayed_at for each in FolderHome(place.root).dead_letters("shop").letters)
    assert FolderHome(place.root).dead_letter("shop", place.ids()[1]).replayed_by == "test"
    monkeypatch.setattr(replaying, "_AT_ONCE", 1)
    assert place.replay(again=True).total == 2


def test_a_record_that_fails_again_after_its_replay_stays_due(place: Place) -> None:
    place.publish("orders", [b"bad"])
    place.write(letter(b"bad", (0, 0)))
    assert place.replay().total == 1
    # The kernel sees what was replayed as the first line of the topic's next file.
    place.write(letter(b"bad", (1, 0)))
    again = place.replay()
    assert (again.total, again.skipped) == (1, 1)


def test_a_topic_that_another_source_reads_too_takes_no_record_back(tmp_path: Path) -> None:
    flow = Flow("shop")
    flow.stream("orders", "n BIGINT NOT NULL").select("n").to("numbers")
    flow.stream("orders", "n STRING", uid="texts").select("n").to("texts-out")
    place = make_place(tmp_path, flow)
    place.publish("orders", [b"bad"])
    place.write(letter(b"bad", (0, 0)))
    done = place.replay()
    assert (done.total, done.refused) == (0, {"no-way": 1})
    assert done.named[0].words == (
        "source 'texts' also reads that topic, and would read the record twice"
    )


@pytest.mark.parametrize(
    ("other", "reads"),
    [
        (Kafka("orders", servers="b:9092"), True),
        (Kafka("all", servers="a:9092", pattern="ord.*"), True),
        (Kafka("all", servers="a:9092", pattern="ord"), False),
        (Kafka("orders", servers="c:9092"), False),
        (Kafka("visits", servers="a:9092"), False),
        (Pulsar("orders", service="pulsar://a:9092"), False),
    ],
)
def test_topics_are_the_same_by_log_and_name_or_pattern(other: Topic, reads: bool) -> None:
    flow = Flow("shop")
    ours = Kafka("orders", servers="a:9092,b:9092")
    flow.stream(ours, "n BIGINT NOT NULL", uid="orders").to("numbers")
    flow.stream(other, "n STRING", uid="other").to("texts")
    record = PlacedRecord(place="0:1", partition=0, timestamp=1, key=None, value=letter(b"bad"))
    found = find_letter(record)
    assert found is not None
    way = find_way_back(flow.graph(), found)
    assert (way.topic is None) is reads
    assert ("source 'other' also reads" in way.why_not) is reads


def test_a_row_of_a_table_without_version_is_sent_only_if_told_so(tmp_path: Path) -> None:
    place = make_place(tmp_path, declare_tables())
    for topic in ("users", "goods"):
        place.publish(topic, [b"bad"])
        place.write(letter(b"bad", source=topic, topic=topic))
    result = run(place, "replay", "--all", "--json")
    done = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (done["sent_to"], done["refused_for"]) == ({"goods": 1}, {"old-row": 1})
    assert "table 'users' has no version column" in done["refused_letters"][0]["words"]
    told = run(place, "replay", "--all", "--into-tables")
    assert told.stdout.startswith("1 record sent and acknowledged: 1 to 'users'\n")
    assert place.lines("users") == [b"bad", b"bad"]


def test_replay_wants_to_know_which(place: Place) -> None:
    for args in (("replay",), ("replay", "0:1", "--all"), ("show",), ("list", "0:1")):
        result = run(place, *args)
        assert result.exit_code == 2
        assert "BAD_USAGE" in result.stderr


def test_a_job_that_never_ran_has_no_letters_to_show(tmp_path: Path) -> None:
    (tmp_path / "jobs" / "idle").mkdir(parents=True)
    (tmp_path / "jobs" / "idle" / "status.json").write_text('{"format": 1, "state": "FAILED"}')
    assert refused(lambda: FolderHome(tmp_path).dead_letters("idle")).code == "JOB_NEVER_RAN"
    assert refused(lambda: FolderHome(tmp_path).dead_letters("other")).code == "JOB_NOT_FOUND"


@pytest.mark.parametrize(
    ("raw", "cut", "shown"),
    [
        ("Grüße\t€\n".encode(), False, True),
        (b"", False, True),
        (b"a\x00b", False, False),
        (b"a\x1b[2J", False, False),
        (b"\xff\xfe", False, False),
        ("€".encode()[:2], True, True),
        ("€".encode()[:2], False, False),
        (b"\xff" + b"abcd", True, False),
    ],
)
def test_text_is_what_a_terminal_can_show(raw: bytes, cut: bool, shown: bool) -> None:
    assert is_text(raw, cut=cut) is shown


def test_a_dump_shows_every_byte() -> None:
    lines = list(dump(bytes(range(40))))
    assert len(lines) == 3
    assert lines[2] == f"00000020  20 21 22 23 24 25 26 27  {'':<23}   !\"#$%&'"


def test_lines_are_found_from_the_end_whatever_their_length(tmp_path: Path) -> None:
    folder = TopicFolder(tmp_path / "t")
    folder.create(1)
    lines = [b"%d " % n + b"x" * (n * n * 700) for n in range(20)]
    folder.publish(b"\n".join(lines))
    places = FilesPlaces(folder.path)
    for count in (0, 1, 5, 20, 30):
        found = places.last(count)
        assert [each.value for each in found] == lines[len(lines) - min(count, 20) :]
        assert places.find([each.place for each in found]) == {each.place: each for each in found}
