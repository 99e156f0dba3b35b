"""Intercept the binds that JAX makes while it traces, and the functions that open loops.

Checked against JAX 0.10.2 and 0.12.0: every bind goes through `Primitive.bind`, and the
public `scan`, `while_loop`, `cond` and `switch` are wrappers around a function in their closure.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from types import CellType, CodeType, FrameType
from typing import Any

import jax

from ._private import Changes, JaxFunction, in_module, optional_module
from ._required import Primitive
from ._tracing import current_trace

Bind = Callable[..., Any]
Around = Callable[[Bind, Primitive, tuple[Any, ...], dict[str, Any]], Any]

_core: Any = optional_module("jax._src.core")
_TRACES_JIT = JaxFunction("jax._src.pjit", "_trace_for_jit")
_CALLS_USERS = {"custom_jvp_call", "custom_vjp_call", "shard_map"}
_intercepted: set[CodeType] = set()


def intercept_binds(around: Around, changes: Changes) -> None:
    """Call ``around(bind, primitive, args, params)`` in place of each bind, in all threads."""
    original = _core.Primitive.bind

    @functools.wraps(original)
    def intercepted(primitive: Primitive, *args: Any, **params: Any) -> Any:
        return around(original, primitive, args, params)

    code: CodeType = getattr(intercepted, "__code__")  # noqa: B009  # of a function
    _intercepted.add(code)

    def replace() -> None:
        _core.Primitive.bind = intercepted

    def restore() -> None:
        if _core.Primitive.bind is intercepted:
            _core.Primitive.bind = original

    changes.make(replace, restore)


def runs_rules(frame: FrameType) -> bool:
    """Return whether `frame` is an intercepted bind that does not call the user's functions."""
    if frame.f_code not in _intercepted:
        return False
    return frame.f_locals["primitive"].name not in _CALLS_USERS


def intercept_loops(wrappers: Mapping[str, Callable[[Any], Any]], changes: Changes) -> None:
    """Replace the functions inside `jax.lax.scan`, `while_loop`, `cond` and `switch`.

    The public functions stay the same objects, so that every ``from jax.lax import scan`` is
    covered. Without the cells, loops and branches are traced as usual.

    Args:
        wrappers: for each name, takes JAX's function and returns the one in its place.
        changes: receives the changes.
    """
    for name, wrap in wrappers.items():
        cell = _cell(getattr(jax.lax, name))
        if cell is None:
            continue
        original = cell.cell_contents
        changes.make(
            functools.partial(setattr, cell, "cell_contents", wrap(original)),
            functools.partial(setattr, cell, "cell_contents", original),
        )


# What is traced there runs in no program of this process, in a kernel, or for two numbers.
_FOR_OTHERS = (
    ("jax.export", "export"),
    ("jax._src.export._export", "export"),
    ("jax._src.pallas.pallas_call", "_trace_kernel_to_jaxpr"),
    ("jax._src.lax.lax", "_reduction_jaxpr"),
    ("jax._src.lax.lax", "_variadic_reduction_jaxpr"),
)


def intercept_other_programs(wrap: Callable[[Any], Any], changes: Changes) -> None:
    """Replace JAX's functions that trace code for an export, a Pallas kernel or a reduction.

    XLA reduces and scatters with programs of two numbers, which have no effects.

    They are not replaced where they were imported by name before.
    """
    for module_name, name in _FOR_OTHERS:
        module = sys.modules.get(module_name)
        original = getattr(module, name, None)
        if original is not None:
            changes.make(
                functools.partial(setattr, module, name, wrap(original)),
                functools.partial(setattr, module, name, original),
            )


def _cell(function: Any) -> CellType | None:
    """Return the cell with the function that JAX's wrapper `function` calls."""
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    return function.__closure__[names.index("fun")] if "fun" in names else None


def is_rule_or_lowering(code: CodeType) -> bool:
    """Return whether `code` differentiates, transposes or lowers operations of JAX."""
    return in_module(code, "jax._src.interpreters.mlir") or in_module(
        code, "jax._src.interpreters.ad"
    )


def is_transposing(code: CodeType) -> bool:
    """Return whether `code` runs the operations of a backward pass."""
    return code.co_name.startswith("backward_pass") and in_module(code, "jax._src.interpreters.ad")


def scan_operands(
    args: tuple[Any, ...], params: Mapping[str, Any]
) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the constants, the carry and the arrays that an equation of `scan` takes."""
    if "ft_in" in params:  # since 0.12
        consts, carry, xs = params["ft_in"].update(args).unpack()
        return [*consts], [*carry], [*xs]
    first, last = params["num_consts"], params["num_consts"] + params["num_carry"]
    return [*args[:first]], [*args[first:last]], [*args[last:]]


def is_linearizing(frame: FrameType | None) -> bool:
    """Return whether `frame` is called by `jax.linearize`, and not for a backward pass."""
    while frame is not None:
        name = frame.f_code.co_name
        if name in ("linearize", "vjp", "_vjp") and in_module(frame.f_code, "jax._src.api"):
            return name == "linearize"
        frame = frame.f_back
    return False


def evaluates_effects(frame: FrameType) -> bool:
    """Return whether `frame` evaluates a jaxpr with effects."""
    if frame.f_code is not _core.eval_jaxpr.__code__:
        return False
    return bool(frame.f_locals["jaxpr"].effects)


def traces_jit(code: CodeType) -> bool:
    """Return whether `code` traces a jitted function, whose jaxpr JAX keeps and may use again."""
    return _TRACES_JIT.is_run_by(code)


def is_sparsifying(code: CodeType) -> bool:
    """Return whether `code` traces for the interpreter of sparse matrices."""
    return in_module(code, "jax.experimental.sparse.transform")


def has_rules() -> bool:
    """Return whether the operations of this package have rules in the current trace.

    They have none in that of `jax.experimental.jet`, for example.
    """
    now = current_trace()
    while now is not None and not type(now).__module__.startswith("jax.experimental."):
        now = getattr(now, "parent_trace", None)
    return now is None


def jaxpr_trace() -> Any:
    """Return the innermost trace that builds a jaxpr; None if operations run immediately."""
    now = current_trace()
    while now is not None and type(now).__name__ != "DynamicJaxprTrace":
        now = getattr(now, "parent_trace", None)
    return now
