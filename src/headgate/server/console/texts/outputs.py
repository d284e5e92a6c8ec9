"""Outputs and dead letters as the console shows them; only markup and words."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from headgate.jobs.dead_letters.letter import DeadLetter
from headgate.jobs.dead_letters.listing import DeadLetters
from headgate.jobs.views.outputs import OutputRecord, OutputView
from headgate.server.console.parts.formats import format_bytes, format_count, format_moment
from headgate.server.console.parts.templates import note, render
from headgate.server.console.texts.json_text import MOST

_PREVIEW = 240
_KINDS = {"main": "main output", "side": "side output", "dead-letters": "dead letters"}


def show_outputs(outputs: Sequence[OutputView], chosen: str | None) -> Markup:
    """Return the outputs to choose from, in the order they come in."""
    named = [(output, _KINDS[output.kind]) for output in outputs]
    return render("outputs", outputs=named, chosen=chosen)


def show_records(records: Sequence[OutputRecord], opened: Collection[str]) -> Markup:
    """Return records, newest first; those that are opened with all of their value."""
    if not records:
        return note("No rows yet.")
    return render("records", records=records[::-1], opened=opened, preview=_PREVIEW)


def tell_replayed(result: Mapping[str, Any]) -> str:
    """Return the result of a replay, in words."""
    to = " and ".join(
        f"{format_count(count)} to {topic}" for topic, count in result["sent_to"].items()
    )
    says = [f"Sent {to}" if to else "Nothing was sent"]
    if left := result["skipped"] + result["in_doubt"]:
        says.append(f"{format_count(left)} were sent before")
    if result["refused"]:
        says.append(f"{format_count(result['refused'])} cannot be sent")
    return "; ".join(says) + "."


def show_counts(letters: DeadLetters, chosen: str | None, *, may_replay: bool) -> Markup:
    """Return how many letters there are of each topic and reason, most first."""
    if not letters.counts:
        return note("No dead letters: every record could be read.")
    return render("letter_counts", counts=letters.counts, chosen=chosen, may_replay=may_replay)


def show_letters(
    letters: Sequence[DeadLetter], opened: DeadLetter | None, *, may_replay: bool
) -> Markup:
    """Return letters, newest first; the one that is opened with its raw record."""
    if not letters:
        return Markup()
    return render(
        "letters",
        letters=letters,
        opened=opened,
        opened_facts=[] if opened is None else _letter_facts(opened),
        may_replay=may_replay,
        preview=_PREVIEW,
        longest=MOST,
    )


def _letter_facts(letter: DeadLetter) -> list[tuple[str, str]]:
    place = f"partition {letter.partition}, offset {letter.offset}"
    failed = [("Failed at", f"{letter.source}: {letter.expression}")] if letter.expression else []
    return [
        ("What was wrong", letter.detail or letter.reason),
        *failed,
        ("From", f"{letter.topic or letter.source}, {place}"),
        ("Record of", f"{format_moment(letter.record_at)} UTC"),
        ("Size", format_bytes(letter.size)),
        ("Replayed", _tell_replay(letter)),
    ]


def _tell_replay(letter: DeadLetter) -> str:
    if letter.replayed_at is None:
        return "not yet"
    doubt = ", but the sending broke off" if letter.in_doubt else ""
    return f"{format_moment(letter.replayed_at)} UTC by {letter.replayed_by}{doubt}"
