"""Notes that programs take of the user's values while they run.

A note is what is watched of a value, where it is in the user's code, and which loops are around it
(`_note`). `_binding` binds the notes of results and cotangents beside JAX's binds, and `_variables`
those of the variables of the user's functions; `_options` says which, and `_source` reads the code.
`_primitives` are the notes in the program, `_numbers` and `_bad` what they compute there, and
`_store` receives it.
"""

from ._binding import around_bind
from ._context import key, unwatched
from ._note import Note
from ._numbers import MOST_ELEMENTS
from ._options import Options, chosen, condition
from ._store import (
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
from ._variables import Following
