"""Find what the code of a function refers to, from its bytecode, without running it.

The bytecode of a Python where this was not tried is not read: nothing is found, and nothing wrong.
"""

from __future__ import annotations

import collections
import contextlib
import dis
import functools
import inspect
import itertools
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from ...stack.trace import IS_TRIED, is_user_code

MAX_FUNCTIONS = 60  # read at most for one host function, nearest first
_NOT_READ = {"jax", "jaxlib", "numpy", "scipy", "jupyter_jaxcb", *sys.stdlib_module_names}
MAX_ENTRIES = 100  # read of one dict, list or tuple
_GIVES_ENTRIES = ("get", "values", "items")  # methods of a dict
UNKNOWN: Any = object()
_T = TypeVar("_T")


class Load(NamedTuple):
    """A reference from code to something outside of it.

    Attributes:
        name: the reference as written, ``np.random.rand``.
        value: its current value.
        code: the code that contains it.
        line: its line in the file of that code, from 1.
        whole: False for the prefixes ``np`` and ``np.random`` of ``np.random.rand``.
    """

    name: str
    value: Any
    code: types.CodeType
    line: int
    whole: bool = True


def loads(function: Callable[..., Any]) -> Iterator[Load]:
    """Yield the references of `function` and of the functions it refers to, nearest first.

    These are globals, closure variables, arguments that a partial or a default gives, imports
    inside of a function, their attributes, also by `getattr`, and their entries. Attributes of
    other arguments and computed values are unknown before the function runs. JAX, NumPy, SciPy and
    the standard library are not read.
    """
    waiting: list[Any] = [function]
    known: set[types.CodeType] = set()
    while waiting and len(known) < MAX_FUNCTIONS:
        value = waiting.pop(0)
        python, receiver = python_function(value)
        if python is None or python.__code__ in known:
            continue
        known.add(python.__code__)
        for load in loads_of(python, given(value, python, receiver)):
            yield load
            if load.whole:
                waiting.append(load.value)


def python_layers(function: Any) -> Iterator[tuple[Any, types.FunctionType, Any]]:
    """Yield what calling `function` runs, as `python_function`, and what its decorators wrap.

    Decorators of libraries are left out.
    """
    python, receiver = python_function(function)
    seen: set[types.FunctionType] = set()
    while python is not None and python not in seen:
        seen.add(python)
        wrapped = vars(python).get("__wrapped__")
        inner, bound_to = python_function(wrapped, receiver)
        if inner is None or is_user_code(python.__code__.co_filename):
            yield function, python, receiver
        function, python, receiver = wrapped, inner, bound_to


def own_code(function: Any) -> types.CodeType | None:
    """Return the code of the innermost function that `function` wraps, which decorators share."""
    layers = as_far_as_readable(python_layers(function))
    return layers[-1][1].__code__ if layers else None


def as_far_as_readable(found: Iterable[_T]) -> list[_T]:
    """Return what an iterator finds, up to an object that raises when it is examined."""
    read = []
    with contextlib.suppress(Exception):  # its class, or an attribute
        for one in found:
            read.append(one)
    return read


def python_function(value: Any, receiver: Any = UNKNOWN) -> tuple[types.FunctionType | None, Any]:
    """Return the Python function that calling `value` runs, and the object it is bound to.

    The function is None if it is not read: it is written in C, or belongs to JAX, NumPy, SciPy or
    the standard library.
    """
    if isinstance(value, functools.partial):
        return python_function(value.func)
    if isinstance(value, types.MethodType):
        return python_function(value.__func__, value.__self__)
    if isinstance(value, types.FunctionType):
        owner = str(value.__globals__.get("__name__", "")).partition(".")[0]
        if owner not in _NOT_READ:
            return value, receiver
        return python_function(vars(value).get("__wrapped__"), receiver)  # np.errstate() as one
    if isinstance(value, type | types.ModuleType | types.BuiltinFunctionType):
        return None, receiver
    wrapped = inspect.getattr_static(value, "__wrapped__", None)  # functools.cache and its like
    if isinstance(wrapped, types.FunctionType):
        return python_function(wrapped)
    call = inspect.getattr_static(type(value), "__call__", None)
    return (
        python_function(call, value) if isinstance(call, types.FunctionType) else (None, receiver)
    )


