"""Functions of C: from Cython modules, ctypes, cffi and `scipy.LowLevelCallable`."""

from __future__ import annotations

import ctypes
import importlib
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import extending, types
from numba.core import cgutils
from numba.core.imputils import lower_constant
from numba.core.typing import cffi_utils, ctypes_utils
from numba.np.numpy_support import as_dtype

from ...stack.call import given_name, text_of
from ._native import intrinsic

_SIGNATURE = re.compile(r"\s*(.*?)\s*\((.*)\)\s*")
_NEEDS_GIL = 4  # FUNCFLAG_PYTHONAPI of ctypes
_KINDS = "biufc"  # a number converts to a parameter of the same or a later kind
_LONG = types.int64 if ctypes.sizeof(ctypes.c_long) == 8 else types.int32
_NUMBERS = {
    "double": types.float64, "float": types.float32,
    "double complex": types.complex128, "__pyx_t_double_complex": types.complex128,
    "short": types.int16, "int": types.int32, "long": _LONG, "long long": types.int64,
    "unsigned int": types.uint32, "size_t": types.uint64, "Py_ssize_t": types.int64,
    "int8_t": types.int8, "int16_t": types.int16, "int32_t": types.int32, "int64_t": types.int64,
    "uint8_t": types.uint8, "uint16_t": types.uint16, "uint32_t": types.uint32,
    "uint64_t": types.uint64,
}  # fmt: skip


class Form(NamedTuple):
    """One signature of a C function, and its address.

    Attributes:
        address: where its code is.
        parameters: the type of each parameter: a number; a pointer to numbers; or void pointer,
            for a constant.
        returned: the type of what it returns; none: it writes its results through pointers.
        constant: the address that it gets for a void pointer.
    """

    address: int
    parameters: tuple[Any, ...]
    returned: Any
    constant: int = 0

    def inputs(self) -> list[Any]:
        """Return the type of each argument, which is a number."""
        return [one for one in self.parameters if isinstance(one, (types.Number, types.Boolean))]

    def outputs(self) -> list[Any]:
        """Return the type of each result."""
        if self.returned != types.none:
            return [self.returned]
        return [one.dtype for one in self.parameters if isinstance(one, types.CPointer)]


class CFunction:
    """A C function that takes and returns numbers, called for each element of its arguments.

    Args:
        name: its name.
        forms: its signatures, all with the same number of arguments.
        owner: keeps its code in memory.
    """

    def __init__(self, name: str, forms: Sequence[Form], owner: Any) -> None:
        self.__name__ = self.__qualname__ = name
        self._forms = forms
        self._owner = owner
        names = [f"x{n}" for n in range(len(forms[0].inputs()))]
        kind = inspect.Parameter.POSITIONAL_ONLY
        self.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in names])
        signatures = _Signatures(forms)
        places = tuple((form.address, form.constant) for form in forms)

        def function(*arguments: Any) -> Any:
            return _call(signatures, places, arguments)

        function.__name__ = name
        self.dispatcher = numba.njit(function)

    def __call__(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)

    def __repr__(self) -> str:
        return f"<C function {self.__name__}>"

    def results(self, dtypes: Sequence[np.dtype]) -> list[np.dtype]:
        """Return the dtype of each result for arguments of these dtypes.

        Raises:
            TypeError: if no signature takes them.
        """
        number = _choose(self._forms, dtypes)
        if number is None:
            given = ", ".join(dtype.name for dtype in dtypes)
            forms = dict.fromkeys(f"({', '.join(map(str, one.inputs()))})" for one in self._forms)
            raise TypeError(
                f"{self.__name__} does not take ({given}). Convert the arguments to one of: "
                f"{', '.join(forms)}"
            )
        return [as_dtype(kind) for kind in self._forms[number].outputs()]


