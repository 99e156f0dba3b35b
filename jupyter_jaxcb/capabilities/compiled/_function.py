"""A host function as numba compiles it, once for all programs."""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

import numba
from numba import types
from numba.core.dispatcher import Dispatcher
from numba.np.numpy_support import as_dtype

from ...recording import on_one_line
from ...stack.call import name_of, running_cell
from ...stack.results import CONVERTS, MEANING, ResultError
from ._interface import Array, Default, Interface, type_of
from ._kernel import Kernel, compile_kernel

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_PIPELINE = re.compile(r"Failed in \w+ mode pipeline \(step: .*?\)\n")
_REST = re.compile(r"\n\n|\.? Raised from None|\nDuring: |\n *There (?:is|are) \d+ candidate")
# What to do instead, by a part of numba's message.
_ADVICE = {
    "call_info": (
        "Machine code cannot ask which call it is in: drop call_info(), or do not compile it"
    ),
    "OverloadSelector": (
        "A global variable has a type that compiled code cannot use as a constant: pass it as an "
        "argument, or convert a JAX array with np.asarray outside of the function"
    ),
    "compilation disabled": "Drop the signatures of numba.njit, or convert the arguments",
    "jupyter_jaxcb": "It calls a callback: call a function that numba.njit compiled instead",
    "<class 'function'>": "Decorate the function that it calls with numba.njit",
}
# Parts of numba's messages for functions that write into a read-only array.
_READ_ONLY = ("setitem(readonly", "(readonly array", "object has no attribute 'args'")
_ATTRIBUTE = "_compiled_by_jaxcb"  # of functions
_lock = threading.RLock()


class CompiledFunction:
    """A host function, compiled for each combination of ranks and dtypes that programs use.

    Args:
        function: a Python function, or one that `numba.njit` has compiled.
    """

    def __init__(self, function: Any) -> None:
        self.function = function
        self.run = running_cell()
        self._name = name_of(function)
        self._dispatcher: Any = _dispatcher_of(function)
        self._kernels: dict[Interface, Kernel] = {}
        self.direct: dict[Any, Any] = {}  # what eager calls need, see `_direct`

    def __reduce__(self) -> Any:
        """Be None where the function is pickled to: machine code stays in its process."""
        return type(None), ()

    def kernel(self, interface: Interface) -> Kernel:
        """Return the kernel for `interface`, compiled when it is first needed.

        Raises:
            TypeError: if numba cannot compile the function for these arguments.
            ResultError: if what it returns does not match the declared result.
        """
        with _lock:
            if interface not in self._kernels:
                self._kernels[interface] = self._compile(interface)
            return self._kernels[interface]

    def _compile(self, interface: Interface) -> Kernel:
        arguments = list(self._arguments(interface))
        kinds = tuple(type_of(argument, interface) for argument in arguments)
        try:
            self._dispatcher.compile(kinds)
            compiled = self._dispatcher.overloads[kinds]
        except Exception as error:  # numba fails in many ways
            if not _is_of_numba(error):
                raise
            raise self._not_compiled(kinds, error) from None
        self._check_results(compiled.signature.return_type, interface)
        return compile_kernel(compiled, arguments, interface)

    def _arguments(self, interface: Interface) -> Iterator[Any]:
        """Yield the argument for each parameter of the function."""
        signature = inspect.signature(self._dispatcher.py_func)
        given = signature.bind(*interface.args, **dict(interface.kwargs)).arguments
        for name, parameter in signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                raise TypeError(
                    f"numba cannot compile {self._name}: it has no **{name}. Name the parameters."
                )
            if parameter.kind is parameter.VAR_POSITIONAL:
                yield given.get(name, ())
            elif name in given:
                yield given[name]
            else:
                yield Default(parameter.default)

    def _check_results(self, returned: Any, interface: Interface) -> None:
        """Raise ResultError if what the function returns does not match the declared result."""
        results = () if interface.writes else interface.results
        wanted = dict(zip(interface.paths, results, strict=True))
        if not wanted and returned != types.none:
            raise ResultError(
                f"{self._name} returns {returned} when compiled, expected None. Return nothing, or "
                "declare the result."
            )
        self._check_part((), returned, wanted)

    def _check_part(self, path: Sequence[int], kind: Any, wanted: Mapping[Any, Array]) -> None:
        """As `_check_results`, for the part of the returned value at `path`."""
        kind = types.unliteral(kind)
        if path in wanted:
            self._check_array(path, kind, wanted[path])
            return
        parts = {other[len(path)] for other in wanted if other[: len(path)] == path}
        if wanted and (not isinstance(kind, types.BaseTuple) or len(kind) != max(parts) + 1):
            raise ResultError(
                f"{self._name}{_where(path)} returns {kind} when compiled, expected a tuple of "
                f"{max(parts) + 1}. Return that, or declare what it returns."
            )
        for index in sorted(parts):
            self._check_part((*path, index), kind[index], wanted)

    def _check_array(self, path: Sequence[int], kind: Any, result: Array) -> None:
        rank = kind.ndim if isinstance(kind, types.Array) else 0
        number: Any = kind.dtype if isinstance(kind, types.Array) else kind
        meaning = None
        if isinstance(number, (types.Number, types.Boolean)) and rank == result.rank:
            given, declared = as_dtype(number), result.dtype
            kinds = "".join("i" if dtype.kind == "u" else dtype.kind for dtype in (given, declared))
            if given == declared or kinds in CONVERTS:
                return
            meaning = MEANING[kinds[0]]
        numbers = f"{meaning} numbers ({kind})" if meaning else f"{kind}"
        wanted = f"an array of rank {result.rank} of" if result.rank else "a number of"
        raise ResultError(
            f"{self._name}{_where(path)} returns {numbers} when compiled, expected {wanted} "
            f"{result.dtype.name}. Convert it in the function, or declare what it returns."
        )

    def _not_compiled(self, arguments: Sequence[Any], error: Exception) -> TypeError:
        text = _PIPELINE.sub("", _COLOURS.sub("", f"{error}"))
        reason = " ".join(_REST.split(text)[0].split())
        instead = next(
            (advice for mark, advice in _ADVICE.items() if mark in text),
            "Write it with what numba supports, or drop compile='numba'",
        )
        if any(mark in text for mark in _READ_ONLY):
            reason, instead = "it writes into an argument", "Write into a copy, x.copy()"
        location = getattr(error, "loc", None)
        line = getattr(location, "line", None)
        if line is None or "/numba/" in str(getattr(location, "filename", "")):
            code = getattr(self._dispatcher.py_func, "__code__", None)
            line = getattr(code, "co_firstlineno", "?")
        shown = ", ".join(map(str, arguments))
        return TypeError(
            f"numba cannot compile {self._name} for ({shown}): {reason} (line {line}). {instead}."
        )


