"""The texts of all reasons, advice and notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...recording import OBSERVED, Note, NoteKind, Outcome, Reason, Site
from . import _queue
from ._numbers import call_words, counted


class Runs(NamedTuple):
    """A number of program runs, which may be a lower bound."""

    least: int = 0
    exact: bool = True  # False: there may have been more

    def __str__(self) -> str:
        return f"{'' if self.exact else 'at least '}{counted(self.least, 'run')}"


class Cause(NamedTuple):
    """Why a call site has its status: a reason, and the facts that its words need."""

    reason: Reason
    outcome: Outcome | None = None  # the outcome that has this reason; None: decided by the runs
    elsewhere: bool = False  # the reason is that of another bind on the line; this one was called
    completed: Runs = Runs()  # runs that completed without reaching the call site
    failed: Runs = Runs()  # runs that failed before reaching it


class Words(NamedTuple):
    """The texts of a reason: a clause that follows the status, and an imperative."""

    reason: str
    advice: str  # empty if all is as expected


# How to keep the calls of a flavor that JAX and XLA may remove.
_KEEP = {
    "pure": "use an io callback",
    "buffer": "give it has_side_effect=True",
    "jax pure": "use io_callback",
    "jax buffer": "give it has_side_effect=True",
}
_USE_IT = "return or use the result; {keep} if it must run regardless"
_IN_CONDITION = (
    "it is in the condition of a loop whose number of iterations XLA knows, so XLA never "
    "evaluates the condition"
)
_EVALUATE = "make the call in the body of the loop, or make the condition depend on its result"
_KEEP_EACH = "do nothing if it is pure; {keep} if every call must run"
_REST_REMOVED = (
    "XLA removed the rest as duplicates (common subexpression elimination) or as dead code"
)
_CHECK_CONDITION = "check the condition around this line"
_CHECK_BRANCH = "check the condition of the branch or loop around this line"
_CHECK_SHAPE = "check the shape of the batched argument"

REASONS: Mapping[Reason, Words] = {
    Reason.UNUSED: Words(
        "nothing uses its result, so JAX removed the call before compiling (dead-code elimination)",
        _USE_IT,
    ),
    Reason.UNUSED_IN_TRACE: Words(
        "nothing uses its result, so JAX removed the call while tracing (dead-code elimination)",
        f"do nothing if only a derivative is needed; otherwise {_USE_IT}",
    ),
    Reason.NOT_NEEDED: Words("this derivative does not need its value", ""),
    Reason.DEAD_CODE: Words(
        "the compiled program never reaches it (dead code)", "check the branch around this line"
    ),
    Reason.UNUSED_CHECKPOINT: Words(
        "nothing uses the results of its jax.checkpoint, and the call needs no array from outside, "
        "so JAX removed both, in spite of the side effect",
        "make the call outside of the checkpointed function, or use a result of that function",
    ),
    Reason.DEAD_IN_TRACE: Words("JAX removed it as dead code while tracing", _CHECK_CONDITION),
    Reason.IO_IN_DERIVATIVE: Words(
        "JAX removed it while tracing, as it does with io callbacks in derivatives",
        "use jupyter_jaxcb.io_callback, which stays in derivatives of loops",
    ),
    Reason.EMPTY_BATCH: Words(
        "vmap maps it over an axis of size 0, so there is no batch element to call it for",
        _CHECK_SHAPE,
    ),
    Reason.EMPTY_LOOP: Words("it is in a loop of length 0", "check the length of the loop"),
    Reason.OTHER_PLATFORM: Words("it is in a branch for another platform", ""),
    Reason.UNREACHABLE: Words("XLA proved that the program never reaches it", _CHECK_CONDITION),
    Reason.UNREACHABLE_BRANCH: Words(
        "XLA proved that the program never enters the branch or loop around it", _CHECK_CONDITION
    ),
    Reason.OPTIMIZED_AWAY: Words(
        "XLA proved that its result cannot affect the output, and removed the call (dead-code "
        "elimination)",
        "check how the result is used (an integer times 0, in an empty slice, in a branch that is "
        "never taken); {keep} if it must run regardless",
    ),
    Reason.CONDITION_SKIPPED: Words(_IN_CONDITION, _EVALUATE),
    Reason.CONDITION_PARTLY_SKIPPED: Words(f"on one of its call paths, {_IN_CONDITION}", _EVALUATE),
    Reason.PARTLY_UNUSED: Words(
        "{call_paths}, {kept} kept: JAX removed {unused_rest} (dead-code elimination)",
        _KEEP_EACH,
    ),
    Reason.PARTLY_UNUSED_AND_HOISTED: Words(
        "{call_paths}, {kept} kept outside the loop: JAX removed {unused_rest} (dead-code "
        "elimination)",
        _KEEP_EACH,
    ),
    Reason.DEDUPLICATED: Words(f"{{call_paths}}, {{kept}} kept: {_REST_REMOVED}", _KEEP_EACH),
    Reason.DEDUPLICATED_AND_HOISTED: Words(
        f"{{call_paths}}, {{kept}} kept outside the loop: {_REST_REMOVED}", _KEEP_EACH
    ),
    Reason.HOISTED: Words(
        "its arguments do not change in the loop, so the call was moved out of the loop "
        "(loop-invariant code motion){instead}",
        "do nothing if one call is enough; if every step must call, pass an argument that changes, "
        "such as the loop index{or_keep}",
    ),
    Reason.TRACED_BEFORE: Words(
        "JAX traced the call in a loop, before it traced this program; whether a derivative moved "
        "the call out of its loop is unknown",
        "call jax.clear_caches() and run it again, under jax.jit, to know",
    ),
    Reason.MAY_BE_HOISTED: Words(
        "JAX traced the call in a loop and makes it outside of that loop, where a derivative may "
        "have moved it",
        "if every step must call, pass an argument that changes, such as the loop index",
    ),
    Reason.LOWERED_TOGETHER: Words(
        "JAX lowered it together with an equal call; its calls are counted on that line",
        "use two different host functions to count them separately",
    ),
    Reason.UNREADABLE: Words(
        "the optimized program cannot be read: {unreadable}",
        "count the calls in the host function, and report this with your version of JAX",
    ),
    Reason.NOT_RUN: Words("its program was compiled but has not run", "run the program"),
    Reason.RUNS_NOT_SEEN: Words(
        "its program made no call, and whether it ran is unknown",
        "call the program through jax.jit, so that its runs are counted",
    ),
    Reason.RUN_IN_PART: Words(
        "only a part of a run of its program is in this recording",
        "wait for the result of the program in the cell or block that runs it",
    ),
    Reason.NOT_REACHED: Words(
        "its program ran but did not enter the branch or loop around it", _CHECK_BRANCH
    ),
    Reason.NOT_REACHED_OR_FAILED: Words(
        "{completed} did not enter the branch or loop around it, and {failed} failed before "
        "reaching it",
        f"{_CHECK_BRANCH}, and fix the error",
    ),
    Reason.EARLIER_ERROR: Words("an earlier error stopped the program", "fix the error"),
    Reason.EARLIER_REGISTRATION: Words(
        "its program calls an earlier registration of this name, which has since been registered "
        "again in another cell or with other options",
        "run the cell of the earlier registration again to change what the program calls, or call "
        "jax.clear_caches() to compile it with the new one",
    ),
    Reason.IN_NO_PROGRAM: Words(
        "it was traced but is in no program that ran", "see %jax_explain, or jupyter_jaxcb.explain"
    ),
    Reason.OTHER_PROCESS: Words(
        "another process makes its calls on behalf of all",
        "see the recording of that process, or jaxcb.gather(recording)",
    ),
    Reason.NO_BATCH_ELEMENT: Words(
        "vmap mapped it over an axis of size 0, so there was no batch element to call it for",
        _CHECK_SHAPE,
    ),
    Reason.EMPTY_RESULT: Words(
        "its result is empty, so there is nothing to call it for",
        "check the shapes of its arguments",
    ),
    Reason.NO_RESULT: Words(
        "it returns nothing, so nothing needs the call",
        "use an io callback if it must run regardless",
    ),
    Reason.PARTLY_OBSERVED: Words(
        "JAX's own callbacks were observed during only part of this recording",
        "observe them during all of it with jaxcb.observe_jax()",
    ),
}

NOTES: Mapping[NoteKind, str] = {
    NoteKind.ALL_BRANCHES_RUN: (
        "the predicate is batched, so every branch runs for every batch element, and results of "
        "branches not taken are discarded"
    ),
    NoteKind.FINISHED_ELEMENTS_RUN: (
        "batch elements that have finished the loop may be called again until the last one finishes"
    ),
    NoteKind.UNBATCHED: "no argument is batched: one call serves {batch} batch elements",
    NoteKind.OUT_OF_EMPTY_LOOP: (
        "differentiation moved the call out of a loop of length 0, so it is made anyway"
    ),
    NoteKind.USES_JAX: "the host function uses JAX ({use})",
    NoteKind.USES_JAX_AND_CAN_BLOCK: (
        "the host function uses JAX ({use}) and may deadlock when several calls are in flight; use "
        "NumPy instead"
    ),
    NoteKind.PARTLY_OBSERVED: "calls made while JAX's callbacks were not observed are not counted",
    NoteKind.COMPILED: (
        "compiled by numba: only whole crossings are timed; values, NaN and threads are not "
        "recorded"
    ),
    **_queue.NOTES,
    NoteKind.RUN_AGAIN: (
        "the backward pass of a jax.checkpoint makes the call again; make it outside of the "
        "checkpoint, or keep its result with policy="
    ),
}
_WITHOUT_RESULT = ("io", "debug")  # no policy is sure to keep their calls

# What a closed host trace says of notes about calls that cost more than one may think, or block.
HINTS: Mapping[NoteKind, str] = {
    NoteKind.ALL_BRANCHES_RUN: "may be called for branches not taken",
    NoteKind.FINISHED_ELEMENTS_RUN: "may be called for finished elements",
    NoteKind.USES_JAX_AND_CAN_BLOCK: "uses JAX and may deadlock",
    NoteKind.RUN_AGAIN: "called again in the backward pass",
}

# Notes on calls that a mask can leave out.
IN_VAIN = frozenset({NoteKind.ALL_BRANCHES_RUN, NoteKind.FINISHED_ELEMENTS_RUN})


def causes_of(outcome: Outcome, *, elsewhere: bool = False) -> tuple[Cause, ...]:
    """Return the cause of an outcome's status; empty if its calls are simply kept."""
    return (Cause(outcome.reason, outcome, elsewhere),) if outcome.reason else ()