def _choose(forms: Sequence[Form], dtypes: Sequence[np.dtype]) -> int | None:
    """Return the number of the form for arguments of these dtypes: the one that converts least.

    A conversion never loses information.
    """
    fitting = []
    for number, form in enumerate(forms):
        kinds = [as_dtype(kind) for kind in form.inputs()]
        pairs = list(zip(dtypes, kinds, strict=True))
        if all(np.can_cast(dtype, kind, "safe") for dtype, kind in pairs):
            steps = sum(_KINDS.index(b.kind) - _KINDS.index(a.kind) for a, b in pairs)
            fitting.append((steps, sum(kind.itemsize for kind in kinds), number))
    return min(fitting)[2] if fitting else None


def c_function(function: Any) -> CFunction | None:
    """Return a C function, from any of the objects that represent one; None for others.

    Raises:
        TypeError: if its signature is unknown, or has something else than numbers.
    """
    name = function.rpartition(".")[2] if isinstance(function, str) else given_name(function)
    for find in (_of_name, _of_cython, _of_low_level_callable, _of_pointer):
        forms = list(find(function))
        if forms:
            return CFunction(name if name.isidentifier() else "c_function", forms, function)
    return None


def _of_cython(function: Any) -> Iterator[Form]:
    """Yield the signatures of a ``cpdef`` function, which its module exports as capsules."""
    if not type(function).__name__.endswith(("cython_function_or_method", "fused_cython_function")):
        return
    yield from _exported(sys.modules.get(function.__module__), function.__name__)


def _of_name(name: Any) -> Iterator[Form]:
    """Yield the signatures of a function of a Cython module, given as ``"module.function"``."""
    if not isinstance(name, str):
        return
    module, _, own = name.rpartition(".")
    forms = list(_exported(importlib.import_module(module), own)) if module else []
    if not forms:
        raise TypeError(
            f"there is no C function {name!r}. Write the name of a Cython module and of a function "
            "that it exports: 'scipy.special.cython_special.airy'."
        )
    yield from forms


def _exported(module: Any, name: str) -> list[Form]:
    """Return the signatures of a function that a Cython module exports; without long double."""
    own = re.compile(rf"(?:__pyx_fuse_(?:\d+_)*\d+)?{re.escape(name)}")
    exported = getattr(module, "__pyx_capi__", {})
    forms, problem = [], None
    for found in filter(own.fullmatch, exported):
        try:
            forms.append(_of_capsule(exported[found]))
        except TypeError as error:
            problem = error
    if problem is not None and not forms:
        raise problem
    return forms


def _of_low_level_callable(function: Any) -> Iterator[Form]:
    if type(function).__name__ == "LowLevelCallable" and isinstance(function, tuple):
        yield _of_capsule(tuple.__getitem__(function, 0))


def _of_capsule(capsule: Any) -> Form:
    api = ctypes.pythonapi
    for name, kind in (("Name", ctypes.c_char_p), ("Context", ctypes.c_void_p)):
        getter = getattr(api, f"PyCapsule_Get{name}")
        getter.restype, getter.argtypes = kind, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    signature = api.PyCapsule_GetName(capsule)
    address = api.PyCapsule_GetPointer(capsule, signature)
    returned, parameters = _parsed(signature.decode())
    return Form(address, parameters, returned, api.PyCapsule_GetContext(capsule) or 0)


def _of_pointer(function: Any) -> Iterator[Form]:
    """Yield the signature of a function pointer of ctypes or cffi."""
    for utilities, known in (
        (ctypes_utils, ctypes_utils.is_ctypes_funcptr),
        # Where cffi is not installed, nothing is a function of it, and numba cannot be asked.
        (cffi_utils, cffi_utils.is_cffi_func if cffi_utils.SUPPORTED else lambda _: False),
    ):
        if known(function):
            if getattr(function, "_flags_", 0) & _NEEDS_GIL:
                raise TypeError(
                    f"{text_of(function)} needs the GIL, which compiled code does not hold. If it "
                    "does "
                    "not use Python, load its library with ctypes.CDLL instead of ctypes.PyDLL."
                )
            kind: Any = utilities.make_function_type(function).sig
            for one in (*kind.args, kind.return_type):
                if not isinstance(one, (types.Number, types.Boolean)) and one != types.voidptr:
                    raise TypeError(
                        f"{text_of(function)} takes or returns {one}, which is not a number. Wrap "
                        "it in a "
                        "function of numba."
                    )
            yield Form(int(utilities.get_pointer(function)), tuple(kind.args), kind.return_type)


