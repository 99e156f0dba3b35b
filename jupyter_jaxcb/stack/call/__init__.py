"""What is called: the user's function, under which name, with which arrays and options.

Read `_callback` first (the static parameter of every bind), then `_late_binding` (which function a
registered name calls). `_observed` is the same for JAX's own callbacks.
"""

from ._advice import (
    debug_equivalent,
    did_you_mean,
    how_to_differentiate,
    how_to_transpose,
)
from ._array_names import (
    AddedName,
    ArrayNames,
    check_named,
    names_operands,
    signature_of,
    without_leading,
)
from ._arrays import (
    aligned,
    aligning,
    check_leaves,
    empty_aligned,
    is_array,
    is_big,
    number_to_array,
    taking_jax_arrays,
    to_array,
    to_aval,
)
from ._callback import (
    NO_STATIC,
    Bind,
    HostCallback,
    HostFunction,
    Static,
    given_name,
    name_of,
    plain_signature,
    text_of,
)
from ._late_binding import (
    Run,
    cell_begins,
    cell_ends,
    cell_known_as,
    differentiated_by,
    register,
    running_cell,
)
from ._observed import (
    Observed,
    ObservedFormat,
    Proxy,
    is_held,
    is_observing,
    is_watching,
    note,
    switch,
    switches,
    user_function_name,
)