def reason_words(causes: Iterable[Cause]) -> str:
    """Say why a call site has its status; empty without a cause."""
    return "; ".join(
        "elsewhere in the program " * cause.elsewhere
        + REASONS[cause.reason].reason.format_map(_facts(cause))
        for cause in causes
    )


def advice_words(causes: Iterable[Cause]) -> str:
    """Say what to do about it; empty without a cause."""
    words = (REASONS[cause.reason].advice.format_map(_facts(cause)) for cause in causes)
    return "; ".join(filter(None, words))


def why(causes: Sequence[Cause]) -> str:
    """Return reason and advice; empty without a cause."""
    return "; ".join(filter(None, (reason_words(causes), advice_words(causes))))


def impure_advice(flavor: str) -> str:
    """Say what to do about missing calls of a function with side effects."""
    return f"{_KEEP.get(flavor, _KEEP['pure'])}, because the host function has side effects"


# What the code that makes the call decides: in a library, a user can change nothing about it.
_OF_THE_CALL = frozenset(
    {
        Reason.HOISTED,
        Reason.DEDUPLICATED,
        Reason.DEDUPLICATED_AND_HOISTED,
        Reason.PARTLY_UNUSED,
        Reason.PARTLY_UNUSED_AND_HOISTED,
        Reason.CONDITION_SKIPPED,
        Reason.CONDITION_PARTLY_SKIPPED,
        Reason.DEAD_CODE,
        Reason.UNREACHABLE,
        Reason.UNREACHABLE_BRANCH,
        Reason.LOWERED_TOGETHER,
        Reason.NOT_REACHED,
        Reason.NOT_REACHED_OR_FAILED,
    }
)


