"""What statuses are made of: JAX's programs while they are lowered, and its frames while it traces.

Every function of JAX here is Python: a program that is not in JAX's caches is traced, lowered and
compiled by the functions that `_TRACES` and `watch` name.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple, Protocol

import jax
import jax.extend.backend
from jax.core import Tracer

from ._runs import Executable, RunWatcher, runs
from ._subjects import Changes, code_of, is_on, module

_config = module("config")
_custom_batching_file = getattr(module("custom_batching"), "__file__", "")
_derivatives_file = getattr(module("interpreters.ad"), "__file__", "")
_pxla = module("interpreters.pxla")
_traceback_file = getattr(module("traceback_util"), "__file__", "")
_xla_bridge = module("xla_bridge")

# Called when a program has been compiled, with its executable (see `optimized`) and the nanoseconds
# that lowering and compiling took.
Compiled = Callable[[Executable, int, int], Any]


class Watcher(RunWatcher, Protocol):
    """Receives events about programs and their runs."""

    def lowering(self, jaxpr: Any, name: str) -> contextlib.AbstractContextManager[list[Compiled]]:
        """Return a context manager around lowering, given the jaxpr before dead-code elimination.

        The functions in the list it yields are called once the program is compiled. Their return
        value identifies the program to `ran`; None if its runs do not matter.
        """
        ...


def watch(watcher: Watcher, changes: Changes) -> None:
    """Report every program to `watcher`, until `changes` are reverted."""
    changes.make(lambda: runs.start(watcher), runs.stop)
    if not is_on("statuses"):
        return
    original = _pxla.lower_sharding_computation

    @functools.wraps(original)
    def lower(closed_jaxpr: Any, api_name: str, fun_name: str, *args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter_ns()
        with watcher.lowering(closed_jaxpr, fun_name) as when_compiled:
            copy = _uncached_copy(closed_jaxpr)
            computation = original(copy, api_name, fun_name, *args, **kwargs)
            took = time.perf_counter_ns() - start
        if when_compiled:
            effects = bool(closed_jaxpr.effects)
            _call_after_compile(computation, when_compiled, effects, took)
        return computation

    changes.set(_pxla, "lower_sharding_computation", lower)


def _call_after_compile(
    computation: Any, functions: list[Compiled], effects: bool, lower_ns: int
) -> None:
    # JAX keeps `computation` as long as its jaxpr, and the jaxpr as long as the jitted function. A
    # reference to either in here would keep all three, and the executable, alive forever.
    this = weakref.ref(computation)
    program: Any = None

    def compile_and_report(*args: Any, **kwargs: Any) -> Any:
        nonlocal program
        own: Any = this()
        start = time.perf_counter_ns()
        executable = type(own).compile(own, *args, **kwargs)
        took = time.perf_counter_ns() - start
        while functions:
            program = functions.pop(0)(executable, lower_ns, took)
        if program is not None:
            runs.expect(program, executable, effects, *_called_from())
        return executable

    computation.compile = compile_and_report


def without_dead_equations(jaxpr: Any) -> Any:
    """Apply the dead-code elimination that JAX applies before lowering."""
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    return module("interpreters.partial_eval").dce_jaxpr(inner, [True] * len(inner.outvars))[0]


def optimized(executable: Executable) -> str:
    """Return the text of the optimized HLO."""
    (hlo,) = executable.xla_executable.hlo_modules()
    return hlo.to_string()


def shardings_of_results(executable: Executable) -> Sequence[Any]:
    """Return the shardings of the results of a program."""
    return executable._out_shardings or ()


def is_on_one_of_several(sharding: Any) -> bool:
    """Return whether one of several devices has the values, though JAX says that all have them."""
    inside: Any = getattr(sharding, "_hlo_sharding", None)  # of a GSPMDSharding
    return inside is not None and inside.is_maximal() and len(sharding.device_set) > 1


def modules_of_programs() -> Iterator[Any]:
    """Yield the HLO module of each compiled program that JAX holds.

    It has a ``name``, ``to_string()`` and ``as_serialized_hlo_module_proto()``.
    """
    for client in jax.extend.backend.backends().values():
        for executable in client.live_executables():
            yield from executable.hlo_modules()


def keeps_callbacks_out_of_cache() -> bool:
    """Return whether the persistent compilation cache is on but skips programs with host callbacks.

    JAX skips them up to version 0.10.2; 0.11.2 and 0.12.0 cache them.
    """
    on = bool(jax.config.jax_compilation_cache_dir)  # type: ignore
    return on and jax.__version_info__ < (0, 11)


def dispatching() -> FrameType | None:
    """Return JAX's frame of the jitted function that is being called or lowered, if any.

    A program that JAX itself compiles for an eager transformation has none.
    """
    eager, called, lowered = _eager(), _called(), _lowered()
    traced = code_of("stages", "Traced.lower")  # of what was traced earlier; `lowered` calls it
    frame: FrameType | None = sys._getframe(1)
    ahead: FrameType | None = None
    while frame is not None:
        code = frame.f_code
        if code is eager:
            return None
        if code is called or code is lowered:
            return frame
        if code is traced:
            ahead = ahead or frame
        frame = frame.f_back
    return ahead


def function_of(dispatch: FrameType | None) -> Any:
    """Return the Python function that is being compiled; None for one that was traced earlier.

    Args:
        dispatch: see `dispatching`.
    """
    known = {} if dispatch is None else dispatch.f_locals
    return getattr(known.get("jit_func"), "__wrapped__", None) or known.get("fun")


def _called_from() -> tuple[bool, Any]:
    """Return whether the program is compiled ahead of time, and otherwise the called function.

    The function is None for a program that JAX itself compiles for an eager transformation: later
    runs of it cannot be detected.
    """
    eager, called = _eager(), _called()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is eager:
            return False, None
        if frame.f_code is called:
            return False, frame.f_locals["fun"]
        frame = frame.f_back
    return True, None


def _eager() -> CodeType:
    return code_of("pjit", "_pjit_call_impl.call_impl_cache_miss")


def _called() -> CodeType:
    return code_of("pjit", "_cpp_pjit.cache_miss")


def _lowered() -> CodeType:
    return code_of("pjit", "jit_lower")


_FIRST = 1_000_000
_own_caches = itertools.count(_FIRST)


@contextlib.contextmanager
def fresh_caches() -> Iterator[None]:
    """Trace and lower everything inside the block again, without using JAX's caches.

    Later calls do not find what was traced here either. `jax.make_user_context` would do the same,
    but creating one makes JAX recompile every function once. So this sets a number that is part of
    every cache key and otherwise only matters to profile-guided optimization.
    """
    with _config.pgle_profiling_runs(next(_own_caches)):
        yield


def _uncached_copy(jaxpr: Any) -> Any:
    """Return `jaxpr`, or inside `fresh_caches` a copy, so that its executable can be freed.

    Until 0.10, JAX keeps the original jaxpr, and the executable compiled from it, as long as the
    function.
    """
    is_kept = jax.__version_info__ < (0, 11) and _config.pgle_profiling_runs.value >= _FIRST
    return jaxpr.replace(jaxpr=jaxpr.jaxpr.replace()) if is_kept else jaxpr


def drop_executable(lowered: jax.stages.Lowered) -> None:
    """Drop the executable that `lowered` was compiled to, if it is never run.

    Otherwise JAX keeps it as long as the jitted function that was lowered.
    """
    computation: Any = lowered._lowering
    computation._executable = computation._hlo = None


def backend_name() -> str:
    """Return the default backend, such as ``cpu``; ``not started`` before JAX is used.

    `jax.default_backend` would start the backend, and then it is too late for some options and for
    ``jax.distributed.initialize``.
    """
    return jax.default_backend() if backends_exist() else "not started"


def backends_exist() -> bool:
    """Return whether JAX's backends are initialized, without initializing them.

    Always true while statuses are off. JAX's lock is not taken, because the thread that initializes
    the backends holds it for long.
    """
    if not is_on("statuses"):
        return True
    return bool(_xla_bridge._backends) and not _xla_bridge._backend_lock.locked()


# JAX's functions that trace their argument: the kind of trace, and the variable with its size.
_TRACES = (
    ("lax.control_flow.loops", "scan", "scan", "length"),
    ("lax.control_flow.loops", "while_loop", "while", ""),
    ("lax.control_flow.conditionals", "cond", "cond", ""),
    ("lax.control_flow.conditionals", "_switch_internal", "cond", ""),
    ("api", "vmap.vmap_f", "vmap", "axis_size_"),
    ("custom_derivatives", "custom_jvp.__call__", "rule", ""),
    ("custom_derivatives", "custom_vjp.__call__", "rule", ""),
    ("custom_batching", "custom_vmap.__call__", "custom batching", ""),
    ("custom_batching", "ClosedRule.__call__", "custom batching", ""),
    ("pjit", "_infer_params", "jit", ""),
    # They call the rules inside of a jitted function, which was traced before.
    ("pjit", "_pjit_jvp", "traced jit", ""),
    ("pjit", "_pjit_linearize", "traced jit", ""),
    ("pjit", "_pjit_transpose_fancy", "traced jit", ""),
    ("pjit", "_cpp_pjit.cache_miss", "dispatch", ""),
    ("pjit", "jit_lower", "dispatch", ""),
    ("dispatch", "xla_primitive_callable.prim_fun", "eager", ""),
    ("api", "eval_shape", "look", ""),
    ("api", "make_jaxpr.make_jaxpr_f", "look", ""),
    ("pjit", "jit_trace", "look", ""),
    ("custom_derivatives", "_closure_convert_for_avals", "look", ""),
    ("api", "linear_transpose", "transpose", ""),
    # Looks at `f` and at the tangent system, for a derivative; only `solve` is part of a run.
    ("lax.control_flow.solves", "custom_root", "look", ""),
)


class Tracing(NamedTuple):
    """What frames of one function of JAX trace."""

    kind: str  # "scan", "while", "cond", "vmap", "jit", ...
    size: str  # the local variable that holds the size, or empty

    def of(self, frame: FrameType) -> tuple[str, int | None]:
        """Return what a frame of the function traces: ``("scan", 5)``, ``("jit", None)``."""
        size = frame.f_locals.get(self.size) if self.size else None
        kind = self.kind
        if kind == "look" and _is_trace_to_lower(frame):
            kind = "jit"
        elif kind == "look" and _is_trace_of_solve(frame):
            kind = "solve"
        return kind, size if isinstance(size, int) else None


def _is_trace_to_lower(frame: FrameType) -> bool:
    """Return whether a frame is that of ``jit(f).trace``, called by ``jit(f).lower``."""
    caller = frame.f_back if frame.f_code is code_of("pjit", "jit_trace") else None
    while caller is not None and caller.f_code.co_filename == _traceback_file:
        caller = caller.f_back
    return caller is not None and caller.f_code is _lowered()


def _is_trace_of_solve(frame: FrameType) -> bool:
    """Return whether a frame is that of ``custom_root`` between its results of `f` and `solve`."""
    if frame.f_code is not code_of("lax.control_flow.solves", "custom_root"):
        return False
    return "f_jaxpr" in frame.f_locals and "solve_jaxpr" not in frame.f_locals


@functools.cache
def _traces() -> dict[CodeType, Tracing]:
    if not is_on("statuses"):
        return {}
    return {code_of(place, name): Tracing(kind, size) for place, name, kind, size in _TRACES}


def tracing(code: CodeType) -> Tracing | None:
    """Return what frames of `code` trace; None for most code, and while statuses are off.

    "eager" is the program that JAX compiles for all equal eager calls of a primitive.
    """
    return _traces().get(code)


def is_dispatch(code: CodeType) -> bool:
    """Return whether `code` is JAX's dispatch of a jitted function that is being compiled."""
    found = tracing(code)
    return found is not None and found.kind == "dispatch"