def given(value: Any, function: types.FunctionType, receiver: Any) -> dict[str, Any]:
    """Return the arguments that are known before `value` is called and runs `function`."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    positional: tuple[Any, ...] = ()
    keywords: dict[str, Any] = {}
    while isinstance(value, functools.partial):
        positional, keywords = (*value.args, *positional), {**value.keywords, **keywords}
        value = value.func
    if receiver is not UNKNOWN:
        positional = (receiver, *positional)
    defaults = function.__defaults__ or ()
    return {
        **dict(zip(names[len(names) - len(defaults) :], defaults, strict=True)),
        **(function.__kwdefaults__ or {}),
        **dict(zip(names, positional, strict=False)),
        **keywords,
    }


def loads_of(function: types.FunctionType, known: dict[str, Any]) -> Iterator[Load]:
    """Yield the references of `function` itself, and of the functions defined inside it."""
    code, enclosing = function.__code__, closure_of(function)
    builtins = function.__globals__.get("__builtins__", {})
    named = vars(builtins) if isinstance(builtins, types.ModuleType) else builtins
    names = collections.ChainMap(function.__globals__, named)
    yield from _Reader(code, names, enclosing, known).read()


def closure_of(function: types.FunctionType) -> dict[str, Any]:
    """Return the values of the variables of outer functions."""
    names, cells = function.__code__.co_freevars, function.__closure__ or ()
    return dict(zip(names, map(_contents, cells), strict=True))


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return UNKNOWN


def instructions(code: types.CodeType) -> Iterator[dis.Instruction]:
    """Yield the instructions of `code`; none where their meaning is not known."""
    return dis.get_instructions(code) if IS_TRIED else iter(())


class _Reader:
    """Reads the instructions of one code object, and of those nested in it."""

    def __init__(
        self,
        code: types.CodeType,
        names: Mapping[str, Any],
        enclosing: Mapping[str, Any],
        local: Mapping[str, Any],
    ) -> None:
        self._code = code
        self._names = names
        self._enclosing = dict(enclosing)
        self._local = dict(local)
        self._constant: Any = None  # of the instruction before
        self._members = False  # the import statement names members of a module
        self._module: Any = UNKNOWN  # of the import statement
        self._top: Any = UNKNOWN  # what it has put on the stack

    def read(self) -> Iterator[Load]:
        chain: Load | None = None
        before: list[Load | None] = [None, None]  # the chains that ended at the last instructions
        for instruction in instructions(self._code):
            name, argument = instruction.opname, instruction.argval
            if _is_subscript(instruction):  # of the chain before the one instruction of its key
                *entries, chain = _entries(before[0], self._constant) or [None]
                yield from (entry for entry in entries if entry is not None)
                before = [None, chain]
                continue
            is_attribute = name in ("LOAD_ATTR", "LOAD_METHOD")
            goes_on = is_attribute or _is_name_for_getattr(instruction, before)
            if name == "GET_ITER" or (goes_on and argument in _GIVES_ENTRIES):
                yield from _entries(chain, UNKNOWN)
            if chain is not None and chain.value is not UNKNOWN:
                yield chain._replace(whole=not goes_on)
            if goes_on and chain is not None:
                value = attribute(chain.value, argument)
                chain = chain._replace(name=f"{chain.name}.{argument}", value=value)
                before[1] = chain
                continue
            chain = self._begin(instruction)
            before = [before[1], chain]
            if isinstance(argument, types.CodeType):
                known = {**self._enclosing, **self._local}
                yield from _Reader(argument, self._names, known, {}).read()
            self._follow_import(name, argument)
            is_constant = name in ("LOAD_CONST", "LOAD_SMALL_INT")
            self._constant = argument if is_constant else UNKNOWN if chain is not None else None
        if chain is not None and chain.value is not UNKNOWN:
            yield chain

    def _begin(self, instruction: dis.Instruction) -> Load | None:
        """Return the reference that starts at this instruction, if any."""
        opname, argument = instruction.opname, instruction.argval
        if opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            place: Mapping[str, Any] = self._names
        elif opname == "LOAD_DEREF":
            place = {**self._enclosing, **self._local}
        elif "FAST" in opname and "LOAD" in opname:
            place = self._local
            if isinstance(argument, tuple):  # two instructions in one; the second stays on top
                argument = argument[-1]
        else:
            return None
        line = instruction.positions.lineno if instruction.positions else None
        value = place.get(argument, UNKNOWN)
        return Load(argument, value, self._code, line or self._code.co_firstlineno)

    def _follow_import(self, opname: str, argument: Any) -> None:
        """Track the values of local names that import statements bind."""
        if opname == "IMPORT_NAME":
            self._members = bool(self._constant)  # from argument import ...
            name = argument if self._members else argument.partition(".")[0]
            self._module = self._top = sys.modules.get(name, UNKNOWN)
        elif opname == "IMPORT_FROM":
            self._top = attribute(self._module, argument)
            if not self._members:  # import a.b.c as name
                self._module = self._top
        elif opname.startswith("STORE_") and not opname.startswith("STORE_ATTR"):
            stored = argument[0] if isinstance(argument, tuple) else argument
            self._local[stored] = self._top
            self._top = UNKNOWN
        elif opname not in ("SWAP", "POP_TOP"):
            self._top = UNKNOWN


def _is_name_for_getattr(instruction: dis.Instruction, before: Sequence[Load | None]) -> bool:
    """Return whether it is the name in ``getattr(chain, "name")``, which is as ``chain.name``."""
    is_name = instruction.opname == "LOAD_CONST" and isinstance(instruction.argval, str)
    return is_name and before[0] is not None and before[0].value is getattr


def _is_subscript(instruction: dis.Instruction) -> bool:
    in_binary = instruction.opname == "BINARY_OP" and instruction.argrepr == "[]"  # Python 3.14
    return in_binary or instruction.opname == "BINARY_SUBSCR"


def _entries(container: Load | None, key: Any) -> list[Load]:
    """Return the entry of a dict, list or tuple, or all of its entries if the key is a variable."""
    if container is None or type(container.value) not in (dict, list, tuple):
        return []
    value = container.value
    entries = dict(value if isinstance(value, dict) else enumerate(value))
    if key is not UNKNOWN:
        entries = {key: entries[key]} if isinstance(key, int | str) and key in entries else {}
    return [
        container._replace(name=f"{container.name}[{own!r}]", value=entry)
        for own, entry in itertools.islice(entries.items(), MAX_ENTRIES)
    ]


def _has_itself(value: Any, name: str, found: Any) -> bool:
    """Return whether an attribute is one of the object and not of its class, as a field is."""
    names = inspect.getattr_static(value, "__dict__", None)
    if isinstance(value, type) or not isinstance(names, types.GetSetDescriptorType):
        return False
    return names.__get__(value).get(name, UNKNOWN) is found is not UNKNOWN


def attribute(value: Any, name: str) -> Any:
    """Return an attribute if that needs no running of code, else UNKNOWN."""
    if isinstance(value, types.ModuleType):
        return vars(value).get(name, UNKNOWN)
    if value is UNKNOWN:
        return UNKNOWN
    found = inspect.getattr_static(value, name, UNKNOWN)
    if _has_itself(value, name, found):
        return found
    if isinstance(found, types.ClassMethodDescriptorType) and isinstance(value, type):
        return found.__get__(None, value)  # datetime.now, in C
    of_class = inspect.getattr_static(type(value), name, None) is found
    if isinstance(found, types.FunctionType) and of_class and not isinstance(value, type):
        return types.MethodType(found, value)
    if isinstance(found, staticmethod | classmethod):
        return found.__func__
    return UNKNOWN if of_class and hasattr(type(found), "__get__") else found
