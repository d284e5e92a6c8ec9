"""What can be done to a job from its pages: which buttons, and what each asks before it acts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from nicegui import ui

from headgate.jobs.control.verbs import Loss
from headgate.jobs.removal.deletion import Deletion
from headgate.jobs.views.job import JobView
from headgate.server.actions import verbs
from headgate.server.console.panels.questions import ask_and_do
from headgate.server.console.parts import widgets
from headgate.server.console.parts.formats import format_bytes
from headgate.server.console.texts.questions import Question
from headgate.server.context import get_context
from headgate.server.operations import Operation

# States in which a job takes requests.
_UP = ("RUNNING", "PAUSED", "RESTARTING", "STARTING")


@dataclass(frozen=True, slots=True)
class JobAction:
    """One button.

    Attributes:
        run: One of `actions.verbs`.
        title: What is done, in a few words.
        says: What will happen, one sentence each.
        action: The label of the button that agrees; `label` if empty.
    """

    label: str
    run: Callable[..., Operation]
    title: str
    says: tuple[str, ...]
    action: str = ""
    dangerous: bool = False


# By the name that the page gives them; {job}, {goes_on} and {meanwhile} are filled in for a job.
_ACTIONS: Mapping[str, JobAction] = {
    "start": JobAction(
        "Start",
        verbs.start,
        "Start {job}",
        ("Job {job} is started as it was last run, with the same settings.", "{goes_on}"),
    ),
    "savepoint": JobAction(
        "Savepoint",
        verbs.take_savepoint,
        "Take a savepoint of {job}",
        (
            "The state of the last complete batch and its positions are written to a folder of "
            "their own, which is kept until you delete it.",
            "{meanwhile}",
        ),
        action="Take savepoint",
    ),
    "pause": JobAction(
        "Pause",
        verbs.pause,
        "Pause {job}",
        (
            "The batch that runs is finished; then the job reads nothing until it is resumed.",
            "Its process and its state stay in memory, and its lag grows.",
        ),
    ),
    "resume": JobAction(
        "Resume",
        verbs.resume,
        "Resume {job}",
        ("The job reads on where it was paused, and works off what came meanwhile.",),
    ),
    "restart": JobAction(
        "Restart",
        verbs.restart,
        "Restart {job}",
        (
            "The job is stopped between two batches, and started again as it was last run.",
            "It goes on where it stopped: nothing is lost, and nothing is written twice.",
        ),
    ),
    "stop": JobAction(
        "Stop",
        verbs.stop,
        "Stop {job}",
        (
            "The batch that runs is finished; then the job ends. Its checkpoints stay.",
            "It can be started again, and goes on where it stopped.",
        ),
    ),
    "stop-savepoint": JobAction(
        "Stop with savepoint",
        partial(verbs.stop, savepoint=True),
        "Stop {job} with a savepoint",
        (
            "The batch that runs is finished; then the job ends and a savepoint of that batch is "
            "taken.",
            "It is kept until you delete it, and can be moved, or be restored into a changed flow.",
        ),
    ),
    "cancel": JobAction(
        "Cancel",
        verbs.cancel,
        "Cancel {job}",
        (
            "The job is ended at once, in the middle of a batch. What that batch did is discarded; "
            "rows that were written by earlier batches stay.",
        ),
        action="Cancel the job",
        dangerous=True,
    ),
    "delete": JobAction(
        "Delete",
        verbs.delete,
        "Delete {job}",
        ("Job {job} is removed from this server, and cannot be started or restored any more.",),
        action="Delete the job",
        dangerous=True,
    ),
}


def actions_for(job: JobView) -> dict[str, JobAction]:
    """Return what can be asked of a job as it is, the most usual first, by name."""
    return {name: _ACTIONS[name] for name in _names_for(job)}


def _names_for(job: JobView) -> tuple[str, ...]:
    if job.state == "UNREADABLE":
        return ()
    if not job.is_alive:
        return ("start", "savepoint", "delete")
    if job.state not in _UP:
        # It is ending already, and can only be ended at once.
        return ("cancel",)
    is_held = job.state == "PAUSED" or bool(job.status.get("held"))
    hold = "resume" if is_held else "pause"
    return ("savepoint", hold, "restart", "stop", "stop-savepoint", "cancel")


def ask_for(action: JobAction, job: JobView, *more: str) -> Question:
    """Return what an action asks before it is done to a job; `more` are further sentences."""
    words = {
        "job": job.name,
        "goes_on": "It reads its topics from the positions it had reached."
        if job.state == "FINISHED"
        else "It goes on from its newest checkpoint.",
        "meanwhile": "The job runs on." if job.is_alive else f"The job stays {job.state}.",
    }
    title = action.title.format_map(words)
    says = (*(sentence.format_map(words) for sentence in action.says), *more)
    return Question(f"{title}?", says, action.action or action.label, title, action.dangerous)


async def run_action(name: str, job: JobView) -> bool:
    """Ask whether an action is meant, do it, show how it goes, and return whether the job exists.

    After a deletion the browser goes to the list of jobs.
    """
    action = actions_for(job).get(name)
    if action is None:
        return True
    more: tuple[str, ...] = ()
    home = get_context().home
    if name == "cancel":
        loss = await widgets.ask(home.preview_cancel, job.name)
        if loss is None:
            return True
        more = (describe_loss(loss),)
    if name == "delete":
        deletion = await widgets.ask(home.preview_delete, job.name)
        if deletion is None:
            return True
        more = describe_deletion(deletion)
    done = await ask_and_do(ask_for(action, job, *more), action.run, job.name)
    if name != "delete" or done is None or done.error is not None:
        return True
    ui.navigate.to("/")
    return False


def describe_deletion(deletion: Deletion) -> tuple[str, ...]:
    """Return what a deletion removes and what it leaves, a sentence each."""
    removes = "; ".join(f"{part.what} ({format_bytes(part.bytes)})" for part in deletion.removes)
    says = [f"{format_bytes(deletion.bytes)} are removed: {removes}."]
    if any("savepoint" in part.what for part in deletion.removes):
        says.append(
            f"Its savepoints are removed, too; headgate delete {deletion.job} --keep-savepoints "
            "leaves them."
        )
    if deletion.stays:
        says.append(f"These stay: {'; '.join(deletion.stays)}.")
    return tuple(says)


def describe_loss(loss: Loss) -> str:
    """Return what a cancel deletes, in words."""
    if not loss.deletes_state:
        return "Its checkpoints stay, so that it can be started again from the newest."
    return (
        f"Its {len(loss.checkpoints)} kept checkpoints ({format_bytes(loss.bytes)}) are deleted, "
        "as its setting on-cancel says. Savepoints stay."
    )
