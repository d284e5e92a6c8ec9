"""What the console says of checkpoints before something is done with them; no page, only words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from markupsafe import Markup

from headgate.server.console.parts.formats import NONE, format_age, format_count, format_moment
from headgate.server.console.parts.templates import render


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked before something is done: see `widgets.confirm`."""

    title: str
    says: tuple[str, ...]
    action: str
    dangerous: bool = False


def ask_savepoint(job: str, state: str, *, alive: bool) -> Question:
    """Return what taking a savepoint means."""
    when = (
        f"Job {job} is {state}, and goes on: the savepoint is of the last batch that is complete."
        if alive
        else f"Job {job} is {state}: the savepoint is of its last batch, and the job stays {state}."
    )
    stays = (
        "It is a folder of its own, which holds all that a restore needs. It stays, whatever is "
        "retained, until somebody deletes it."
    )
    return Question("Take a savepoint?", (when, stays), "Take savepoint")


def ask_stop(job: str) -> Question:
    """Return what stopping with a savepoint means."""
    return Question(
        "Stop with a savepoint?",
        (
            f"Job {job} finishes the batch it is in, and a savepoint is taken of it.",
            "Then the job is STOPPED: it reads nothing and writes nothing.",
            "Started again, it goes on where it ended; nothing is lost or doubled.",
        ),
        "Stop with savepoint",
        dangerous=True,
    )


def ask_pin(checkpoint: str, *, pinned: bool) -> Question:
    """Return what pinning means, or letting go."""
    if pinned:
        return Question(
            f"Pin {checkpoint}?",
            (
                f"{checkpoint} stays, however many newer checkpoints there are, until it is "
                "unpinned.",
                "Its files take room on the disk until then.",
            ),
            "Pin",
        )
    return Question(
        f"Unpin {checkpoint}?",
        (
            f"{checkpoint} goes when its time comes, as any other: if there are enough newer ones, "
            "that is with the next checkpoint.",
        ),
        "Unpin",
    )


def ask_restore(
    job: str, state: str, plan: Mapping[str, Any], *, alive: bool, now: datetime
) -> Question:
    """Return what a restore means, from its dry run."""
    checkpoint = str(plan["checkpoint"])
    done = datetime.fromisoformat(str(plan["completed_at"]))
    first = (
        f"Job {job} is {state}: it is stopped first, between two batches."
        if alive
        else f"Job {job} is {state}, and is started."
    )
    begins = (
        f"A new run begins from {checkpoint}, which was complete at {format_moment(done)} UTC "
        f"({format_age(done, now)}). The run before stays as it is on the disk, with its "
        "checkpoints."
    )
    says = [first, begins, tell_state(plan), tell_again(plan), tell_outputs(plan)]
    return Question(
        f"Restore from {checkpoint}?",
        tuple(sentence for sentence in says if sentence),
        "Stop and restore" if alive else "Restore",
        dangerous=True,
    )


def tell_state(plan: Mapping[str, Any]) -> str:
    """Return what becomes of the operators' state."""
    parts = []
    for name, what in (
        ("state_taken", "keep their state"),
        ("state_dropped", "lose their state"),
        ("starts_empty", "start empty"),
    ):
        uids = list(plan.get(name) or ())
        if uids:
            one = {"keep": "keeps", "lose": "loses", "start": "starts"}
            verb, _, rest = what.partition(" ")
            owner = rest.replace("their", "its") if len(uids) == 1 else rest
            parts.append(f"{_list(uids)} {one[verb] if len(uids) == 1 else verb} {owner}")
    return f"{'; '.join(parts)}." if parts else "No operator keeps state."


def tell_again(plan: Mapping[str, Any]) -> str:
    """Return how many records are read again, by source."""
    again: Mapping[str, int | None] = plan.get("records_again") or {}
    counted = {name: count for name, count in again.items() if count}
    unknown = [name for name, count in again.items() if count is None]
    said = []
    if counted:
        by_source = ", ".join(f"{name} {format_count(count)}" for name, count in counted.items())
        said.append(f"{format_count(sum(counted.values()))} records are read again: {by_source}.")
    elif not unknown:
        said.append("No record is read again.")
    if unknown:
        said.append(f"How many records of {_list(unknown)} are read again cannot be told.")
    return " ".join(said)


def tell_outputs(plan: Mapping[str, Any]) -> str:
    """Return which outputs receive rows again."""
    outputs = list(plan.get("outputs_with_repeats") or ())
    again: Mapping[str, int | None] = plan.get("records_again") or {}
    if not outputs or not any(count is None or count for count in again.values()):
        return ""
    return (
        f"What comes of them is written again, so {_list(outputs)} may hold rows twice: once of "
        "the run before, once of the new one."
    )


def tell_settings(settings: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return when checkpoints are kept and for how long, from a job's settings."""

    def value(name: str) -> Any:
        return (settings.get(name) or {}).get("value")

    def source(name: str) -> str:
        return f" ({(settings.get(name) or {}).get('from', 'default')})"

    every, pause, retain, longer = (
        value(name) for name in ("checkpoint-every", "min-pause", "retain", "retain-for")
    )
    deletes = value("on-cancel") == "delete"
    return [
        ("Interval", f"one every {every}{source('checkpoint-every')}" if every else NONE),
        ("Pause between batches", f"at least {pause}{source('min-pause')}" if pause else NONE),
        ("Retained", f"the newest {retain}{source('retain')}" if retain is not None else NONE),
        (
            "Retained for longer",
            f"thinned over {longer}{source('retain-for')}" if longer else "no",
        ),
        ("On cancel", f"{'deleted' if deletes else 'kept'}{source('on-cancel')}"),
        ("Where", str(value("checkpoints") or "in the job's folder")),
    ]


def show_plan(plan: Mapping[str, Any], *, now: datetime) -> Markup:
    """Return the dry run of a restore as markup."""
    again: Mapping[str, int | None] = plan.get("records_again") or {}
    return render(
        "plan",
        plan=plan,
        again=again,
        largest=max((count or 0 for count in again.values()), default=0),
        repeats=any(count is None or count for count in again.values()),
        done=datetime.fromisoformat(str(plan["completed_at"])),
        now=now,
    )


def _list(names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
