"""Every use of JAX that is not public API, and nothing else.

If a JAX release breaks this package, read this folder. Checked against JAX 0.10.2 and
0.12.0. `jax.extend` and `jax.interpreters` have no stability guarantee either, so their uses are
here too.

`_required` checks what callbacks cannot work without. Every other use says what is lost without it;
`tests/upstream` tries that, and reads the source of other versions of JAX.
"""

from ._axes import (
    first_axis_as,
    first_axis_whole,
    lost_axes,
    register_batching,
    rows_like,
    sharded_alike,
    sharded_as,
    vary_together,
    varying_like,
)
from ._binds import (
    evaluates_effects,
    has_rules,
    intercept_binds,
    intercept_loops,
    intercept_other_programs,
    is_linearizing,
    is_rule_or_lowering,
    is_sparsifying,
    is_transposing,
    jaxpr_trace,
    runs_rules,
    scan_operands,
    traces_jit,
)
from ._builtin_callbacks import (
    copy_of,
    user_arguments,
    user_function,
    watch_calls,
    watch_traces,
    without_partials,
)
from ._environment import (
    ProfilerSession,
    Store,
    backend_name,
    backends_exist,
    fresh_caches,
    from_all,
    held_weakly,
    host_function_can_block,
    key_implementation,
    leave_out_of_tracebacks,
    process_number,
    shared_store,
    start_backends,
    without_mesh,
)
from ._errors import TOKEN_CHECK_THREAD, forget_failed_tokens, intercept_errors, stay_in_python
from ._lowering_context import (
    HAS_BRANCHES,
    Branch,
    automatic_axes,
    current_block,
    device_count,
    flat,
    frames_of,
    group_count,
    has_named_mesh,
    is_for_export,
    keep_operation,
    program_devices,
    program_name,
    shard_count,
    shard_devices,
    shard_number,
    times_called,
)
from ._private import Changes
from ._programs import (
    Compiled,
    dispatched,
    dispatching,
    drop_executable,
    is_on_one_of_several,
    keeps_callbacks_out_of_cache,
    modules_of_programs,
    optimized,
    shardings_of_results,
    unwatch_compilation_times,
    watch,
    watch_compilation_times,
    watches_programs,
    without_dead_equations,
)
from ._required import (
    Effect,
    Primitive,
    TokenSet,
    abstract_token,
    ad,
    apply_primitive,
    batching,
    build_ffi_lowering_function,
    callback_sharding,
    forget_tokens,
    has_ordered_effects,
    jax_effect,
    keep_and_order,
    keep_under_partial_evaluation,
    leaves_references_as_they_are,
    mlir,
    partial_eval_jaxpr_custom_rules,
    requires_devices_during_lowering,
    set_sharding,
    shaped_array,
    wait_for_ordered,
)
from ._runs import (
    after_barriers,
    is_done,
    is_in_run,
    unfinished_arrays,
    unfinished_runs,
    unfinished_tokens,
)
from ._tracing import (
    Tracing,
    argument_names,
    calls_a_rule,
    current_trace,
    differentiates,
    first_operation,
    first_value,
    handles_whole_batch,
    is_differentiated,
    is_dispatch,
    is_staging,
    is_within,
    loop_name,
    tracing,
)
from ._while_loops import (
    hold_finished_elements,
    leave_loops_to_jax,
    lowers_broken_predicate,
    stay_in_loops,
)

leave_out_of_tracebacks()
