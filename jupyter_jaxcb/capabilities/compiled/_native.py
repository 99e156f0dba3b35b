"""What compiled code is made of: pointers, calls by address, counters and the cycle counter."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, types
from numba.core import cgutils

WORD = ir.IntType(64)
intrinsic: Any = extending.intrinsic  # its functions are called without the typing context
# On ARM the cycle counter is not accessible to programs, but this timer is.
_TIMER = "mrs $0, cntvct_el0"


def pointer_to(dtype: Any) -> Any:
    """Return an intrinsic from an address to a pointer to numbers of `dtype`."""
    kind = types.CPointer(dtype)

    @intrinsic
    def pointer(typing: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(kind))

        return kind(types.int64), generate

    return pointer


words = pointer_to(types.int64)


def _calling(count: int) -> Any:
    """Return the code generator of a call by address with `count` words."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(WORD, [WORD] * count)
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])

    return generate


@intrinsic
def call_2(typing: Any, function: Any, one: Any, two: Any) -> Any:
    """Call the function at an address with two words, and return its word."""
    return types.int64(*[types.int64] * 3), _calling(2)


@intrinsic
def call_4(typing: Any, function: Any, one: Any, two: Any, three: Any, four: Any) -> Any:
    """Call the function at an address with four words, and return its word."""
    return types.int64(*[types.int64] * 5), _calling(4)


@intrinsic
def call_5(typing: Any, function: Any, one: Any, two: Any, three: Any, four: Any, five: Any) -> Any:
    """Call the function at an address with five words, and return its word."""
    return types.int64(*[types.int64] * 6), _calling(5)


@intrinsic
def add(typing: Any, address: Any, number: Any) -> Any:
    """Add to the word at an address, in one step for all threads; return its value before."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], WORD.as_pointer())
        return builder.atomic_rmw("add", pointer, args[1], "monotonic")

    return types.int64(types.int64, types.int64), generate


@intrinsic
def publish(typing: Any, address: Any, number: Any) -> Any:
    """Write a word after everything that was written before it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], WORD.as_pointer())
        builder.store_atomic(args[1], pointer, "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def cycles(typing: Any) -> Any:
    """Read the counter that advances at a constant rate, on all cores together."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(WORD, [])
        if platform.machine() in ("aarch64", "arm64"):
            return builder.call(ir.InlineAsm(kind, _TIMER, "=r", side_effect=True), [])
        name = "llvm.readcyclecounter"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [])

    return types.int64(), generate


@intrinsic
def read_only(typing: Any, array: Any) -> Any:
    """Return an array as one that compiled code cannot write to."""
    kind = array.copy(readonly=True)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        context.nrt.incref(builder, kind, args[0])
        return args[0]

    return kind(array), generate


def forever(*objects: Any) -> None:
    """Keep objects until the process ends: a program may run longer than Python."""
    for one in objects:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))


def address_for_machine_code(function: Callable[..., int]) -> int:
    """Return the address at which machine code calls a Python function of words, for ever."""
    words = [ctypes.c_int64] * function.__code__.co_argcount  # type: ignore[attr-defined]
    called = ctypes.CFUNCTYPE(ctypes.c_int64, *words)(function)
    forever(called)
    return ctypes.cast(called, ctypes.c_void_p).value or 0


def address_of(array: np.ndarray) -> int:
    """Return the address of an array's first number."""
    return int(array.ctypes.data)
