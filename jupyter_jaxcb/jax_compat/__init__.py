"""Every use of JAX that is not public API, and nothing else.

If a JAX release breaks this package, read this folder. Checked against JAX 0.8.0, 0.10.2 and
0.12.0. `jax.extend` and `jax.interpreters` have no stability guarantee either, so their uses are
here too.

`_required` checks what callbacks cannot work without. Every other use says what is lost without it;
`tests/upstream` tries that, and reads the source of other versions of JAX.
"""

from ._builtin_callbacks import watch_calls as watch_calls
from ._builtin_callbacks import watch_traces as watch_traces
from ._builtin_functions import copy_of as copy_of
from ._builtin_functions import frames_of as frames_of
from ._builtin_functions import user_arguments as user_arguments
from ._builtin_functions import user_function as user_function
from ._builtin_functions import without_partials as without_partials
from ._environment import Store as Store
from ._environment import backend_name as backend_name
from ._environment import fresh_caches as fresh_caches
from ._environment import from_all as from_all
from ._environment import held_weakly as held_weakly
from ._environment import host_function_can_block as host_function_can_block
from ._environment import key_implementation as key_implementation
from ._environment import leave_out_of_tracebacks
from ._environment import process_number as process_number
from ._environment import shared_store as shared_store
from ._environment import start_backends as start_backends
from ._environment import without_mesh as without_mesh
from ._errors import TOKEN_CHECK_THREAD as TOKEN_CHECK_THREAD
from ._errors import forget_failed_tokens as forget_failed_tokens
from ._errors import intercept_errors as intercept_errors
from ._errors import stay_in_python as stay_in_python
from ._lowering_context import automatic_axes as automatic_axes
from ._lowering_context import device_count as device_count
from ._lowering_context import group_count as group_count
from ._lowering_context import is_for_export as is_for_export
from ._lowering_context import program_name as program_name
from ._lowering_context import shard_count as shard_count
from ._lowering_context import shard_devices as shard_devices
from ._lowering_context import shard_number as shard_number
from ._lowering_context import times_called as times_called
from ._private import Changes as Changes
from ._profiler import ProfilerSession as ProfilerSession
from ._profiler import backends_exist as backends_exist
from ._profiler import modules_of_programs as modules_of_programs
from ._profiler import unwatch_compilation_times as unwatch_compilation_times
from ._profiler import watch_compilation_times as watch_compilation_times
from ._programs import Compiled as Compiled
from ._programs import dispatched as dispatched
from ._programs import dispatching as dispatching
from ._programs import drop_executable as drop_executable
from ._programs import keeps_callbacks_out_of_cache as keeps_callbacks_out_of_cache
from ._programs import optimized as optimized
from ._programs import watch as watch
from ._programs import watches_programs as watches_programs
from ._programs import without_dead_equations as without_dead_equations
from ._required import Effect as Effect
from ._required import Primitive as Primitive
from ._required import TokenSet as TokenSet
from ._required import abstract_token as abstract_token
from ._required import ad as ad
from ._required import apply_primitive as apply_primitive
from ._required import batching as batching
from ._required import build_ffi_lowering_function as build_ffi_lowering_function
from ._required import callback_sharding as callback_sharding
from ._required import forget_tokens as forget_tokens
from ._required import has_ordered_effects as has_ordered_effects
from ._required import jax_effect as jax_effect
from ._required import keep_and_order as keep_and_order
from ._required import keep_under_partial_evaluation as keep_under_partial_evaluation
from ._required import leaves_references_as_they_are as leaves_references_as_they_are
from ._required import mlir as mlir
from ._required import partial_eval_jaxpr_custom_rules as partial_eval_jaxpr_custom_rules
from ._required import requires_devices_during_lowering as requires_devices_during_lowering
from ._required import set_sharding as set_sharding
from ._required import shaped_array as shaped_array
from ._required import wait_for_ordered as wait_for_ordered
from ._tokens import after_barriers as after_barriers
from ._tokens import is_done as is_done
from ._tokens import unfinished_arrays as unfinished_arrays
from ._tokens import unfinished_runs as unfinished_runs
from ._tokens import unfinished_tokens as unfinished_tokens
from ._tracing import Tracing as Tracing
from ._tracing import argument_names as argument_names
from ._tracing import calls_a_rule as calls_a_rule
from ._tracing import current_trace as current_trace
from ._tracing import differentiates as differentiates
from ._tracing import first_operation as first_operation
from ._tracing import first_value as first_value
from ._tracing import handles_whole_batch as handles_whole_batch
from ._tracing import is_dispatch as is_dispatch
from ._tracing import is_staging as is_staging
from ._tracing import is_within as is_within
from ._tracing import loop_name as loop_name
from ._tracing import tracing as tracing
from ._varying import vary_together as vary_together
from ._varying import varying_axes as varying_axes
from ._varying import varying_like as varying_like
from ._while_loops import hold_finished_elements as hold_finished_elements
from ._while_loops import leave_loops_to_jax as leave_loops_to_jax
from ._while_loops import lowers_broken_predicate as lowers_broken_predicate
from ._while_loops import stay_in_loops as stay_in_loops

leave_out_of_tracebacks()
