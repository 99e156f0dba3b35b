"""The machine code of one function for arguments of certain ranks and dtypes.

It serves every shape: sizes are read from what XLA passes. Under looped vmaps it calls the function
once for each batch element, in row-major order. It is written as LLVM instructions, because numba
takes seconds to compile the same loops from Python.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.np import arrayobj
from numba.np.numpy_support import as_dtype

from . import _handler
from ._failure import kept
from ._interface import Array, Buffer, Constant, Default, Interface
from ._native import WORD, pointer_to

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_numbers = itertools.count()  # of the kernels: their names are unique


@dataclasses.dataclass(frozen=True, eq=False)
class Kernel:
    """The machine code of one function for arguments of certain ranks and dtypes.

    Attributes:
        address: the address of a function of the addresses of a call frame and of a block. It
            returns 0, or the batch element that failed and why, see `_handler.WHY_BITS`.
        call: this function.
        compiled: numba's result of compiling the function, which has objects that the code uses.
    """

    address: int
    call: Callable[[int, int], int]
    compiled: Any


def compile_kernel(compiled: Any, arguments: Sequence[Any], interface: Interface) -> Kernel:
    """Return the kernel of a function.

    It is compiled without numba's decorators, because numba never forgets what they define.

    Args:
        compiled: numba's result of compiling the function for these arguments.
        arguments: the argument for each parameter, see `_interface`.
        interface: what it is compiled for.
    """
    name = f"jaxcb_kernel_{next(_numbers)}"
    target: Any = cpu_target.target_context
    context = target.subtarget(enable_nrt=True)
    with global_compiler_lock:
        library = context.codegen().create_library(name)
        module = library.create_ir_module(name)
        code = ir.Function(module, ir.FunctionType(WORD, [WORD, WORD]), name)
        builder = ir.IRBuilder(code.append_basic_block("entry"))
        kernel = _Kernel(context, builder, library, compiled, interface)
        kernel.emit(arguments, *code.args)
        library.add_ir_module(module)
        library.add_linking_library(compiled.library)
        context.post_lowering(module, library)
        address = library.get_pointer_to_function(name)
        return Kernel(address, _FUNCTION(address), compiled)


def _uses_python(library: Any) -> bool:
    """Return whether compiled code takes the GIL, as numba.objmode does."""
    return any(
        "@numba_gil_ensure(" in str(function)
        for function in library._get_module_for_linking().functions
        # The wrapper that numba adds for calls from C is not called.
        if not (function.is_declaration or function.name.startswith("cfunc."))
    )


class _Arrays:
    """An operand or a result in memory, for all batch elements."""

    def __init__(self, kernel: _Kernel, array: Array, buffer: Any) -> None:
        builder = kernel.builder
        self.array = array
        self.type = array.type
        kind = kernel.context.get_data_type(array.type)
        self.data = builder.inttoptr(kernel.word(buffer, _handler.DATA), kind.as_pointer())
        sizes = builder.inttoptr(kernel.word(buffer, _handler.SIZES), WORD.as_pointer())
        outer = builder.sub(kernel.word(buffer, _handler.RANK), WORD(array.rank))
        self.shape = [
            builder.load(builder.gep(sizes, [builder.add(outer, WORD(axis))]))
            for axis in range(array.rank)
        ]
        self.count = functools.reduce(builder.mul, self.shape, WORD(1))
        self.first: Any = None  # batch element at the start of the innermost loop

    def at(self, builder: Any, inner: Any) -> Any:
        """Return a pointer to the array of one host call."""
        element = builder.add(self.first, inner) if self.array.inner else self.first
        return builder.gep(self.data, [builder.mul(element, self.count)])


class _Kernel:
    """Emits the instructions of one kernel."""

    def __init__(
        self, context: Any, builder: Any, library: Any, compiled: Any, interface: Interface
    ) -> None:
        self.context, self.builder, self._library = context, builder, library
        self._compiled, self._interface = compiled, interface
        self._frame: Any = None
        self._made: Any = None  # counts the calls, where a mask leaves out some; see `_return`
        self._python: Any = None  # how to undo what `_attach` did
        self._returned: Any = None  # what the function returned

    def emit(self, arguments: Sequence[Any], frame: Any, block: Any) -> None:
        """Emit the loops over the batch elements."""
        builder, interface = self.builder, self._interface
        self._frame = frame
        if _uses_python(self._compiled.library):
            self._attach()
        self._operands = self._arrays(interface.operands, self.word(frame, _handler.ARGUMENTS))
        self._results = self._arrays(interface.results, self.word(frame, _handler.RESULTS))
        if interface.masked:
            made = cgutils.alloca_once_value(builder, WORD(0))
            self._made = made, builder.add(block, WORD(8 * _handler.MADE))
        inner = self.word(block, _handler.INNER)
        rounds = builder.sdiv(self.word(block, _handler.CALLS), inner)
        with cgutils.for_range(builder, rounds) as outer:
            self._start(block, outer.index)
            with cgutils.for_range(builder, inner) as loop:
                at = builder.add(builder.mul(outer.index, inner), loop.index)
                if interface.masked:
                    self._call_if_needed(arguments, loop.index, at)
                else:
                    self._call(arguments, loop.index, at)
        self._return(WORD(0))

    def _attach(self) -> None:
        """Give this thread a thread state of Python, without the GIL, until the kernel returns.

        Otherwise a thread of XLA has one only inside numba.objmode, and exceptions end with it.
        """
        python = self.context.get_python_api(self.builder)
        locked = python.gil_ensure()
        self._python = python, locked, python.save_thread()

    def _return(self, status: Any) -> None:
        if self._made is not None:
            made, place = self._made
            place = self.builder.inttoptr(place, WORD.as_pointer())
            self.builder.atomic_rmw("add", place, self.builder.load(made), "monotonic")
        if self._python is not None:
            python, locked, state = self._python
            python.restore_thread(state)
            python.gil_release(locked)
        self.builder.ret(status)

    def word(self, address: Any, place: Any) -> Any:
        """Load the word number `place` from an address."""
        place = WORD(place) if isinstance(place, int) else place
        pointer = self.builder.inttoptr(address, WORD.as_pointer())
        return self.builder.load(self.builder.gep(pointer, [place]))

    def _arrays(self, arrays: Sequence[Array], buffers: Any) -> list[_Arrays]:
        first = self._interface.first
        return [
            _Arrays(self, array, self.word(buffers, n + first)) for n, array in enumerate(arrays)
        ]

    def _start(self, block: Any, outer: Any) -> None:
        """Find where the arrays of the innermost loop start."""
        builder, every = self.builder, [*self._operands, *self._results]
        places = [cgutils.alloca_once_value(builder, WORD(0)) for _ in every]
        rest = cgutils.alloca_once(builder, WORD)
        for place in places:
            builder.store(WORD(0), place)
        builder.store(outer, rest)
        with cgutils.for_range(builder, self.word(block, _handler.OUTER_LEVELS)) as level:
            position = builder.mul(level.index, WORD(len(every) + 1))
            position = builder.add(position, WORD(_handler.LEVELS))
            size = self.word(block, position)
            index = builder.srem(builder.load(rest), size)
            builder.store(builder.sdiv(builder.load(rest), size), rest)
            for n, place in enumerate(places, start=1):
                step = self.word(block, builder.add(position, WORD(n)))
                moved = builder.add(builder.load(place), builder.mul(index, step))
                builder.store(moved, place)
        for array, place in zip(every, places, strict=True):
            array.first = builder.load(place)

    def _call_if_needed(self, arguments: Sequence[Any], inner: Any, at: Any) -> None:
        """Call the function if the mask is true for a batch element; else its results are zero."""
        builder, mask = self.builder, self._operands[-1]
        needed = self.context.unpack_value(builder, mask.type, mask.at(builder, inner))
        with builder.if_else(needed) as (then, otherwise):
            with then:
                made, _ = self._made
                builder.store(builder.add(builder.load(made), WORD(1)), made)
                self._call(arguments, inner, at)
            with otherwise:
                for result in self._results:
                    size = builder.mul(result.count, WORD(result.array.dtype.itemsize))
                    cgutils.memset(builder, result.at(builder, inner), size, 0)

    def _call(self, arguments: Sequence[Any], inner: Any, at: Any) -> None:
        """Call the function for one batch element, and store its results."""
        context, builder, signature = self.context, self.builder, self._compiled.signature
        values = [
            self._argument(argument, kind, inner)
            for argument, kind in zip(arguments, signature.args, strict=True)
        ]
        status, returned = context.call_internal_no_propagate(
            builder, self._compiled.fndesc, signature, values
        )
        with cgutils.if_unlikely(builder, status.is_error):
            self._keep_exception(status)
            self._fail(_handler.RAISED, at)
        if self._interface.writes:
            return
        self._returned = returned
        for result, path in zip(self._results, self._interface.paths, strict=True):
            value, kind = returned, signature.return_type
            for index in path:
                value, kind = builder.extract_value(value, index), kind[index]
            self._store(result, value, types.unliteral(kind), inner, at)
        self._free_returned()

    def _argument(self, argument: Any, kind: Any, inner: Any) -> Any:
        """Return the value of an argument, of type `kind`."""
        context, builder = self.context, self.builder
        if type(argument) is tuple:
            parts = [self._argument(part, kind[n], inner) for n, part in enumerate(argument)]
            return context.make_tuple(builder, kind, parts)
        if isinstance(argument, Constant):
            return context.get_constant_generic(builder, kind, argument.value)
        if argument is None or isinstance(argument, Default):
            return context.get_dummy_value()
        buffer = isinstance(argument, Buffer)
        array = (self._results if buffer else self._operands)[argument.number]
        pointer = array.at(builder, inner)
        if not isinstance(kind, types.Array):
            return context.unpack_value(builder, array.type, pointer)
        return self._array(array, pointer, kind)

    def _array(self, array: _Arrays, pointer: Any, kind: Any) -> Any:
        """Return a value of an array type, over memory that it does not own."""
        builder, size = self.builder, array.array.dtype.itemsize
        strides, step = [], WORD(size)
        for length in reversed(array.shape):
            strides.insert(0, step)
            step = builder.mul(step, length)
        made = arrayobj.make_array(kind)(self.context, builder)
        arrayobj.populate_array(
            made, data=pointer, shape=array.shape, strides=strides, itemsize=WORD(size),
            meminfo=None,
        )  # fmt: skip
        return made._getvalue()

    def _store(self, result: _Arrays, value: Any, kind: Any, inner: Any, at: Any) -> None:
        """Store one result, of type `kind`, after checking that it is as declared."""
        builder, target = self.builder, result.at(self.builder, inner)
        if not isinstance(kind, types.Array):
            converted, lost = self._converted(value, kind, result.type)
            if lost is not None:
                self._fail_if(lost, _handler.NOT_FITTING, at)
            self.context.pack_value(builder, result.type, converted, target)
            return
        array = arrayobj.make_array(kind)(self.context, builder, value=value)
        shape = cgutils.unpack_tuple(builder, array.shape, kind.ndim)
        differs = [
            builder.icmp_signed("!=", own, declared)
            for own, declared in zip(shape, result.shape, strict=True)
        ]
        other = functools.reduce(builder.or_, differs, ir.IntType(1)(0))
        self._fail_if(other, _handler.OTHER_SHAPE, at)
        if kind.dtype == result.type and kind.layout == "C":
            cgutils.raw_memcpy(
                builder, target, array.data, result.count, result.array.dtype.itemsize
            )
            return
        copy = _copying(kind, result.type, self._interface.cast)
        lost = self._call_compiled(copy, [value, builder.ptrtoint(target, WORD)])
        self._fail_if(lost, _handler.NOT_FITTING, at)

    def _converted(self, value: Any, given: Any, declared: Any) -> tuple[Any, Any]:
        """Return a number as its declared type, and whether it does not fit; None: it does."""
        if given == declared:
            return value, None
        # Like XLA, compiled code rounds numbers that are too large to infinity.
        converted = self.context.cast(self.builder, value, given, declared)
        if self._interface.cast or given not in types.integer_domain:
            return converted, None
        fits = self._call_compiled(_fitting(given, declared), [value])
        return converted, self.builder.not_(fits)

    def _call_compiled(self, dispatcher: Any, values: Sequence[Any]) -> Any:
        """Call the only overload of a function of numba, which does not raise."""
        (compiled,) = dispatcher.overloads.values()
        self._library.add_linking_library(compiled.library)
        _, returned = self.context.call_internal_no_propagate(
            self.builder, compiled.fndesc, compiled.signature, values
        )
        return returned

    def _keep_exception(self, status: Any) -> None:
        """Put the exception of the compiled function into `kept`."""
        context, builder = self.context, self.builder
        python = context.get_python_api(builder)
        locked = python.gil_ensure()
        context.call_conv.raise_error(builder, python, status)
        parts = [cgutils.alloca_once(builder, python.pyobj) for _ in range(3)]
        for name in ("PyErr_Fetch", "PyErr_NormalizeException"):
            self._call_python(name, ir.VoidType(), parts)
        kind, value, traceback = map(builder.load, parts)
        with cgutils.if_likely(builder, cgutils.is_not_null(builder, value)):
            with cgutils.if_likely(builder, cgutils.is_not_null(builder, traceback)):
                self._call_python("PyException_SetTraceback", cgutils.int32_t, [value, traceback])
            # In C, so that no Ctrl-C comes between.
            table = builder.inttoptr(WORD(id(kept)), python.pyobj)
            key = python.long_from_longlong(self._frame)
            self._call_python("PyDict_SetItem", cgutils.int32_t, [table, key, value])
            python.decref(key)
        for one in (kind, value, traceback):
            python.decref(one)
        python.gil_release(locked)

    def _call_python(self, name: str, returned: Any, arguments: Sequence[Any]) -> None:
        """Call a function of Python's C API."""
        kind = ir.FunctionType(returned, [argument.type for argument in arguments])
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        self.builder.call(function, arguments)

    def _fail_if(self, condition: Any, why: int, at: Any) -> None:
        """Fail after the call, whose returned value is freed."""
        with cgutils.if_unlikely(self.builder, condition):
            self._free_returned()
            self._fail(why, at)

    def _free_returned(self) -> None:
        self.context.nrt.decref(self.builder, self._compiled.signature.return_type, self._returned)

    def _fail(self, why: int, at: Any) -> None:
        status = self.builder.or_(self.builder.shl(at, WORD(_handler.WHY_BITS)), WORD(why))
        self._return(status)


