"""Outputs and dead letters as the console shows them; only markup and words."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from headgate.jobs.dead_letters.letter import DeadLetter
from headgate.jobs.dead_letters.listing import DeadLetters
from headgate.jobs.dead_letters.replay import Replayed
from headgate.jobs.views.outputs import OutputRecord, OutputView
from headgate.server.console.parts.formats import format_bytes, format_count, format_moment
from headgate.server.console.parts.templates import note, render
from headgate.server.console.texts.checkpoints import Question
from headgate.server.console.texts.json_text import MOST

_PREVIEW = 240
_KINDS = {"main": "main output", "side": "side output", "dead-letters": "dead letters"}
_REFUSALS = {
    "cut": "only the beginning of the record is kept",
    "no-key": "the record is not kept any more, and nobody knows its key",
    "gone": "the record is not kept any more",
    "no-way": "the flow has no way back for it",
    "old-row": "its table has no version column, and it would replace a newer row",
}


def show_outputs(outputs: Sequence[OutputView], chosen: str | None) -> Markup:
    """Return the outputs to choose from, in the order they come in."""
    named = [(output, _KINDS[output.kind]) for output in outputs]
    return render("outputs", outputs=named, chosen=chosen)


def show_records(records: Sequence[OutputRecord], opened: Collection[str]) -> Markup:
    """Return records, newest first; those that are opened with all of their value."""
    if not records:
        return note("No rows yet.")
    return render("records", records=records[::-1], opened=opened, preview=_PREVIEW)


def ask_replay(foreseen: Replayed, which: str) -> Question:
    """Return what a replay means, from its dry run.

    Args:
        which: Which letters they are, such as `with reason BAD_JSON`; empty for all.
    """
    total = foreseen.total
    letters = "dead letter" if total == 1 else "dead letters"
    says = [
        "Fix the flow first, or whatever wrote these records: as things are, they come back as "
        "dead letters.",
        *(
            f"{format_count(count)} {'record goes' if count == 1 else 'records go'} to topic "
            f"{topic}, at its end, as {'it was' if count == 1 else 'they were'}."
            for topic, count in foreseen.sent.items()
        ),
        *tell_left_out(foreseen),
    ]
    title = f"Replay {format_count(total)} {letters}"
    return Question(
        f"{title} {which}?" if which else f"{title}?", tuple(says), "Replay", dangerous=True
    )


def tell_left_out(replayed: Replayed) -> list[str]:
    """Return which letters are not sent, a sentence for each reason."""
    said = []
    if replayed.skipped:
        said.append(f"{_letters(replayed.skipped)} replayed before, and not sent again.")
    if replayed.in_doubt:
        said.append(
            f"{_letters(replayed.in_doubt)} in a replay that broke off, may have arrived, and "
            "not sent again."
        )
    for why, count in replayed.refused.items():
        words = _REFUSALS.get(why, why)
        said.append(f"{format_count(count)} cannot be sent: {words}.")
    return said


def tell_replayed(result: Mapping[str, Any]) -> str:
    """Return what became of a replay, in words."""
    sent: Mapping[str, int] = result.get("sent_to") or {}
    to = " and ".join(f"{format_count(count)} to {topic}" for topic, count in sent.items())
    left = int(result.get("skipped") or 0) + int(result.get("in_doubt") or 0)
    said = [f"Sent {to}" if to else "Nothing was sent"]
    if left:
        said.append(f"{format_count(left)} were sent before")
    if result.get("refused"):
        said.append(f"{format_count(result['refused'])} cannot be sent")
    return "; ".join(said) + "."


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


def _letters(count: int) -> str:
    return f"{format_count(count)} {'was' if count == 1 else 'were'}"
