"""What can be done to a job from its pages: which buttons, and what each asks before it acts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from nicegui import ui

from headgate.jobs.control.verbs import Loss
from headgate.jobs.removal.deletion import Deletion
from headgate.jobs.removal.pruning import Pruning
from headgate.jobs.views.job import JobView
from headgate.server.actions import verbs
from headgate.server.console.panels.questions import ask_and_do
from headgate.server.console.parts import widgets
from headgate.server.console.parts.formats import cut, format_bytes
from headgate.server.console.texts.questions import Choice, Question
from headgate.server.context import ServerContext, get_context
from headgate.server.operations import Operation

# States in which a job takes requests.
_UP = ("RUNNING", "PAUSED", "RESTARTING", "STARTING")
_LONGEST = 200


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
    "prune": JobAction(
        "Prune",
        verbs.prune,
        "Prune {job}",
        (
            "Files of old runs that nothing needs are removed. The present run and all savepoints "
            "stay. {meanwhile}",
        ),
        action="Prune the job",
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
        return ("start", "savepoint", "prune", "delete")
    if job.state not in _UP:
        # It is ending already, and can only be ended at once.
        return ("cancel",)
    is_held = job.state == "PAUSED" or bool(job.status.get("held"))
    hold = "resume" if is_held else "pause"
    return ("savepoint", hold, "restart", "stop", "stop-savepoint", "prune", "cancel")


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
    question = await _foresee(name, action, job)
    if question is None:
        return True
    done = await ask_and_do(question, action.run, job.name)
    if name != "delete" or done is None or done.error is not None:
        return True
    ui.navigate.to("/")
    return False


async def _foresee(name: str, action: JobAction, job: JobView) -> Question | None:
    """Return what an action asks, with what it would remove; None if that was refused."""
    context = get_context()
    if name == "cancel":
        loss = await widgets.ask(context.home.preview_cancel, job.name)
        return None if loss is None else ask_for(action, job, describe_loss(loss))
    if name == "delete":
        deletions = await widgets.ask(_foresee_delete, context, job.name)
        return None if deletions is None else ask_delete(action, job, *deletions)
    if name == "prune":
        prunings = await widgets.ask(_foresee_prune, context, job.name)
        return None if prunings is None else ask_prune(action, job, *prunings)
    return ask_for(action, job)


def _foresee_delete(context: ServerContext, job: str) -> tuple[Deletion, Deletion]:
    """Return what deleting a job removes: with its savepoints, and without them."""
    with context.slow_read():
        deletion = context.home.preview_delete(job)
        return deletion, context.home.preview_delete(job, keep_savepoints=True)


def _foresee_prune(context: ServerContext, job: str) -> tuple[Pruning, Pruning]:
    """Return what pruning a job removes: without checkpoints, and with them."""
    with context.slow_read():
        pruning = context.home.prune(job, dry_run=True)
        return pruning, context.home.prune(job, drop_checkpoints=True, dry_run=True)


def ask_delete(action: JobAction, job: JobView, deletion: Deletion, keeping: Deletion) -> Question:
    """Return what a deletion asks: what goes, what stays, and whether savepoints do.

    Args:
        keeping: The dry run that keeps the savepoints.
    """
    question = ask_for(action, job, *_describe(deletion))
    kept = [part.what for part in deletion.removes if part not in keeping.removes]
    savepoints = [what for what in kept if "savepoint" in what]
    if not savepoints:
        return question
    label = f"Keep {savepoints[0]} in the job's folder, for a new job of this name"
    says = ask_for(action, job, *_describe(keeping)).says
    return replace(question, choice=Choice("keep_savepoints", label, says))


def ask_prune(action: JobAction, job: JobView, pruning: Pruning, dropping: Pruning) -> Question:
    """Return what pruning asks: what goes, what stays, and whether old checkpoints go, too.

    Args:
        dropping: The dry run that removes the checkpoints of old runs as well.
    """
    if not dropping.removes:
        nothing = f"Job {job.name} has no files of old runs to remove."
        return Question(f"Prune {job.name}", (nothing, *_describe(pruning)), action="")
    question = replace(ask_for(action, job, *_describe(pruning)), tell_result=tell_freed)
    if dropping.removes == pruning.removes:
        return question
    label = (
        "Also remove unpinned checkpoints of runs that the present run does not descend from: "
        f"{format_bytes(dropping.bytes - pruning.bytes)} more"
    )
    says = ask_for(action, job, *_describe(dropping)).says
    return replace(question, choice=Choice("drop_checkpoints", label, says))


def tell_freed(result: Mapping[str, Any]) -> str:
    """Return what pruning has freed, from its result."""
    freed, parts = format_bytes(result["bytes"]), len(result["removes"])
    return f"{freed} of {parts} old run{'s' if parts != 1 else ''} freed"


def _describe(removal: Deletion | Pruning) -> Iterator[str]:
    """Yield what is removed, with sizes, and what stays, a sentence each."""
    if removal.removes:
        parts = (f"{part.what} ({format_bytes(part.bytes)})" for part in removal.removes)
        yield f"{format_bytes(removal.bytes)} are freed: {'; '.join(parts)}."
    if removal.stays:
        # An old run may have hundreds of checkpoints, which are listed by their ids.
        yield f"These stay: {'; '.join(cut(what, _LONGEST) for what in removal.stays)}."


def describe_loss(loss: Loss) -> str:
    """Return what a cancel deletes, in words."""
    if not loss.deletes_state:
        return "Its checkpoints stay, so that it can be started again from the newest."
    return (
        f"Its {len(loss.checkpoints)} kept checkpoints ({format_bytes(loss.bytes)}) are deleted, "
        "as its setting on-cancel says. Savepoints stay."
    )