def _is_of_numba(error: Exception) -> bool:
    """Return whether numba raised it: no code of the user, a signal handler, say; nor no memory."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))
    return module.split(".")[0] in ("numba", "llvmlite") and not isinstance(error, MemoryError)


def _where(path: Sequence[int]) -> str:
    return "".join(f"[{index}]" for index in path)


def check_compilable(function: Any, name: str) -> None:
    """Raise TypeError if numba cannot compile `function`, whatever its arguments are."""
    __tracebackhide__ = True
    if not isinstance(function, Dispatcher | FunctionType):
        raise TypeError(
            f"cannot compile {name}, a {on_one_line(type(function).__name__)}: numba compiles "
            "functions that are written with def or lambda. Write one that does the same; it can "
            "call functions of C."
        )


def _dispatcher_of(function: Any) -> Any:
    if isinstance(function, Dispatcher):
        return function
    # Like Python: an index out of range and a division by zero are errors.
    return numba.njit(_twin(function), boundscheck=True, error_model="python")


def _twin(function: FunctionType) -> FunctionType:
    """Return another function with the same body.

    numba keeps what it has compiled until its dispatcher is gone, and the dispatcher lives as long
    as `function`: it must not keep it alive.
    """
    twin = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__,
        function.__closure__,
    )  # fmt: skip
    for name in ("__kwdefaults__", "__module__", "__qualname__"):
        setattr(twin, name, getattr(function, name))
    return twin


def compiled_function(function: Any) -> CompiledFunction:
    """Return the compiled form of a function; the same one as long as the function lives."""
    with _lock:
        found = vars(function).get(_ATTRIBUTE)
        if found is None or found.function is not function:  # functools.wraps copies attributes
            found = CompiledFunction(function)
            setattr(function, _ATTRIBUTE, found)
        return found


def compile_anew(function: Any) -> bool:
    """Forget the compiled form of a function if another run of a cell compiled it.

    Returns:
        Whether there was one.
    """
    with _lock:
        found, run = vars(function).get(_ATTRIBUTE), running_cell()
        if found is None or run is None or found.run is run:
            return False
        delattr(function, _ATTRIBUTE)
        return True
