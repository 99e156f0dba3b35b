"""Every use of JAX that is not public API, and nothing else.

`_subjects` lists the private names by subject, with the versions of JAX in which they were seen.
Read it first if a JAX release breaks something. Host calls need all of "calls" (`_calls`, `_axes`,
`_lowering_context`, `_while_loops`), without which this import fails. The other subjects have a
few modules each (`_statuses`, `_runs`, `_interrupts`, `_watch` with `_numbered`, `_exact` with
`_masks` and `_checkpoints`, `_observation`) and are off without their names. `jax.extend` and
`jax.interpreters` have no stability guarantee either, so their uses are here too.
"""

import jax

from ._subjects import INSTALL, Changes, is_on, missing, why_off

if jax.__version_info__ < (0, 10):
    raise ImportError(f"jupyter_jaxcb does not support JAX {jax.__version__}. {INSTALL}")
if _missing := missing("calls"):
    raise ImportError(
        f"jupyter_jaxcb does not support JAX {jax.__version__}: it has no {_missing}. {INSTALL}"
    )

# isort: off
# fmt: off
from ._axes import (
    element_of, elements_or, first_axis_as, first_axis_whole, register_batching, rows_like,
    sharded_alike, sharded_as, vary_together, varying_like,
)
from ._calls import (
    Effect, Primitive, TokenSet, abstract_token, ad, after_barriers, apply_primitive, batching,
    build_ffi_lowering_function, callback_sharding, forget_tokens,
    has_ordered_effects, held_weakly, host_function_can_block, is_staging, jax_effect,
    jaxpr_trace, keep_and_order, keep_under_partial_evaluation, key_implementation,
    leave_out_of_tracebacks, leaves_references_as_they_are, mlir, partial_eval_jaxpr_custom_rules,
    requires_devices_during_lowering, set_sharding, shaped_array, wait_for_ordered, without_mesh,
)
from ._checkpoints import save_in_checkpoints
from ._exact import takes_masks
from ._interrupts import (
    TOKEN_CHECK_THREAD, forget_failed_tokens, intercept_errors, is_in_run, leave_cpp,
    stay_in_python, unfinished_arrays, unfinished_tokens, waits_in_cpp,
)
from ._lowering_context import (
    automatic_axes, device_count, group_count, is_for_export, program_devices, shard_count,
    shard_devices, shard_number, times_called,
)
from ._masks import in_rule, mask_of_rule
from ._numbered import BRANCH, Add, Around, Numbering
from ._observation import (
    copy_of, frames_of, lost_axes, user_arguments, user_function, watch_calls, watch_traces,
    without_partials,
)
from ._profiler import ProfilerSession
from ._runs import is_done, unfinished_programs, unfinished_runs
from ._statuses import (
    Compiled, Tracing, argument_names, backend_name, backends_exist, calls_a_rule, differentiates,
    dispatching, drop_executable, first_operation, first_value, fresh_caches,
    function_of, handles_whole_batch, is_differentiated, is_dispatch, is_on_one_of_several,
    keeps_callbacks_out_of_cache, loop_name, modules_of_programs, optimized, shardings_of_results,
    tracing, watch, without_dead_equations,
)
from ._watch import (
    Branch, begins_loop, current_block, evaluates_effects, flat, has_rules, intercept_binds,
    intercept_other_programs, is_linearizing, is_rule_or_lowering, is_sparsifying, knows_loops,
    runs_rules, traces_jit,
)
from ._while_loops import (
    hold_finished_elements, leave_loops_to_jax, lowers_broken_predicate, stay_in_loops,
)
# fmt: on
# isort: on

leave_out_of_tracebacks()