def differentiates(code: CodeType) -> bool:
    """Return whether `code` is JAX's code that takes a derivative."""
    return code.co_filename == _derivatives_file


def handles_whole_batch(code: CodeType) -> bool:
    """Return whether `code` is JAX's code around a `custom_vmap` rule."""
    return code.co_filename == _custom_batching_file


@functools.cache
def _rules() -> frozenset[CodeType]:
    if not is_on("statuses"):
        return frozenset()
    rules = {code_of("custom_derivatives", f"_flatten_{rule}") for rule in ("jvp", "fwd", "bwd")}
    if jax.__version_info__ >= (0, 12):  # jax_custom_jvp3, _vjp3
        makers = "_custom_jvp_rule", "_custom_vjp_fwd", "_custom_vjp_bwd", "_custom_vjp_bwd_accums"
        rules |= {code_of("hijax", f"{maker}.rule") for maker in makers}
    return frozenset(rules)


def calls_a_rule(code: CodeType) -> bool:
    """Return whether `code` is JAX's code that calls a differentiation rule."""
    return code in _rules()


def loop_name(jaxpr: Any) -> str:
    """Return "fori_loop" for the body of such a loop, which JAX writes as a scan or while.

    Empty for other loops.
    """
    return "fori_loop" if _debug_info(jaxpr).traced_for == "fori_loop" else ""


