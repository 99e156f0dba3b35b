"""Every piece of JAX that is not public API, and nothing else.

When a JAX release breaks us, this is the folder to read. Seen in JAX 0.8.0, 0.10.2 and 0.12.0.
`jax.extend` and `jax.interpreters` carry no stability promise either, so they live here too.
"""

from ._around import backend_name as backend_name
from ._around import caches_of_its_own as caches_of_its_own
from ._around import calls_a_rule as calls_a_rule
from ._around import has_the_batch_in_hand as has_the_batch_in_hand
from ._around import held_weakly as held_weakly
from ._around import host_function_can_block as host_function_can_block
from ._around import is_dispatch as is_dispatch
from ._around import key_implementation as key_implementation
from ._around import lowers_predicate_that_goes_wrong as lowers_predicate_that_goes_wrong
from ._around import traced_by as traced_by
from ._around import without_mesh as without_mesh
from ._binds import first_operation as first_operation
from ._contexts import automatic_axes as automatic_axes
from ._contexts import device_count as device_count
from ._contexts import group_count as group_count
from ._contexts import is_for_export as is_for_export
from ._contexts import program_name as program_name
from ._contexts import shard_count as shard_count
from ._contexts import shard_devices as shard_devices
from ._contexts import shard_number as shard_number
from ._contexts import times_called as times_called
from ._exclusion import leave_out_of_tracebacks
from ._loops import hold_finished_lanes as hold_finished_lanes
from ._loops import leave_loops_to_jax as leave_loops_to_jax
from ._loops import stay_in_loops as stay_in_loops
from ._needed import Effect as Effect
from ._needed import Primitive as Primitive
from ._needed import TokenSet as TokenSet
from ._needed import abstract_token as abstract_token
from ._needed import ad as ad
from ._needed import apply_primitive as apply_primitive
from ._needed import batching as batching
from ._needed import build_ffi_lowering_function as build_ffi_lowering_function
from ._needed import callback_sharding as callback_sharding
from ._needed import forget_tokens as forget_tokens
from ._needed import jax_effect as jax_effect
from ._needed import keep_and_order as keep_and_order
from ._needed import keep_under_partial_evaluation as keep_under_partial_evaluation
from ._needed import leaves_references_as_they_are as leaves_references_as_they_are
from ._needed import mlir as mlir
from ._needed import partial_eval_jaxpr_custom_rules as partial_eval_jaxpr_custom_rules
from ._needed import requires_devices_during_lowering as requires_devices_during_lowering
from ._needed import set_sharding as set_sharding
from ._needed import shaped_array as shaped_array
from ._needed import wait_for_ordered as wait_for_ordered
from ._own import watch_own_callbacks as watch_own_callbacks
from ._own_function import frames_of as frames_of
from ._own_function import own_function as own_function
from ._processes import Store as Store
from ._processes import from_all as from_all
from ._processes import process_number as process_number
from ._processes import shared_store as shared_store
from ._processes import start_backends as start_backends
from ._programs import dispatched as dispatched
from ._programs import dispatching as dispatching
from ._programs import keeps_callbacks_out_of_cache as keeps_callbacks_out_of_cache
from ._programs import let_go as let_go
from ._programs import watch as watch
from ._programs import without_dead_equations as without_dead_equations
from ._raised import LOOKING as LOOKING
from ._raised import forget_failed_tokens as forget_failed_tokens
from ._raised import meet_errors as meet_errors
from ._raised import stay_in_python as stay_in_python
from ._runs import Compiled as Compiled
from ._unfinished import is_over as is_over
from ._unfinished import unfinished_arrays as unfinished_arrays
from ._unfinished import unfinished_runs as unfinished_runs
from ._unfinished import unfinished_tokens as unfinished_tokens

leave_out_of_tracebacks()
