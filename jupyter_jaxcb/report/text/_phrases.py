"""Phrases that the front end needs too, because its counts change while it is open.

`labextension/src/view/data/phrases.json` is a copy for the front end. A test compares the two and
rewrites the file if JAXCB_WRITE_GOLDEN=1. Reasons, notes and warnings are not here: Python sends
them to the front end as finished text.
"""

from __future__ import annotations

from ...recording import Status
from .. import summary
from . import _mask

# What became of the calls of a site (`SiteView.consequence`), worst first, and how much it
# matters: badges, rows, headline and panel give it the same sign, words and color.
TONES = {
    "raised": "error",
    "stopped": "quiet",
    "not_finite": "warning",
    "running": "warning",
    Status.UNUSED: "warning",
    Status.OPTIMIZED_AWAY: "warning",
    "impure_deduplicated": "warning",  # and the host function has side effects
    "impure_hoisted": "warning",
    Status.KEPT: "kept",
    Status.DEDUPLICATED: "quiet",
    Status.HOISTED: "quiet",
    Status.NOT_REACHED: "quiet",
    Status.NOT_RUN: "quiet",
    "not_needed": "quiet",
    Status.UNKNOWN: "quiet",
}
SIGNS = {  # readable without the color
    "raised": "✕",
    "stopped": "■",
    "not_finite": "⚠",
    "running": "⚠",
    Status.UNUSED: "⚠",
    Status.OPTIMIZED_AWAY: "⚠",
    "impure_deduplicated": "⚠",
    "impure_hoisted": "⚠",
    Status.KEPT: "●",
    Status.DEDUPLICATED: "◐",
    Status.HOISTED: "◐",
    Status.NOT_REACHED: "○",
    Status.NOT_RUN: "○",
    "not_needed": "○",
    Status.UNKNOWN: "?",
}
WORDS = {
    "raised": "raised",
    "stopped": summary.STOPPED_BY_YOU,
    "not_finite": "NaN or infinity",
    **{status: status.words for status in Status},
    "impure_deduplicated": Status.DEDUPLICATED.words,
    "impure_hoisted": Status.HOISTED.words,
    "not_needed": Status.UNUSED.words,
    Status.KEPT: "",  # the number of calls shows it
    "running": "",  # for too long, as its figure shows
}
# Units and their size in the smallest unit, smallest first.
TIMES = (("ns", 1), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000))
BYTES = (("B", 1), ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000))

VMAP = "vmap {size}"
ARGUMENTS = {  # under one vmap, by `AxisKind`; listed unless all are batched
    "batched": "batched",
    "tiled": "tiled",
    "size1": "size-1 axis",
    "looped": "batched",
    "unbatched": "unbatched",
    "in_place": "batched",
}
GATHERS = "gathers {bytes}"

# How the batch elements of nested vmaps are spread over host calls.
ONE_CALL = "1 call for {elements}"
ONE_FOR_EACH = "{calls}, one for each element"
EACH_FOR = "{calls}, each for {elements}"
EMPTY_BATCH = "no calls, because the batch is empty"
# After a host function raised.
STOPPED = "stopped at element {element}"
STOPPED_OFTEN = "stopped {count} times, first at element {element}"
# For a callback that the program reaches several times, or has not reached.
SOME_EACH_TIME = "{calls}, {some} each time"
EACH_TIME = "{words} each time"
# The vmap diagram: the kinds of axes (`AxisKind`), and the heads of its columns.
AXES = {
    "batched": "batched",
    "tiled": "tiled",
    "size1": "size 1",
    "looped": "looped over",
    "unbatched": "no axis",
}
AXES_MEAN = {
    "batched": "one entry for each element",
    "tiled": "the same values, repeated for each element",
    "size1": "the same values for all elements, on an axis of size 1",
    "looped": "one call for each element, without this axis",
    "unbatched": "the same values for all elements",
}
MASK = "mask"
NOT_PASSED = "not passed"
AT_MOST = "≤ {size}"
ARGUMENT = "argument"
RESULT = "result"
OUTERMOST = "outermost"
INNERMOST = "innermost"
OWN_AXES = "own axes"
ONE_RECEIVES = "one call receives"
EACH_RECEIVES = "each call receives"
MUST_RETURN = "and must return"

# A vmap that loops over batch elements is slow if its host functions take at least this time.
SLOW_NS = 1_000_000
TIMES_VMAP = "{count} × vmap"
WORK_IN = "{work} of work in {wall}"  # of calls that an executor's workers make side by side
# On a site that returned NaN or infinity for finite arguments.
FIND_NOT_FINITE = (
    "call the function in Python with the arguments of that call, under "
    "np.errstate(all='raise'): NumPy then raises at the line"
)
FIRST_NOT_FINITE = "the first of them is call {call} in the tab Calls"
ONLY_NOT_FINITE = "it is call {call} in the tab Calls"
# Of an array of a sampled call.
RANGE = "{minimum} to {maximum}"
NAN_COUNT = "{count} NaN"
INF_COUNT = "{count} infinite"
ALL_FINITE = "no NaN"
AT_ELEMENT = ", batch element {element}"
OF_FINITE = "returned NaN or infinity for finite arguments"
OF_NOT_FINITE = "returned NaN or infinity, as its arguments have"

NOTHING = "nothing"  # no operands, no results
RAISED = f"{SIGNS['raised']} raised"
OF_ELEMENT = "element {element}: "
OF_SHARD = "shard {shard}: "

# Words of the views, as docs/glossary.md begins to define them.
MEANINGS = {
    "crossing": "One round trip from XLA to Python, or to the machine code of a compiled callback.",
    "elided": (
        "unused, optimized away, deduplicated or hoisted: fewer host calls than the program text "
        "says."
    ),
}

SOME_OF = "{some} of {calls}"
DATA_DECIDE = "depends on data"  # in place of the number of calls

NO_ROW = "the log was full: {calls} {were} counted but not logged"
NOT_COUNTED = "the log was full: another {calls} not counted"
NOT_LISTED = "{count} more call sites are not listed"

TABLE = {name.lower(): value for name, value in tuple(globals().items()) if name.isupper()}
TABLE |= _mask.PHRASES
