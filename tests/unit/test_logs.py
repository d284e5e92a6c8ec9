"""Logs bind the topics of a flow that are known by name alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate import Console, Files, Flow, HeadgateError
from headgate.connectors.logs import DEFAULT_LOG, FilesLog, bind, parse_log


@pytest.mark.parametrize("text", ["files:topics", "files:/var/topics", "files:./a b", DEFAULT_LOG])
def test_a_folder_is_a_log_and_its_text_reads_back(text: str) -> None:
    log = parse_log(text)
    assert isinstance(log, FilesLog)
    assert parse_log(str(log)) == log
    assert log.root == Path(text.removeprefix("files:"))


@pytest.mark.parametrize("text", ["", "files", "files:", "topics", "ftp://host", ":x"])
def test_anything_else_is_refused_with_what_works(text: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        parse_log(text)
    assert (caught.value.code, caught.value.exit_code) == ("LOG_UNSUPPORTED", 2)
    assert "--on files:DIR" in caught.value.hint


def flow() -> Flow:
    made = Flow("bound")
    table = made.table(Files("users", dir="/elsewhere/u"), "id BIGINT NOT NULL", key="id")
    enriched = made.stream("in", "u BIGINT").enrich("e", table, on="u", into="x")
    enriched.matched.to("out")
    enriched.missing.to(Console())
    return made


def test_names_are_bound_and_topics_bound_on_their_own_stay() -> None:
    graph = bind(flow().graph(), FilesLog(Path("/topics")))
    assert [source.topic for source in graph.tables()] == [Files("users", dir="/elsewhere/u")]
    assert [source.topic for source in graph.streams()] == [Files("in", dir="/topics/in")]
    assert [output.topic for output in graph.outputs()] == [
        Files("out", dir="/topics/out"),
        Console(),
    ]
    assert graph.dead_letters == Files("dead-letters", dir="/topics/dead-letters")


def test_binding_changes_nothing_but_topics() -> None:
    before = flow().graph()
    after = bind(before, FilesLog(Path("/topics")))
    assert [node.id for node in after.nodes] == [node.id for node in before.nodes]
    assert after.schemas() == before.schemas()
    assert bind(after, FilesLog(Path("/other"))) == after
    assert type(after).from_json(after.to_json()) == after
