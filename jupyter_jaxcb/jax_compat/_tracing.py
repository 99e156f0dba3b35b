"""Read from JAX's own frames what is being traced, and find the first operation of a call.

Checked against JAX 0.10.2 and 0.12.0: a program that is not in JAX's caches is traced and
compiled in Python by the functions named here, and the value of a user context is part of the keys
of these caches. If these functions are renamed, nothing is found.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NamedTuple

import jax
from jax.core import Tracer

from ._private import JaxFunction, in_module, optional_module

_ENTRIES = {
    function.name: function
    for function in (
        JaxFunction("jax._src.core", "bind"),
        JaxFunction("jax._src.pjit", "cache_miss"),
        JaxFunction("jax._src.interpreters.pxla", "aot_cache_miss"),
        JaxFunction("jax._src.api", "device_put"),
    )
}
_looked: Any = jax.make_user_context(0)
_numbers = itertools.count(1)
_MACHINERY = ("jax", "jupyter_jaxcb", "contextlib", "functools")


def first_operation(call: Callable[[], Any]) -> tuple[str, int] | None:
    """Run `call`; return file and line of the first code in it that uses JAX, if any."""
    found: list[tuple[str, int]] = []

    def look(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and not found:
            entry = _ENTRIES.get(frame.f_code.co_name)
            if entry is not None and entry.is_run_by(frame.f_code):
                found.append(_outside(frame))

    previous = sys.getprofile()
    with _looked(next(_numbers)):  # makes the caches miss: a hit would stay in C++ unnoticed
        sys.setprofile(look)
        try:
            call()
        finally:
            sys.setprofile(previous)
    return found[0] if found else None


def _outside(frame: FrameType) -> tuple[str, int]:
    """Return the nearest caller outside JAX and this package."""
    here: FrameType | None = frame
    while here is not None:
        name = str(here.f_globals.get("__name__", ""))
        if name.partition(".")[0] not in _MACHINERY:
            return here.f_code.co_filename, here.f_lineno
        here = here.f_back
    return "", 0


_core = optional_module("jax._src.core")


def current_trace() -> Any:
    """Return the trace that this thread's operations go to; None if a JAX does not say.

    Without it, the callbacks in the derivative rule of a masked call are not masked.
    """
    return getattr(getattr(_core, "trace_ctx", None), "trace", None)


def is_staging() -> bool:
    """Return whether operations of this thread are traced now, and not executed.

    If a JAX does not say, False: of programs compiled before an observation, nothing is known.
    """
    now = current_trace()
    while now is not None and type(now).__name__ != "DynamicJaxprTrace":
        now = getattr(now, "parent_trace", None)
    return now is not None


def is_within(trace: Any) -> bool:
    """Return whether operations reach `trace` without being staged into an inner jaxpr first.

    Such a jaxpr, of a jit or a loop, may be cached, or differentiated on its own. It must not
    contain tracers of `trace`.
    """
    now = current_trace()
    while now is not None and now is not trace:
        if type(now).__name__ == "DynamicJaxprTrace":
            return False
        now = getattr(now, "parent_trace", None)
    return now is not None


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


# JAX's functions that trace their argument, by name: the kind of trace, and where its size is.
_TRACES = (
    (JaxFunction("jax._src.lax.control_flow.loops", "scan", "length"), "scan"),
    (JaxFunction("jax._src.lax.control_flow.loops", "while_loop"), "while"),
    (JaxFunction("jax._src.lax.control_flow.conditionals", "cond"), "cond"),
    (JaxFunction("jax._src.lax.control_flow.conditionals", "_switch_internal"), "cond"),
    (JaxFunction("jax._src.api", "vmap_f", "axis_size_"), "vmap"),
    (JaxFunction("jax._src.custom_derivatives", "__call__"), "rule"),
    (JaxFunction("jax._src.custom_batching", "__call__"), "custom batching"),
    (JaxFunction("jax._src.pjit", "_infer_params"), "jit"),
    (JaxFunction("jax._src.pjit", "cache_miss"), "dispatch"),
    (JaxFunction("jax._src.pjit", "jit_lower"), "dispatch"),
    (JaxFunction("jax._src.dispatch", "prim_fun"), "eager"),
    (JaxFunction("jax._src.api", "eval_shape"), "look"),
    (JaxFunction("jax._src.api", "make_jaxpr_f"), "look"),
    (JaxFunction("jax._src.pjit", "jit_trace"), "look"),
    (JaxFunction("jax._src.custom_derivatives", "_closure_convert_for_avals"), "look"),
    (JaxFunction("jax._src.api", "linear_transpose"), "transpose"),
)
_TRACES_BY_NAME = {
    function.name: [row for row in _TRACES if row[0].name == function.name]
    for function, _ in _TRACES
}


def loop_name(jaxpr: Any) -> str:
    """Return "fori_loop" for the body of such a loop, which JAX writes as a scan or while.

    Empty for other loops, and if a JAX does not say.
    """
    debug_info = getattr(getattr(jaxpr, "jaxpr", jaxpr), "debug_info", None)
    return "fori_loop" if getattr(debug_info, "traced_for", "") == "fori_loop" else ""


def is_differentiated(equation: Any) -> bool:
    """Return whether an equation is part of a function that is differentiated.

    False if a JAX does not say.
    """
    stack = getattr(getattr(equation, "source_info", None), "name_stack", None)
    return any(getattr(one, "name", "") == "jvp" for one in getattr(stack, "stack", ()))


def argument_names(jaxpr: Any) -> tuple[str, ...]:
    """Name the arguments of a jitted function: ``("x", "params['w']")``.

    Empty if a JAX does not say.
    """
    debug_info = getattr(getattr(jaxpr, "jaxpr", jaxpr), "debug_info", None)
    return tuple(getattr(debug_info, "arg_names", None) or ())


class Tracing(NamedTuple):
    """What frames of one function of JAX trace."""

    kind: str  # "scan", "while", "cond", "vmap", "jit", ...
    size: str  # the local variable that holds the size, or empty

    def of(self, frame: FrameType) -> tuple[str, int | None]:
        """Return what a frame of the function traces: ``("scan", 5)``, ``("jit", None)``."""
        size = frame.f_locals.get(self.size) if self.size else None
        kind = "jit" if _is_trace_to_lower(frame) else self.kind
        return kind, size if isinstance(size, int) else None


def _is_trace_to_lower(frame: FrameType) -> bool:
    """Return whether a frame is that of ``jit(f).trace``, called by ``jit(f).lower``."""
    caller = frame.f_back if frame.f_code.co_name == "jit_trace" else None
    while caller is not None and in_module(caller.f_code, "jax._src.traceback_util"):
        caller = caller.f_back
    return caller is not None and caller.f_code.co_name == "jit_lower"


def tracing(code: CodeType) -> Tracing | None:
    """Return what frames of `code` trace; None for most code.

    "eager" is the program that JAX compiles for all equal eager calls of a primitive. If a JAX
    renames these functions, nothing is known about what surrounds a bind, and no callback is
    reported as hoisted.
    """
    for function, kind in _TRACES_BY_NAME.get(code.co_name, ()):
        if function.is_run_by(code):
            return Tracing(kind, function.variable)
    return None


def is_dispatch(code: CodeType) -> bool:
    """Return whether `code` is JAX's dispatch of a jitted function that is being compiled.

    If a JAX renames it, the code that calls a compiled program counts as a caller of its binds.
    """
    found = tracing(code)
    return found is not None and found.kind == "dispatch"


def differentiates(code: CodeType) -> bool:
    """Return whether `code` is JAX's code that takes a derivative.

    If a JAX moves it, a bind that a differentiation rule replaces is reported as dropped.
    """
    return in_module(code, "jax._src.interpreters.ad")


_CALLS_RULES = {
    function.name: function
    for function in (
        JaxFunction("jax._src.custom_derivatives", "_flatten_jvp"),
        JaxFunction("jax._src.custom_derivatives", "_flatten_fwd"),
        JaxFunction("jax._src.custom_derivatives", "_flatten_bwd"),
        JaxFunction("jax._src.hijax", "rule"),  # jax_custom_jvp3, _vjp3; since JAX 0.12
    )
}


def calls_a_rule(code: CodeType) -> bool:
    """Return whether `code` is JAX's code that calls a differentiation rule.

    If a JAX renames it, a bind in a rule has a separate row for each place that differentiates.
    """
    function = _CALLS_RULES.get(code.co_name)
    return function is not None and function.is_run_by(code)


def handles_whole_batch(code: CodeType) -> bool:
    """Return whether `code` is JAX's code around a `custom_vmap` rule; False if it has moved."""
    return in_module(code, "jax._src.custom_batching")
