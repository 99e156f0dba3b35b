"""Notes that programs take of the user's values while they run.

`_binding` notes results and cotangents beside JAX's binds, and `_variables` the variables of the
user's functions; `_choice` says which. `_contexts` has the loops and branches around them,
`_place` and `_lines` the user's code, `_primitives` the notes in the program, `_reductions` what
they compute there, and `_received` what arrives. `_again` is for jaxprs that a library evaluates
in a loop.
"""

from ._binding import around_bind
from ._choice import chosen
from ._contexts import WRAPPERS, key, unwatched
from ._note import Note, Options, condition
from ._received import (
    Block,
    Facts,
    History,
    Store,
    Totals,
    merged,
    receive_into,
    totals_of,
    values_of,
)
from ._reductions import MOST_ELEMENTS
from ._variables import Following
