"""Intercept binds while JAX traces, and emit what watches their values.

Every bind goes through `Primitive.bind`. The public functions of loops and branches bind them once
each; JAX's rules bind them again.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FrameType
from typing import Any

import jax
import numpy as np

from ._calls import Primitive, mlir, shaped_array, traces
from ._subjects import Changes, code_of, module

Bind = Callable[..., Any]
Around = Callable[[Bind, Primitive, tuple[Any, ...], dict[str, Any]], Any]

_ad_file = getattr(module("interpreters.ad"), "__file__", "")
_core, _mlir = module("core"), module("lib.mlir")
_hlo: Any = getattr(module("lib.mlir.dialects"), "hlo", None)
_traceback_file = getattr(module("traceback_util"), "__file__", "")
_mlir_file = getattr(module("interpreters.mlir"), "__file__", "")
_partial_eval_file = getattr(module("interpreters.partial_eval"), "__file__", "")
_BELOW = (os.path.dirname(jax.__file__), os.path.dirname(os.path.dirname(__file__)))
_SPARSE = "jax.experimental.sparse.transform"  # imported by its users
_CALLS_USERS = {"custom_jvp_call", "custom_vjp_call", "shard_map"}
_LOOPS = (
    ("loops", "scan"), ("loops", "while_loop"), ("conditionals", "cond"),
    ("conditionals", "_switch_internal"),
)  # fmt: skip
_intercepted: set[CodeType] = set()


def intercept_binds(around: Around, changes: Changes) -> None:
    """Call ``around(bind, primitive, args, params)`` in place of each bind, in all threads."""
    original = _core.Primitive.bind

    @functools.wraps(original)
    def intercepted(primitive: Primitive, *args: Any, **params: Any) -> Any:
        return around(original, primitive, args, params)

    _intercepted.add(getattr(intercepted, "__code__"))  # noqa: B009  # of a function
    changes.set(_core.Primitive, "bind", intercepted)


def runs_rules(frame: FrameType) -> bool:
    """Return whether `frame` is an intercepted bind that does not call the user's functions."""
    if frame.f_code not in _intercepted:
        return False
    return frame.f_locals["primitive"].name not in _CALLS_USERS


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
    for place, name in _FOR_OTHERS:
        if (owner := sys.modules.get(place)) is not None:
            changes.set(owner, name, wrap(getattr(owner, name)))


def knows_loops(frame: FrameType | None) -> bool:
    """Return whether JAX traces `frame` inside of the loops around it.

    A rule or the lowering traces some jaxprs on their own, such as that of the backward pass of a
    loop, which has the backward rule of a `custom_vjp` in it.
    """
    is_jaxpr = is_below = False  # a jaxpr was begun; and by what is around, in JAX itself
    while frame is not None and frame.f_code not in _codes_of_loops():
        code = frame.f_code
        if is_jaxpr and (runs_rules(frame) or code.co_filename == _mlir_file):
            return False
        if is_below and is_transposing(code):
            return False
        if code.co_filename in (_partial_eval_file, _ad_file) and "jaxpr" in code.co_name:
            is_jaxpr = is_below = True
        elif code in _intercepted or traces_jit(code) or not code.co_filename.startswith(_BELOW):
            is_below = False
        frame = frame.f_back
    return True


def begins_loop(frame: FrameType) -> bool:
    """Return whether a bind of `jax.lax.scan`, `while_loop`, `cond` or `switch` is in `frame`.

    Rules bind loops that have begun before: that of the lowering makes a ``while`` of a scan.
    """
    if frame.f_code not in _codes_of_loops():
        return False
    caller = frame.f_back
    while caller is not None and caller.f_code.co_filename == _traceback_file:
        caller = caller.f_back
    code = getattr(caller, "f_code", frame.f_code)
    return code.co_filename not in _files_of_rules() or not code.co_name.startswith("_")


@functools.cache
def _files_of_rules() -> set[str]:
    loops = {code.co_filename for code in _codes_of_loops()}
    return {*loops, os.path.join(os.path.dirname(__file__), "_exact.py")}


@functools.cache
def _codes_of_loops() -> set[CodeType]:
    return {code_of(f"lax.control_flow.{place}", name) for place, name in _LOOPS}


def is_rule_or_lowering(code: CodeType) -> bool:
    """Return whether `code` differentiates, transposes or lowers operations of JAX."""
    return code.co_filename in (_mlir_file, _ad_file)


def is_transposing(code: CodeType) -> bool:
    """Return whether `code` runs the operations of a backward pass."""
    return code.co_name.startswith("backward_pass") and code.co_filename == _ad_file