def _parsed(signature: str) -> tuple[Any, tuple[Any, ...]]:
    """Return the types of what a function returns and takes: ``double (double, int)``."""
    match = _SIGNATURE.fullmatch(signature)
    if match is None:
        raise TypeError(f"cannot read the signature {signature!r} of a C function.")
    writes = match[1] == "void"
    parameters = []
    for text in filter(None, map(str.strip, match[2].split(","))):
        kind = " ".join(word for word in text.replace("*", " * ").split() if word != "const")
        if kind.endswith(("__pyx_skip_dispatch", "__pyx_optional_args")) or kind == "void *":
            parameters.append(types.voidptr)
        elif kind in _NUMBERS:
            parameters.append(_NUMBERS[kind])
        elif writes and kind.endswith(" *") and kind[:-2] in _NUMBERS:
            parameters.append(types.CPointer(_NUMBERS[kind[:-2]]))
        else:
            raise TypeError(
                f"the C function {signature!r} takes {text!r}, which is not a number. Wrap it in a "
                "function of numba."
            )
    if not writes and match[1] not in _NUMBERS:
        raise TypeError(f"the C function {signature!r} does not return a number.")
    return types.none if writes else _NUMBERS[match[1]], tuple(parameters)


class _Signatures:
    """The signatures of a C function, as a value of compiled code.

    numba never forgets a type or an intrinsic that it has compiled, so that they have the
    signatures, which many functions share, and not the function or its address.
    """

    def __init__(self, forms: Sequence[Form]) -> None:
        self.type = _SignaturesType(tuple(form._replace(address=0, constant=0) for form in forms))


class _SignaturesType(types.Opaque):
    def __init__(self, forms: tuple[Form, ...]) -> None:
        self.forms = forms
        super().__init__(f"signatures of C: {forms}")


extending.register_model(_SignaturesType)(extending.models.OpaqueModel)
extending.typeof_impl.register(_Signatures)(lambda signatures, context: signatures.type)
lower_constant(_SignaturesType)(lambda context, *_: context.get_dummy_value())


@intrinsic
def _call(typing: Any, signatures: Any, places: Any, arguments: Any) -> Any:
    """Call the C function at one of the places, each an address and a constant, with numbers."""
    dtypes = [as_dtype(types.unliteral(kind)) for kind in arguments]
    number = _choose(signatures.forms, dtypes)
    form = signatures.forms[number]
    outputs = form.outputs()
    returned = outputs[0] if len(outputs) == 1 else types.Tuple(outputs)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = iter(cgutils.unpack_tuple(builder, args[2], len(arguments)))
        given = iter(arguments)
        passed, written = [], []
        for kind in form.parameters:
            if kind == types.voidptr:
                passed.append(builder.extract_value(args[1], [number, 1]))
            elif isinstance(kind, types.CPointer):
                written.append(cgutils.alloca_once(builder, context.get_data_type(kind.dtype)))
                passed.append(written[-1])
            else:
                value = context.cast(builder, next(values), next(given), kind)
                passed += _as_passed(context, builder, value, kind)
        result = ir.VoidType()
        if form.returned != types.none:
            result = context.get_value_type(form.returned)
        kind = ir.FunctionType(result, [value.type for value in passed]).as_pointer()
        address = builder.extract_value(args[1], [number, 0])
        found = builder.call(builder.inttoptr(address, kind), passed)
        if form.returned != types.none:
            return found
        results = [builder.load(place) for place in written]
        return results[0] if len(results) == 1 else context.make_tuple(builder, returned, results)

    return returned(signatures, places, arguments), generate


def _as_passed(context: Any, builder: Any, value: Any, kind: Any) -> list[Any]:
    """Return a number as C passes it: a complex number as its two parts."""
    if isinstance(kind, types.Complex):
        number = context.make_complex(builder, kind, value=value)
        return [number.real, number.imag]
    return [value]
