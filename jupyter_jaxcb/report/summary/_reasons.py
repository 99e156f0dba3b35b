"""The words for every reason and every note of a recording: the one place that has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...recording import Note, NoteKind, Outcome, Reason
from ._numbers import call_words, counted


class Runs(NamedTuple):
    """How many runs of programs there were."""

    least: int = 0  # that there were
    exact: bool = True  # else there may have been more

    def __str__(self) -> str:
        return f"{'' if self.exact else 'at least '}{counted(self.least, 'run')}"


class Cause(NamedTuple):
    """Why a site has its status: a reason, and the facts that its words tell."""

    reason: Reason
    outcome: Outcome | None = None  # that has it; None: the runs have it
    elsewhere: bool = False  # it is of another bind of the line than those that are called
    completed: Runs = Runs()  # that did not come to it
    failed: Runs = Runs()  # before they came to it


class Words(NamedTuple):
    """What is said of a reason: each a part of a sentence."""

    reason: str
    advice: str


# What keeps the calls of a flavor that may be left out.
_KEEP = {
    "pure": "register it as io",
    "buffer": "give it has_side_effect=True",
    "jax pure": "make it with io_callback",
    "jax buffer": "give it has_side_effect=True",
}
_USE_IT = "return or use the result; {keep} if it must run regardless"
_IN_CONDITION = (
    "it is in the condition of a loop of which XLA knows how often it runs; XLA never evaluates "
    "the condition then"
)
_EVALUATE = "make the call in the body of the loop, or have the condition depend on its result"
_KEEP_EACH = "nothing, if it is pure; {keep} if each of them must run"
_EQUAL_ONES = (
    "equal ones are made once, and ones whose result cannot matter, or that no run reaches, not at "
    "all"
)
_LOOK_AT_CONDITION = "look at the condition around this line"
_LOOK_AT_BRANCH = "look at the condition of the branch or loop around this line"
_LOOK_AT_SHAPE = "look at the shape of the mapped argument"

REASONS: Mapping[Reason, Words] = {
    Reason.UNUSED: Words(
        "its result is never used, so JAX dropped the call before compiling", _USE_IT
    ),
    Reason.UNUSED_IN_TRACE: Words(
        "nothing needs its result, so JAX dropped the call while it traced the function", _USE_IT
    ),
    Reason.SHAPE_ONLY: Words("only the shape of its result is needed", _USE_IT),
    Reason.DEAD_CODE: Words(
        "the compiled program never reaches it: dead code", "look at the branch around this line"
    ),
    Reason.DEAD_IN_TRACE: Words("JAX dropped it while it traced the function: dead code", _USE_IT),
    Reason.IO_IN_DERIVATIVE: Words(
        "JAX dropped it while it traced the function, as it does with io in derivatives",
        "bind it with jupyter_jaxcb.io_callback, which stays in derivatives of loops",
    ),
    Reason.EMPTY_BATCH: Words(
        "vmap maps it over an axis of size 0: there is no batch element to call it for",
        _LOOK_AT_SHAPE,
    ),
    Reason.EMPTY_LOOP: Words("it is in a loop of length 0", "look at the length of the loop"),
    Reason.OTHER_PLATFORM: Words(
        "it is in a branch for another platform", "nothing, unless it is meant to run here"
    ),
    Reason.UNREACHABLE: Words("XLA proved that a run never reaches it", _LOOK_AT_CONDITION),
    Reason.UNREACHABLE_BRANCH: Words(
        "XLA proved that a run never reaches the branch or loop around it", _LOOK_AT_CONDITION
    ),
    Reason.OPTIMIZED_AWAY: Words(
        "XLA proved that its result cannot matter, and removed the call",
        "look at what becomes of the result (a factor 0, an empty slice, a branch that is never "
        "taken); {keep} if it must run regardless",
    ),
    Reason.CONDITION_SKIPPED: Words(_IN_CONDITION, _EVALUATE),
    Reason.CONDITION_PARTLY_SKIPPED: Words(
        f"on one of the ways that lead here, {_IN_CONDITION}", _EVALUATE
    ),
    Reason.PARTLY_UNUSED: Words(
        "{call_paths}, and JAX kept {kept} of them: the results of the others are never used",
        _KEEP_EACH,
    ),
    Reason.DEDUPLICATED: Words(
        f"{{call_paths}}, and XLA kept {{kept}} of them: {_EQUAL_ONES}", _KEEP_EACH
    ),
    Reason.DEDUPLICATED_AND_HOISTED: Words(
        f"{{call_paths}}, and XLA kept {{kept}} of them outside of the loop: {_EQUAL_ONES}",
        _KEEP_EACH,
    ),
    Reason.HOISTED: Words(
        "its arguments do not change in the loop, so it is called outside of it{instead}",
        "give it an argument that changes, the loop index say, if every step must call{or_keep}",
    ),
    Reason.LOWERED_TOGETHER: Words(
        "JAX lowered it together with an equal call, on whose line its calls are counted",
        "nothing; with another function each of them has calls of its own",
    ),
    Reason.UNREADABLE: Words(
        "the optimised program cannot be read: {unreadable}",
        "count its calls; report this with the version of JAX",
    ),
    Reason.NOT_RUN: Words("its program was compiled, and has not run", "run the program"),
    Reason.RUNS_NOT_SEEN: Words(
        "its program made no call, and whether it ran at all cannot be seen",
        "call it through jax.jit, whose runs can be seen",
    ),
    Reason.NOT_REACHED: Words(
        "its program ran, and did not enter the branch or loop around it", _LOOK_AT_BRANCH
    ),
    Reason.NOT_REACHED_OR_FAILED: Words(
        "{completed} did not enter the branch or loop around it, and {failed} failed before "
        "coming here",
        f"{_LOOK_AT_BRANCH}, and at the error",
    ),
    Reason.EARLIER_ERROR: Words("a run failed before it came here", "look at the error"),
    Reason.EARLIER_REGISTRATION: Words(
        "its program calls an earlier registration of the name, which was registered again in "
        "another cell or with other options",
        "to change what it calls, run the cell of that registration again; to compile it with the "
        "new one, call jax.clear_caches() first",
    ),
    Reason.OTHER_PROCESS: Words(
        "another process makes its calls, for all",
        "look there, or at what jaxcb.gather(recording) gives",
    ),
    Reason.NO_BATCH_ELEMENT: Words(
        "vmap mapped it over an axis of size 0: there is no batch element to call it for",
        _LOOK_AT_SHAPE,
    ),
    Reason.EMPTY_RESULT: Words(
        "its result is empty: there is nothing to call it for",
        "look at the shapes of its arguments",
    ),
    Reason.NO_RESULT: Words(
        "it returns nothing, so nothing needs the call",
        "register it as io if it must run regardless",
    ),
    Reason.PARTLY_OBSERVED: Words(
        "JAX's own callbacks were not observed all the time of this recording",
        "record all of it with jaxcb.observe_jax()",
    ),
}

NOTES: Mapping[NoteKind, str] = {
    NoteKind.ALL_BRANCHES_RUN: (
        "the predicate is mapped by vmap, so every branch runs for every batch "
        "element; the results of elements that took another branch are discarded"
    ),
    NoteKind.FINISHED_ELEMENTS_RUN: (
        "batch elements that have finished are called again until the last one has"
    ),
    NoteKind.UNBATCHED: "no argument is mapped by vmap: one call serves {batch} batch elements",
    NoteKind.OUT_OF_EMPTY_LOOP: (
        "the derivative moved it out of a loop of length 0, so it is called all the same"
    ),
    NoteKind.USES_JAX: "the host function uses JAX ({use})",
    NoteKind.USES_JAX_AND_CAN_BLOCK: (
        "the host function uses JAX ({use}) and can wait for ever when several calls are in flight"
    ),
    NoteKind.PARTLY_OBSERVED: "calls that came while JAX's were not observed are not counted",
}


def causes_of(outcome: Outcome, *, elsewhere: bool = False) -> tuple[Cause, ...]:
    """The cause of what a program made of a bind; none where it is simply called."""
    return (Cause(outcome.reason, outcome, elsewhere),) if outcome.reason else ()


def reason_words(causes: Iterable[Cause]) -> str:
    """Why a site has its status; empty without a cause."""
    return "; ".join(
        "elsewhere in the program " * cause.elsewhere
        + REASONS[cause.reason].reason.format_map(_told(cause))
        for cause in causes
    )


def advice_words(causes: Iterable[Cause]) -> str:
    """What to do about it; empty without a cause."""
    return "; ".join(REASONS[cause.reason].advice.format_map(_told(cause)) for cause in causes)


def note_words(note: Note) -> str:
    """What a note says."""
    batch = " × ".join(map(str, note.batch))
    return NOTES[note.kind].format(batch=batch, use=note.use)


def _told(cause: Cause) -> dict[str, object]:
    """What words of reasons have in braces."""
    found: dict[str, object] = {"completed": cause.completed, "failed": cause.failed}
    outcome = cause.outcome
    if outcome is None:
        return found
    flavor, written = outcome.site.flavor, outcome.written
    keep = _KEEP.get(flavor, _KEEP["pure"])
    unrolled = " (JAX unrolled the loop)" * outcome.unrolled
    return found | {
        "keep": keep,
        "or_keep": f"; or {keep}" * (flavor in _KEEP),
        "call_paths": f"{outcome.call_paths} ways lead here{unrolled}",
        "kept": call_words(outcome.instructions),
        "instead": "" if written is None else f" instead of {written:,} times",
        "unreadable": outcome.unreadable,
    }