def argument_names(jaxpr: Any) -> tuple[str, ...]:
    """Name the arguments of a jitted function: ``("x", "params['w']")``."""
    return tuple(_debug_info(jaxpr).arg_names or ())


def _debug_info(jaxpr: Any) -> Any:
    return getattr(jaxpr, "jaxpr", jaxpr).debug_info


def is_differentiated(equation: Any) -> bool:
    """Return whether an equation is part of a function that is differentiated."""
    stack = equation.source_info.name_stack.stack
    return any(getattr(one, "name", "") == "jvp" for one in stack)


_looked: Any = jax.make_user_context(0)
_numbers = itertools.count(1)
_MACHINERY = ("jax", "jupyter_jaxcb", "contextlib", "functools")


def first_operation(call: Callable[[], Any]) -> tuple[str, int] | None:
    """Run `call`; return file and line of the first code in it that uses JAX, if any."""
    found: list[tuple[str, int]] = []
    entries = (
        code_of("core", "Primitive.bind"),
        _called(),
        code_of("interpreters.pxla", "MeshExecutable.create_cpp_call.aot_cache_miss"),
        code_of("api", "device_put"),
    )

    def look(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and not found and any(frame.f_code is entry for entry in entries):
            found.append(_outside(frame))

    previous = sys.getprofile()
    with _looked(next(_numbers)):  # makes the caches miss: a hit would stay in C++ unnoticed
        sys.setprofile(look if is_on("statuses") else previous)
        try:
            call()
        finally:
            sys.setprofile(previous)
    return found[0] if found else None


def _outside(frame: FrameType | None) -> tuple[str, int]:
    """Return the nearest caller outside JAX and this package."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.partition(".")[0] not in _MACHINERY:
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return "", 0


def first_value(x: Any) -> Any:
    """Return the value of a tracer for its first batch element, without tangents; None if unknown.

    What is no tracer is returned as it is.
    """
    while issubclass(type(x), Tracer):
        if (primal := getattr(x, "primal", None)) is not None:
            x = primal
        elif hasattr(x, "batch_dim"):
            axis, x = x.batch_dim, x.val
            if axis is not None:
                x = x[(slice(None),) * axis + (0,)] if x.shape[axis] else None
        else:
            return None
    return x
