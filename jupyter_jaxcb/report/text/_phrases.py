"""Words that the front end writes too: its counts change while one looks.

`labextension/src/view/data/phrases.json` holds the same for it. A test compares the two, and writes
the file anew where JAXCB_WRITE_GOLDEN=1; reasons, notes and warnings the front end is given.
"""

from __future__ import annotations

from ...recording import Status

SIGNS = {  # of a status, which tell it without its colour
    Status.KEPT: "●",
    Status.NOT_RUN: "○",
    Status.NOT_REACHED: "○",
    Status.UNUSED: "✕",
    Status.OPTIMIZED_AWAY: "✕",
    Status.DEDUPLICATED: "◐",
    Status.HOISTED: "◐",
    Status.UNKNOWN: "?",
}
# Units with how much of the first each is, the smallest first.
TIMES = (("ns", 1), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000))
BYTES = (("B", 1), ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000))

VMAP = "vmap {size}"
BATCHED = "batched"
UNBATCHED = "unbatched"
# What batching rules make of an unbatched argument, by method.
UNBATCHED_AXES = {"expand_dims": "size-1 axis", "broadcast_all": "tiled"}
GATHERS = "gathers {bytes}"

NOTHING = "nothing"  # no operands, no results
RAISED = "✕ raised"
OF_ELEMENT = "element {element}: "
OF_SHARD = "shard {shard}: "

SOME_OF = "{some} of {calls}"
A_RUN = "{calls} a run"
DATA_DECIDE = "depends on data"  # how many calls
DEPENDS_ON_DATA = "calls depend on data"
SHAPES = "{count} shapes"
ELIDED = "✕ {count} elided"

NO_ROW = "the log was full: {calls} of these {were} counted and have no row"
NOT_COUNTED = "{calls} more, not in these counts: the log was full"
NOT_LISTED = "{count} more call sites are not listed"

TABLE = {name.lower(): value for name, value in tuple(globals().items()) if name.isupper()}
