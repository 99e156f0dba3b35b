"""What is called: the user's function, under which name, with which arrays and options.

Read `_callback` first (the static parameter of every bind), then `_late_binding` (which function a
registered name calls). `_observed` is the same for JAX's own callbacks. `_described` has what
capabilities say of a callback in a recording.
"""

from ._advice import as_magic_options as as_magic_options
from ._advice import debug_equivalent as debug_equivalent
from ._advice import did_you_mean as did_you_mean
from ._advice import how_to_differentiate as how_to_differentiate
from ._advice import how_to_transpose as how_to_transpose
from ._advice import option as option
from ._array_names import ArrayNames as ArrayNames
from ._array_names import without_leading as without_leading
from ._arrays import aligned as aligned
from ._arrays import aligning as aligning
from ._arrays import check_leaves as check_leaves
from ._arrays import empty_aligned as empty_aligned
from ._arrays import is_array as is_array
from ._arrays import is_big as is_big
from ._arrays import taking_jax_arrays as taking_jax_arrays
from ._arrays import to_array as to_array
from ._arrays import to_aval as to_aval
from ._callback import NO_STATIC as NO_STATIC
from ._callback import Bind as Bind
from ._callback import HostCallback as HostCallback
from ._callback import HostFunction as HostFunction
from ._callback import Static as Static
from ._callback import given_name as given_name
from ._callback import name_of as name_of
from ._described import Topic as Topic
from ._described import is_varying as is_varying
from ._described import marks as marks
from ._described import marks_of as marks_of
from ._described import note_on as note_on
from ._described import notes as notes
from ._described import varies as varies
from ._late_binding import Run as Run
from ._late_binding import cell_begins as cell_begins
from ._late_binding import cell_ends as cell_ends
from ._late_binding import cell_known_as as cell_known_as
from ._late_binding import register as register
from ._late_binding import running_cell as running_cell
from ._observed import Observed as Observed
from ._observed import ObservedFormat as ObservedFormat
from ._observed import Proxy as Proxy
from ._observed import is_held as is_held
from ._observed import is_observing as is_observing
from ._observed import is_watching as is_watching
from ._observed import note as note
from ._observed import switch as switch
from ._observed import switches as switches
from ._observed import user_function_name as user_function_name
