"""What can be done to a job from its page: which buttons, and what each says before it acts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from headgate.jobs.control.verbs import Loss
from headgate.jobs.views.job import JobView
from headgate.server.actions import verbs
from headgate.server.console.parts import widgets
from headgate.server.console.parts.formats import format_bytes
from headgate.server.context import get_context
from headgate.server.operations import Operation
from headgate.server.signed_in import current_access

# States in which a job takes wishes.
_UP = ("RUNNING", "PAUSED", "RESTARTING", "STARTING")


@dataclass(frozen=True, slots=True)
class Action:
    """One button.

    Attributes:
        name: What the page calls it.
        title: The heading of the question.
        says: What will happen, sentence by sentence.
        verb: What the button that agrees says.
        doing: What is said while it is done.
    """

    name: str
    label: str
    title: str
    says: Sequence[str]
    verb: str
    doing: str
    dangerous: bool = False


def actions_for(job: JobView) -> list[Action]:
    """Return what can be asked of a job as it is, the most usual first."""
    name = job.name
    if job.state == "UNREADABLE":
        return []
    if not job.is_alive:
        return [_start(name, job.state), _savepoint(job)]
    if job.state not in _UP:
        # It is ending already; all that is left is to end it at once.
        return [_cancel(name)]
    held = job.state == "PAUSED" or bool(job.status.get("held"))
    return [_savepoint(job), *([_resume(name)] if held else [_pause(name)]), _restart(name),
            _stop(name), _stop_with_savepoint(name), _cancel(name)]  # fmt: skip


async def run_action(name: str, job: JobView) -> None:
    """Ask whether an action is meant, do it, and show how it goes."""
    action = next((action for action in actions_for(job) if action.name == name), None)
    if action is None:
        return
    says = list(action.says)
    if name == "cancel":
        loss = await widgets.ask(get_context().home.preview_cancel, job.name)
        if loss is None:
            return
        says += describe_loss(loss)
    if not await widgets.confirm(
        action.title, says, action=action.verb, dangerous=action.dangerous
    ):
        return
    operation = await widgets.ask(_DOES[name], get_context(), current_access(), job.name)
    if operation is not None:
        await widgets.follow(operation, says=action.doing)


def describe_loss(loss: Loss) -> list[str]:
    """Return what a cancel takes along, in sentences."""
    if not loss.deletes_state:
        return ["Its checkpoints stay, so that it can be started again from the newest."]
    count = len(loss.checkpoints)
    return [
        f"Its {count} kept checkpoints ({format_bytes(loss.bytes)}) are deleted, as its setting "
        "on-cancel says. Savepoints stay.",
    ]


_DOES: dict[str, Callable[..., Operation]] = {
    "savepoint": verbs.take_savepoint,
    "stop": verbs.stop,
    "stop-savepoint": partial(verbs.stop, savepoint=True),
    "pause": verbs.pause,
    "resume": verbs.resume,
    "restart": verbs.restart,
    "start": verbs.start,
    "cancel": verbs.cancel,
}


def _start(name: str, state: str) -> Action:
    where = (
        "It reads its topics from the positions it had reached."
        if state == "FINISHED"
        else "It goes on from its newest checkpoint."
    )
    return Action(
        "start", "Start", f"Start {name}?",
        [f"Job {name} is started as it was last run, with the same settings.", where],
        "Start", f"Starting {name}",
    )  # fmt: skip


def _savepoint(job: JobView) -> Action:
    meanwhile = "The job runs on meanwhile." if job.is_alive else "The job stays as it is."
    return Action(
        "savepoint",
        "Savepoint",
        f"Take a savepoint of {job.name}?",
        [
            "The state of the last batch and its positions are written to a folder of their own, "
            "which is kept until you delete it.",
            meanwhile,
        ],
        "Take a savepoint",
        f"Taking a savepoint of {job.name}",
    )


def _pause(name: str) -> Action:
    return Action(
        "pause", "Pause", f"Pause {name}?",
        ["The batch that runs is finished; then the job reads nothing until it is resumed.",
         "Its process and its state stay in memory, and its lag grows."],
        "Pause", f"Pausing {name}",
    )  # fmt: skip


def _resume(name: str) -> Action:
    return Action(
        "resume", "Resume", f"Resume {name}?",
        ["The job reads on where it was paused, and works off what came meanwhile."],
        "Resume", f"Resuming {name}",
    )  # fmt: skip


def _restart(name: str) -> Action:
    return Action(
        "restart", "Restart", f"Restart {name}?",
        ["The job is stopped between two batches, and started again as it was last run.",
         "It goes on where it stopped: nothing is lost, and nothing is written twice."],
        "Restart", f"Restarting {name}",
    )  # fmt: skip


def _stop(name: str) -> Action:
    return Action(
        "stop", "Stop", f"Stop {name}?",
        ["The batch that runs is finished; then the job ends. Its checkpoints stay.",
         "It can be started again, and goes on where it stopped."],
        "Stop", f"Stopping {name}",
    )  # fmt: skip


def _stop_with_savepoint(name: str) -> Action:
    return Action(
        "stop-savepoint", "Stop with savepoint", f"Stop {name} with a savepoint?",
        ["The batch that runs is finished; then the job ends and a savepoint of that batch is "
         "taken.",
         "It is kept until you delete it, and can be moved, or be restored into a changed flow."],
        "Stop with savepoint", f"Stopping {name} with a savepoint",
    )  # fmt: skip


def _cancel(name: str) -> Action:
    return Action(
        "cancel", "Cancel", f"Cancel {name}?",
        ["The job is ended at once, in the middle of a batch. What that batch did is thrown away; "
         "rows that were written by earlier batches stay."],
        "Cancel the job", f"Cancelling {name}", dangerous=True,
    )  # fmt: skip