def is_linearizing(frame: FrameType | None) -> bool:
    """Return whether `frame` is called by `jax.linearize`, and not for a backward pass."""
    linearize, vjp = code_of("api", "linearize"), code_of("api", "vjp")
    while frame is not None and frame.f_code is not linearize:
        if frame.f_code is vjp:
            return False
        frame = frame.f_back
    return frame is not None


def evaluates_effects(frame: FrameType) -> bool:
    """Return whether `frame` evaluates a jaxpr with effects."""
    is_evaluating = frame.f_code is code_of("core", "eval_jaxpr")
    return is_evaluating and bool(frame.f_locals["jaxpr"].effects)


def traces_jit(code: CodeType) -> bool:
    """Return whether `code` traces a jitted function, whose jaxpr JAX keeps and may use again."""
    return code is code_of("pjit", "_trace_for_jit")


def is_sparsifying(code: CodeType) -> bool:
    """Return whether `code` traces for the interpreter of sparse matrices."""
    return code.co_filename == getattr(sys.modules.get(_SPARSE), "__file__", "")


def has_rules() -> bool:
    """Return whether the operations of this package have rules in the current trace.

    They have none in that of `jax.experimental.jet`, for example.
    """
    return not any(type(trace).__module__.startswith("jax.experimental.") for trace in traces())


def scan_operands(
    args: tuple[Any, ...], params: Mapping[str, Any]
) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the constants, the carry and the arrays that an equation of `scan` takes."""
    if "ft_in" in params:  # since 0.11
        consts, carry, xs = params["ft_in"].update(args).unpack()
        return [*consts], [*carry], [*xs]
    first, last = params["num_consts"], params["num_consts"] + params["num_carry"]
    return [*args[:first]], [*args[first:last]], [*args[last:]]


def current_block() -> Any:
    """Return the block of the program that operations are being added to."""
    return _mlir.ir.InsertionPoint.current.block


def flat(value: Any, aval: Any) -> tuple[Any, Any]:
    """Return an IR value as a vector, and its aval."""
    if aval.ndim == 1:
        return value, aval
    tensor = _mlir.ir.RankedTensorType
    kind = tensor.get([aval.size], tensor(value.type).element_type)
    return _hlo.reshape(kind, value), shaped_array((aval.size,), aval.dtype)


class Branch:
    """Code in the current block that runs if one of several signs says so.

    A sign is a boolean, or a vector of float32 values, which says so if its sum is not finite. It
    is computed last in the block when it is given. One sum has all vectors, because XLA compiles
    each on its own.
    """

    def __init__(self, sign: Any) -> None:
        self._flag: Any = None
        self._vectors: list[Any] = []
        self._derived: list[Any] = []  # values that the next sign replaces
        self._op = _hlo.IfOp([], self._predicate(sign))
        self._code, nothing = (region.blocks.append() for region in self._op.regions)
        self._end = _end_of(self._code)
        _end_of(nothing)

    def also_if(self, sign: Any) -> None:
        """Run for this sign, too."""
        replaced = self._derived
        predicate = self._predicate(sign)
        self._op.operation.move_after(predicate.owner)
        self._op.operation.operands[0] = predicate
        for value in reversed(replaced):
            value.owner.erase()

    def _predicate(self, sign: Any) -> Any:
        if _mlir.ir.RankedTensorType(sign.type).rank:
            self._vectors.append(sign)
        else:
            self._flag = sign if self._flag is None else _hlo.or_(self._flag, sign)
        self._derived = _not_finite(self._vectors) if self._vectors else []
        if self._derived and self._flag is not None:
            self._derived.append(_hlo.or_(self._flag, self._derived[-1]))
        return self._derived[-1] if self._derived else self._flag

    def add(self, emit: Callable[[], Any]) -> Any:
        """Add the operations that `emit` emits to the code; return what it returns."""
        self._end.operation.erase()
        with _mlir.ir.InsertionPoint(self._code):
            emitted = emit()
        self._end = _end_of(self._code)
        return emitted


def _not_finite(vectors: Sequence[Any]) -> list[Any]:
    """Return whether the sum of all values is not finite, after what that is computed from."""
    joined = _hlo.ConcatenateOp(vectors, mlir.i64_attr(0)).results[0]
    kept = _hlo.OptimizationBarrierOp([joined]).results[0]  # XLA would sum each vector on its own
    zero = mlir.ir_constant(np.float32(0))
    of = zero.type
    total = _hlo.ReduceOp([of], [kept], [zero], mlir.dense_int_array([0]))
    with _mlir.ir.InsertionPoint(total.regions[0].blocks.append(of, of)):
        _hlo.return_([_hlo.add(*total.regions[0].blocks[0].arguments)])
    finite = _hlo.is_finite(total.results[0])
    return [joined, kept, zero, total.results[0], finite, _hlo.not_(finite)]


def _end_of(block: Any) -> Any:
    with _mlir.ir.InsertionPoint(block):
        return _hlo.return_([])