def in_library(library: str) -> str:
    """Say that a user cannot change what a library does."""
    return f"in {library}; nothing to change"


def library_advice(causes: Iterable[Cause], library: str) -> str:
    """As `advice_words`, for a call that `library` makes with a function of its own."""
    causes = list(causes)
    if any(cause.reason in _OF_THE_CALL for cause in causes):
        return in_library(library)
    return advice_words(causes)


def notes_of(site: Site, library: str) -> dict[NoteKind, str]:
    """Return the notes whose advice does not hold for a call, with what does."""
    if library:
        return {kind: f"{NOTES[kind].partition('; ')[0]} ({in_library(library)})" for kind in HINTS}
    if site.flavor.removeprefix(OBSERVED) in _WITHOUT_RESULT:
        return {NoteKind.RUN_AGAIN: NOTES[NoteKind.RUN_AGAIN].partition(", or keep")[0]}
    return {}


def note_words(note: Note, words: str = "") -> str:
    """Return the text of a note on a call, of its own `words` or of those in `NOTES`."""
    words = words or NOTES[note.kind]
    return words.format(batch=" × ".join(map(str, note.batch)), use=note.use)


def _facts(cause: Cause) -> dict[str, object]:
    """Return the values for the names in braces that `REASONS` uses."""
    found: dict[str, object] = {"completed": cause.completed, "failed": cause.failed}
    outcome = cause.outcome
    if outcome is None:
        return found
    flavor = outcome.site.flavor
    keep = _KEEP.get(flavor, _KEEP["pure"])
    unrolled = " (JAX unrolled the loop)" * outcome.unrolled
    return found | {
        "keep": keep,
        "or_keep": f", or {keep}" * (flavor in _KEEP),
        "call_paths": f"{counted(outcome.call_paths, 'call path')}{unrolled}",
        "kept": call_words(outcome.instructions),
        "unused_rest": _unused_rest(outcome.call_paths - outcome.instructions),
        "instead": _instead(outcome),
        "unreadable": outcome.unreadable,
    }


def _unused_rest(count: int) -> str:
    if count == 1:
        return "the other because its result is unused"
    return "the others because their results are unused"


def _instead(outcome: Outcome) -> str:
    """``: 1 call per run instead of 4``; empty where a count depends on data."""
    if outcome.written is None or outcome.compiled is None:
        return ""
    return f": {call_words(outcome.compiled)} per run instead of {outcome.written:,}"
