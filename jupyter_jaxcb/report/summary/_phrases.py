"""Phrases that the front end needs too, because its counts change while it is open.

`labextension/src/view/data/phrases.json` is a copy for the front end. A test compares the two and
rewrites the file if JAXCB_WRITE_GOLDEN=1. Reasons, notes and warnings are not here: Python sends
them to the front end as finished text.
"""

from __future__ import annotations

from ...recording import Status

# What became of the calls of a site (`SiteView.consequence`), worst first, and how much it
# matters: badges, rows, headline and panel give it the same sign, words and color.
TONES = {
    "raised": "error",
    "stopped": "quiet",
    "not_finite": "warning",
    "dropped": "warning",
    "running": "warning",
    Status.UNUSED: "warning",
    Status.OPTIMIZED_AWAY: "warning",
    "impure_deduplicated": "warning",  # and the host function has side effects
    "impure_hoisted": "warning",
    "impure_fewer": "warning",
    Status.KEPT: "kept",
    Status.DEDUPLICATED: "quiet",
    Status.HOISTED: "quiet",
    Status.FEWER: "quiet",
    Status.NOT_REACHED: "quiet",
    Status.NOT_RUN: "quiet",
    "not_needed": "quiet",
    Status.UNKNOWN: "quiet",
}
SIGNS = {  # readable without the color
    "raised": "✕",
    "stopped": "■",
    "not_finite": "⚠",
    "dropped": "⚠",
    "running": "⚠",
    Status.UNUSED: "⚠",
    Status.OPTIMIZED_AWAY: "⚠",
    "impure_deduplicated": "⚠",
    "impure_hoisted": "⚠",
    "impure_fewer": "⚠",
    Status.KEPT: "●",
    Status.DEDUPLICATED: "◐",
    Status.HOISTED: "◐",
    Status.FEWER: "◐",
    Status.NOT_REACHED: "○",
    Status.NOT_RUN: "○",
    "not_needed": "○",
    Status.UNKNOWN: "?",
}
WORDS = {
    "raised": "raised",
    "stopped": "stopped by you",
    "not_finite": "NaN or infinity",
    "dropped": "dropped",
    **{status: status.words for status in Status},
    "impure_deduplicated": Status.DEDUPLICATED.words,
    "impure_hoisted": Status.HOISTED.words,
    "impure_fewer": Status.FEWER.words,
    "not_needed": Status.UNUSED.words,
    Status.KEPT: "",  # the number of calls shows it
    "running": "",  # for too long, as its figure shows
}
# Units and their size in the smallest unit, smallest first.
TIMES = (("ns", 1), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000))
BYTES = (("B", 1), ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000))

# The vmap diagram: the kinds of axes (`AxisKind`), and heads of its columns.
AXES = {
    "batched": "batched",
    "tiled": "tiled",
    "size1": "size 1",
    "looped": "looped over",
    "unbatched": "no axis",
    "in_place": "batched",
}
AXES_MEAN = {
    "batched": "one entry for each element",
    "tiled": "the same values, repeated for each element",
    "size1": "the same values for all elements, on an axis of size 1",
    "looped": "one call for each element, without this axis",
    "unbatched": "the same values for all elements",
    "in_place": "one entry for each element",
}
OWN_AXES = "own axes"
MUST_RETURN = "and must return"

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
AT_ELEMENT = ", batch element {element}"
OF_FINITE = "returned NaN or infinity for finite arguments"
OF_NOT_FINITE = "returned NaN or infinity, as its arguments have"

# Words of the views, as docs/glossary.md begins to define them.
MEANINGS = {
    "crossing": "One round trip from XLA to Python, or to the machine code of a compiled callback.",
    "elided": (
        "unused, optimized away, deduplicated, hoisted or fewer: fewer host calls than the program "
        "text says."
    ),
}

SOME_OF = "{some} of {calls}"
INSTEAD_OF = "{calls} instead of {written}"
DATA_DECIDE = "depends on data"  # in place of the number of calls

NOT_LISTED = "{count} more call sites are not listed"

TABLE = {name.lower(): value for name, value in tuple(globals().items()) if name.isupper()}
