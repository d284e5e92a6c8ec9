"""Outputs and dead letters as the console shows them; only markup and words."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from headgate.jobs.service import (
    DeadLetter,
    DeadLetters,
    LetterCount,
    OutputRecord,
    OutputView,
    Replayed,
)
from headgate.server.console.parts.formats import NONE, format_bytes, format_count, format_moment
from headgate.server.console.parts.markup import Html, act, element, join
from headgate.server.console.texts.checkpoints import Question
from headgate.server.console.texts.json_text import MOST, cut, pretty

_PREVIEW = 240
_KINDS = {"main": "main output", "side": "side output", "dead-letters": "dead letters"}
_REFUSALS = {
    "cut": "only the beginning of the record is kept",
    "no-key": "the record is not kept any more, and nobody knows its key",
    "gone": "the record is not kept any more",
    "no-way": "the flow has no way back for it",
    "old-row": "its table has no version column, and it would replace a newer row",
}


def show_outputs(outputs: Sequence[OutputView], chosen: str | None) -> Html:
    """Return the outputs to choose from, in the order they come in."""
    return element(
        "ul",
        *(_output(each, chosen) for each in outputs),
        class_="hg-choices",
    )


def show_records(records: Sequence[OutputRecord], opened: Collection[str]) -> Html:
    """Return records, newest first; those that are opened with all of their value."""
    if not records:
        return element("p", "No rows yet.", class_="hg-empty")
    return join(
        _heads("Written (UTC)", "Partition / position", "Key", "Value"),
        element("ul", *(_record(each, opened) for each in reversed(records)), class_="hg-rows"),
    )


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


def show_counts(letters: DeadLetters, chosen: str | None, *, may_replay: bool) -> Html:
    """Return how many letters there are of each topic and reason, most first."""
    if not letters.counts:
        return element("p", "No dead letters: every record could be read.", class_="hg-empty")
    largest = letters.counts[0].count
    return element(
        "table",
        element(
            "thead",
            element(
                "tr",
                *(
                    element("th", name, scope="col", class_=class_)
                    for name, class_ in (
                        ("From", None), ("Reason", None), ("Letters", "hg-num"), ("", None)
                    )
                ),
            ),
        ),
        element(
            "tbody",
            *(_count_row(each, largest, chosen, may_replay) for each in letters.counts),
        ),
        class_="hg-table",
        aria_label="Dead letters by topic and reason",
    )  # fmt: skip


def show_letters(
    letters: Sequence[DeadLetter], opened: DeadLetter | None, *, may_replay: bool
) -> Html:
    """Return letters, newest first; the one that is opened with its raw record."""
    if not letters:
        return Html()
    return join(
        _heads("Written (UTC)", "From", "Reason", "Raw record"),
        element("ul", *(_letter(each, opened, may_replay) for each in letters), class_="hg-rows"),
    )


def _count_row(count: LetterCount, largest: int, chosen: str | None, may_replay: bool) -> Html:
    share = 100 * count.count / largest
    bar = element("span", element("span", style=f"width:{share:.1f}%"), class_="hg-bar")
    here = count.reason == chosen
    reason = act(
        count.reason,
        "reason",
        "" if here else count.reason,
        class_="hg-act",
        aria_pressed="true" if here else "false",
        title="show all" if here else "show only these",
    )
    return element(
        "tr",
        element("td", count.topic, data_label="From"),
        element("td", reason, data_label="Reason"),
        element("td", format_count(count.count), bar, data_label="Letters", class_="hg-num"),
        element("td", replay_button(f"reason:{count.reason}", "Replay…", allowed=may_replay)),
        data_key=f"{count.topic} {count.reason}",
    )


def _letter(letter: DeadLetter, opened: DeadLetter | None, may_replay: bool) -> Html:
    is_open = opened is not None and opened.id == letter.id
    preview = letter.text[: _PREVIEW * 2].replace("\n", " ")
    return element(
        "li",
        element(
            "button",
            element("span", format_moment(letter.at), class_="hg-quiet"),
            element("span", letter.topic or letter.source, class_="hg-quiet"),
            element("span", letter.reason, " (replayed)" if letter.replayed_at else None),
            element("code", cut(preview, _PREVIEW), class_="hg-preview"),
            type="button",
            class_="hg-record",
            data_act="letter",
            data_value=letter.id,
            aria_expanded="true" if is_open else "false",
        ),
        _opened_letter(opened, may_replay) if is_open and opened is not None else None,
        data_key=letter.id,
    )


def _opened_letter(letter: DeadLetter, may_replay: bool) -> Html:
    place = f"partition {letter.partition}, offset {letter.offset}"
    failed = (("Failed at", f"{letter.source}: {letter.expression}"),) if letter.expression else ()
    facts = (
        ("What was wrong", letter.detail or letter.reason),
        *failed,
        ("From", f"{letter.topic or letter.source}, {place}"),
        ("Record of", f"{format_moment(letter.record_at)} UTC"),
        ("Size", format_bytes(letter.size)),
        ("Replayed", _tell_replay(letter)),
    )
    raw = letter.raw
    short = "Only the beginning of the record is kept in the letter." if letter.cut else None
    shown = "no value" if raw is None else pretty(cut(letter.text, MOST))
    return element(
        "div",
        _facts(facts),
        element("pre", shown, class_="hg-json", tabindex="0", aria_label="Raw record"),
        element("p", short, class_="hg-quiet") if short else None,
        element("div", replay_button(f"id:{letter.id}", "Replay this…", allowed=may_replay)),
        class_="hg-opened",
    )


def _facts(facts: Sequence[tuple[str, str]]) -> Html:
    pairs = (
        element("div", element("dt", name), element("dd", told), data_key=name)
        for name, told in facts
    )
    return element("dl", *pairs, class_="hg-facts")


def _heads(*names: str) -> Html:
    return element(
        "div",
        *(element("span", each) for each in names),
        class_="hg-record hg-heads",
        aria_hidden="true",
    )


def _tell_replay(letter: DeadLetter) -> str:
    if letter.replayed_at is None:
        return "not yet"
    doubt = ", but the sending broke off" if letter.in_doubt else ""
    return f"{format_moment(letter.replayed_at)} UTC by {letter.replayed_by}{doubt}"


def _letters(count: int) -> str:
    return f"{format_count(count)} {'was' if count == 1 else 'were'}"


def _output(output: OutputView, chosen: str | None) -> Html:
    written = f"{format_count(output.rows)} rows"
    fed = f"{_KINDS[output.kind]}, of {output.fed_by}" if output.fed_by else _KINDS[output.kind]
    return element(
        "li",
        element(
            "button",
            element("strong", output.id),
            element("span", written, class_="hg-num"),
            element("small", fed),
            element("small", output.topic if output.topic != output.id else "", class_="hg-num"),
            type="button",
            class_="hg-choice",
            data_act="output",
            data_value=output.id,
            aria_pressed="true" if output.id == chosen else "false",
        ),
        data_key=output.id,
    )


def _record(record: OutputRecord, opened: Collection[str]) -> Html:
    name = record.place
    is_open = name in opened
    value = "" if record.value is None else record.value
    when = format_moment(record.timestamp)
    return element(
        "li",
        element(
            "button",
            element("span", when, class_="hg-quiet"),
            element(
                "span", f"{record.partition} / {record.position}", class_="hg-quiet",
                title="partition / position",
            ),
            element("span", NONE if record.key is None else cut(record.key, 80), title="key"),
            element(
                "code", "no value" if record.value is None else cut(value, _PREVIEW),
                class_="hg-preview",
            ),
            type="button",
            class_="hg-record",
            data_act="open",
            data_value=name,
            aria_expanded="true" if is_open else "false",
        ),
        _opened(record) if is_open else None,
        data_key=name,
    )  # fmt: skip


def _opened(record: OutputRecord) -> Html:
    rest = "Cut: the record is longer than what is shown." if record.cut else None
    facts = (
        ("Key", NONE if record.key is None else record.key),
        ("Partition", str(record.partition)),
        ("Position", record.position),
        ("Written", f"{format_moment(record.timestamp)} UTC"),
        ("Size", format_bytes(record.size)),
    )
    return element(
        "div",
        _facts(facts),
        element("pre", pretty(record.value or ""), class_="hg-json", tabindex="0"),
        element("p", rest, class_="hg-quiet") if rest else None,
        class_="hg-opened",
    )


def replay_button(value: str, label: str, *, allowed: bool) -> Html:
    """Return the button that replays; for those who may not it says why."""
    if not allowed:
        return act(label, "none", disabled=True, title="needs a token with the role operate")
    return act(label, "replay", value)