@functools.cache
def _copying(given: Any, declared: Any, cast: bool) -> Any:
    """Return a compiled ``copy(array, address)``, which returns whether a number does not fit."""
    pointer, dtype = pointer_to(declared), as_dtype(declared).type
    checked = given.dtype in types.integer_domain and not cast
    fits: Any = _fitting(given.dtype, declared) if checked else None

    def convert(array: Any, address: Any) -> Any:
        numbers = pointer(address)
        for place, number in enumerate(array.flat):
            numbers[place] = dtype(number)
        return False

    def convert_fitting(array: Any, address: Any) -> Any:
        numbers, lost = pointer(address), False
        for place, number in enumerate(array.flat):
            lost |= not fits(number)
            numbers[place] = dtype(number)
        return lost

    copy = njit(convert_fitting if checked else convert)
    copy.compile((given, types.int64))
    return copy


@functools.cache
def _fitting(given: Any, declared: Any) -> Any:
    """Return a compiled function of an integer: whether `declared` can hold its value."""
    number = as_dtype(given).type
    if declared in types.integer_domain:
        low = number(max(given.minval, declared.minval))
        high = number(min(given.maxval, declared.maxval))

        def fits(integer: Any) -> Any:
            return low <= integer <= high

    else:
        limit, floating = 2.0 ** (given.bitwidth - given.signed), as_dtype(declared).type

        def fits(integer: Any) -> Any:
            real = np.float64(floating(integer).real)
            # Outside of the range of integers, the conversion back is not defined.
            return real < limit and number(real) == integer

    compiled = njit(fits)
    compiled.compile((given,))
    return compiled
