"""What the console asks before it changes something; only words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headgate.jobs.checkpoints.restore_plan import RestorePlan
from headgate.jobs.dead_letters.replay import Replayed
from headgate.jobs.views.job import JobView
from headgate.server.console.parts.formats import format_age, format_count, format_moment

_REFUSALS = {
    "cut": "only the beginning of the record is kept",
    "no-key": "the record is not kept any more, and nobody knows its key",
    "gone": "the record is not kept any more",
    "no-way": "the flow has no way back for it",
    "old-row": "its table has no version column, and it would replace a newer row",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """A checkbox of a question, empty at first.

    Attributes:
        option: The option of the action that is true if the box is ticked.
        label: What ticking it means.
        says: What the question says while it is ticked.
    """

    option: str
    label: str
    says: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked before something is done.

    Attributes:
        says: What will happen, one sentence each.
        action: The label of the button that agrees: a verb. Without it, the user can only go back.
        doing: What is shown while it is done; `action` if empty.
        tell_result: Returns what is shown once it is done, from the result of the operation.
    """

    title: str
    says: tuple[str, ...]
    action: str
    doing: str = ""
    dangerous: bool = False
    choice: Choice | None = None
    tell_result: Callable[[Mapping[str, Any]], str] | None = None


def ask_pin(checkpoint: str, *, pinned: bool) -> Question:
    """Return what pinning or unpinning a checkpoint means."""
    if pinned:
        says = (
            f"{checkpoint} stays, however many newer checkpoints there are, until it is unpinned.",
            "Its files take room on the disk until then.",
        )
        return Question(f"Pin {checkpoint}?", says, "Pin")
    goes = (
        f"{checkpoint} goes when its time comes, as any other: if there are enough newer ones, "
        "that is with the next checkpoint."
    )
    return Question(f"Unpin {checkpoint}?", (goes,), "Unpin")


def ask_restore(job: JobView, plan: RestorePlan, *, now: datetime) -> Question:
    """Return what a restore means, from its plan."""
    first = "it is stopped first, between two batches" if job.is_alive else "it is started"
    of_run = f" of run {plan.run}" if plan.run else ""
    done = f"{format_moment(plan.completed_at)} UTC ({format_age(plan.completed_at, now)})"
    says = [
        f"Job {job.name} is {job.state}: {first}.",
        f"A new run begins from {plan.checkpoint}{of_run}, which was complete at {done}. The run "
        "before stays as it is on the disk, with its checkpoints.",
        tell_state(plan),
        *(f"Warning: {warning}." for warning in plan.warnings),
        tell_again(plan),
        tell_outputs(plan),
    ]
    return Question(
        f"Restore from {plan.checkpoint}?",
        tuple(filter(None, says)),
        "Stop and restore" if job.is_alive else "Restore",
        f"Restore {job.name} from {plan.checkpoint}",
        dangerous=True,
    )


def tell_state(plan: RestorePlan) -> str:
    """Return what becomes of the operators' state."""
    parts = [
        f"{_list(uids)} {one if len(uids) == 1 else several}"
        for uids, one, several in (
            (plan.state_taken, "keeps its state", "keep their state"),
            (plan.state_dropped, "loses its state", "lose their state"),
            (plan.starts_empty, "starts empty", "start empty"),
        )
        if uids
    ]
    return f"{'; '.join(parts)}." if parts else "No operator keeps state."


def tell_again(plan: RestorePlan) -> str:
    """Return how many records are read again, by source."""
    counted = {name: count for name, count in plan.records_again.items() if count}
    unknown = [name for name, count in plan.records_again.items() if count is None]
    says = []
    if counted:
        about = {name: "about " if name in plan.records_estimated else "" for name in counted}
        by_source = ", ".join(
            f"{name} {about[name]}{format_count(count)}" for name, count in counted.items()
        )
        total = f"{'About ' if any(about.values()) else ''}{format_count(sum(counted.values()))}"
        says.append(f"{total} records are read again: {by_source}.")
    elif not unknown:
        says.append("No record is read again.")
    if unknown:
        says.append(f"How many records of {_list(unknown)} are read again cannot be told.")
    return " ".join(says)


def tell_outputs(plan: RestorePlan) -> str:
    """Return which outputs receive rows again."""
    if not plan.outputs_with_repeats or not repeats_records(plan):
        return ""
    return (
        f"What comes of them is written again, so {_list(plan.outputs_with_repeats)} may hold rows "
        "twice: once of the run before, once of the new one."
    )


def repeats_records(plan: RestorePlan) -> bool:
    """Return whether a restore reads records again, as far as is known."""
    return any(count is None or count for count in plan.records_again.values())


def ask_replay(foreseen: Replayed, which: str) -> Question:
    """Return what a replay means, from its dry run.

    Args:
        which: Which letters they are, such as ` with reason BAD_JSON`; empty for all.
    """
    letters = f"{format_count(foreseen.total)} dead letter{'s' if foreseen.total != 1 else ''}"
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
    return Question(f"Replay {letters}{which}?", tuple(says), "Replay", dangerous=True)


def tell_left_out(replayed: Replayed) -> list[str]:
    """Return which letters are not sent, a sentence for each reason."""
    says = []
    if replayed.skipped:
        says.append(f"{_were(replayed.skipped)} replayed before, and not sent again.")
    if replayed.in_doubt:
        says.append(
            f"{_were(replayed.in_doubt)} in a replay that broke off, may have arrived, and "
            "not sent again."
        )
    for reason, count in replayed.refused.items():
        says.append(f"{format_count(count)} cannot be sent: {_REFUSALS.get(reason, reason)}.")
    return says


def _were(count: int) -> str:
    return f"{format_count(count)} {'was' if count == 1 else 'were'}"


def _list(names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
