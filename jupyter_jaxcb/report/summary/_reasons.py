"""The texts of all reasons, advice and notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...recording import Note, NoteKind, Outcome, Reason, Site, Status
from . import _queue
from ._words import call_words, counted


class Cause(NamedTuple):
    """Why a call site has its status: a reason, and the facts that its words need."""

    reason: Reason
    outcome: Outcome | None = None  # the outcome that has this reason; None: decided by the runs
    elsewhere: bool = False  # the reason is that of another bind on the line; this one was called
    detail: str = ""  # in words, of a reason that is decided by the runs


class Words(NamedTuple):
    """A row of the table of reasons."""

    statuses: tuple[Status, ...]  # that it explains
    reason: str  # a clause that follows the status
    advice: str  # what to do, an imperative; empty if all is as expected


# How to keep the calls of a flavor that JAX and XLA may remove.
_KEEP = {
    "pure": "use an io callback",
    "buffer": "give it has_side_effect=True",
    "jax pure": "use io_callback",
    "jax buffer": "give it has_side_effect=True",
}
_GONE = (Status.UNUSED, Status.OPTIMIZED_AWAY)
_KEEP_EACH = "do nothing if it is pure; {keep} if every call must run"
_CHECK_BRANCH = "check the condition of the branch or loop around this line"

REASONS: Mapping[Reason, Words] = {
    # What JAX and XLA made of a bind in one program, see `stack/elision/_verdict.py`.
    Reason.UNUSED: Words(
        _GONE,
        "{unused} (dead-code elimination)",
        "return or use the result; {keep} if it must run regardless",
    ),
    Reason.IO_IN_DERIVATIVE: Words(
        (Status.UNUSED,),
        "JAX removed it while tracing, as it does with io callbacks in derivatives",
        "use jupyter_jaxcb.io_callback, which stays in derivatives of loops",
    ),
    Reason.UNUSED_CHECKPOINT: Words(
        (Status.UNUSED,),
        "nothing uses the results of its jax.checkpoint, and the call needs no array from outside, "
        "so JAX removed both, in spite of the side effect",
        "make the call outside of the checkpointed function, or use a result of that function",
    ),
    Reason.NOT_NEEDED: Words(_GONE, "this derivative does not need its value", ""),
    Reason.OTHER_PLATFORM: Words(_GONE, "it is in a branch for another platform", ""),
    Reason.NEVER_REACHED: Words(
        _GONE, "{detail}", "check the condition, length or batch size around this line"
    ),
    Reason.OPTIMIZED_AWAY: Words(
        (Status.OPTIMIZED_AWAY,),
        "XLA proved that its result cannot affect the output, and removed the call (dead-code "
        "elimination)",
        "check how the result is used (an integer times 0, in an empty slice, in a branch that is "
        "never taken); {keep} if it must run regardless",
    ),
    Reason.CONDITION_SKIPPED: Words(
        (Status.OPTIMIZED_AWAY, Status.FEWER),
        "it is in the condition of a loop whose number of iterations XLA knows, so XLA never "
        "evaluates the condition",
        "make the call in the body of the loop, or make the condition depend on its result",
    ),
    Reason.DEDUPLICATED: Words(
        (Status.DEDUPLICATED,),
        "{call_paths}, {kept} kept: JAX and XLA removed the rest as unused (dead-code elimination) "
        "or as duplicates (common subexpression elimination)",
        _KEEP_EACH,
    ),
    Reason.HOISTED: Words(
        (Status.HOISTED,),
        "its arguments do not change in the loop, so the call was moved out of the loop "
        "(loop-invariant code motion){instead}",
        "do nothing if one call is enough; if every step must call, pass an argument that changes, "
        "such as the loop index{or_keep}",
    ),
    Reason.FEWER: Words(
        (Status.FEWER,),
        "{call_paths}, {kept} kept: JAX and XLA removed calls that are unused or duplicates, and "
        "moved calls out of loops in which their arguments do not change{instead}",
        _KEEP_EACH,
    ),
    Reason.MAY_BE_HOISTED: Words(
        (Status.UNKNOWN,),
        "it was traced in a loop and is called outside of that loop, where {mover} may have moved "
        "it",
        "if every step must call, pass an argument that changes, such as the loop index; to know, "
        "call jax.clear_caches() and run it again under jax.jit",
    ),
    Reason.LOWERED_TOGETHER: Words(
        (Status.UNKNOWN,),
        "JAX lowered it together with an equal call; its calls are counted on that line",
        "use two different host functions to count them separately",
    ),
    Reason.UNREADABLE: Words(
        (Status.UNKNOWN,),
        "the optimized program cannot be read: {detail}",
        "count the calls in the host function, and report this with your version of JAX",
    ),
    # What the runs show, see `_status.py`.
    Reason.NOT_RUN: Words(
        (Status.NOT_RUN,), "its program was compiled but has not run", "run the program"
    ),
    Reason.EARLIER_ERROR: Words(
        (Status.NOT_RUN,), "an earlier error stopped the program", "fix the error"
    ),
    Reason.OTHER_PROCESS: Words(
        (Status.NOT_RUN,),
        "another process makes its calls on behalf of all",
        "see the recording of that process",
    ),
    Reason.NOT_REACHED: Words(
        (Status.NOT_REACHED,),
        "{its_runs} did not enter the branch or loop around it{and_failed}",
        _CHECK_BRANCH + "{and_fix}",
    ),
    Reason.RUNS_NOT_SEEN: Words(
        (Status.UNKNOWN,),
        "its program made no call, and whether it ran is unknown",
        "call the program through jax.jit, so that its runs are counted",
    ),
    Reason.RUN_IN_PART: Words(
        (Status.UNKNOWN,),
        "only a part of a run of its program is in this recording",
        "wait for the result of the program in the cell or block that runs it",
    ),
    Reason.IN_NO_PROGRAM: Words(
        (Status.UNKNOWN,),
        "it was traced but is in no program that ran",
        "see %jax_explain, or jupyter_jaxcb.explain",
    ),
    Reason.PARTLY_OBSERVED: Words(
        (Status.UNKNOWN,),
        "JAX's own callbacks were observed during only part of this recording",
        "observe them during all of it with jaxcb.observe_jax()",
    ),
    Reason.EARLIER_REGISTRATION: Words(
        tuple(Status),
        "its program calls an earlier registration of this name, which has since been registered "
        "again in another cell, with other options or with another derivative rule",
        "run the cell of the earlier registration again to change what the program calls, or call "
        "jax.clear_caches() to compile it with the new one",
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
        "the backward pass of a jax.checkpoint makes the call again; register it with "
        "rematerialize=False, or make it outside of the checkpoint"
    ),
}

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
        "elsewhere " * cause.elsewhere + REASONS[cause.reason].reason.format_map(_facts(cause))
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
        Reason.FEWER,
        Reason.CONDITION_SKIPPED,
        Reason.NEVER_REACHED,
        Reason.LOWERED_TOGETHER,
        Reason.NOT_REACHED,
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
    return {}


def note_words(note: Note, words: str = "") -> str:
    """Return the text of a note on a call, of its own `words` or of those in `NOTES`."""
    words = words or NOTES[note.kind]
    return words.format(batch=" × ".join(map(str, note.batch)), use=note.use)


def _facts(cause: Cause) -> dict[str, object]:
    """Return the values for the names in braces that `REASONS` uses."""
    outcome, detail = cause.outcome, cause.detail
    facts: dict[str, object] = {
        "detail": detail or (outcome and outcome.detail) or "the program never reaches it",
        "mover": (outcome and outcome.detail) or "a derivative",
        "its_runs": detail.partition(", ")[0] or "its program ran but",
        "and_failed": f", and {detail.partition(', ')[2]} failed before reaching it" * bool(detail),
        "and_fix": ", and fix the error" * bool(detail),
    }
    if outcome is None:
        return facts
    flavor = outcome.site.flavor
    keep = _KEEP.get(flavor, _KEEP["pure"])
    unrolled = " (JAX unrolled the loop)" * outcome.unrolled
    instead = ""
    if None not in (outcome.written, outcome.compiled):
        instead = f": {call_words(outcome.compiled or 0)} per run instead of {outcome.written:,}"
    return facts | {
        "unused": f"{outcome.detail}, so the call was removed"
        if outcome.detail
        else "nothing uses its result, so JAX removed the call before compiling",
        "keep": keep,
        "or_keep": f", or {keep}" * (flavor in _KEEP),
        "call_paths": f"{counted(outcome.call_paths, 'call path')}{unrolled}",
        "kept": call_words(outcome.instructions),
        "instead": instead,
    }
