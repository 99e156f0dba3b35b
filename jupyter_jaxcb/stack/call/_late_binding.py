"""Late binding: running a cell or module again replaces the functions compiled programs call.

Only notebook cells and modules can run again (see `Run`). A callback registered anywhere else
always calls the function it was made from.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import types
import weakref
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from ...recording import active
from ..trace import assigned_name, is_cell
from ._callback import HostFunction


class Run:
    """One execution of a cell or a module.

    Args:
        namespace: the globals of the functions it defines.
        place: identifies the cell or module, equal in every execution of it; None if it cannot be
            recognized when it runs again.
        token: identifies this execution; compared by identity.
    """

    def __init__(
        self, namespace: dict[str, Any], place: Hashable = None, token: object = None
    ) -> None:
        self.namespace = namespace
        self.token = object() if token is None else token
        self.is_known = place is not None
        self.place = place if self.is_known else self.token
        self.definitions: list[Definition] = []


class _Cells(threading.local):
    """The cells that this thread is executing, innermost last (`run_cell` nests)."""

    def __init__(self) -> None:
        self.running: list[Run] = []


_cells = _Cells()
_lock = threading.RLock()


def cell_begins(namespace: dict[str, Any], place: Hashable) -> Run:
    """Note that this thread starts to execute a cell; see `Run`."""
    run = Run(namespace, place)
    _cells.running.append(run)
    return run


def cell_ends(run: Run) -> None:
    """Note that a cell has ended, and with it every cell that it started."""
    if run in _cells.running:
        del _cells.running[_cells.running.index(run) :]
    with _lock:
        for definition in run.definitions:
            definition.settle()
        run.definitions.clear()


def running_cell() -> object:
    """Return what identifies the cell that this thread is executing, in this run; or None."""
    running = _cells.running
    return running[-1].token if running else None


@contextlib.contextmanager
def cell_known_as(place: Hashable) -> Iterator[None]:
    """Identify this part of the running cell as `place`, unless the cell has a place already."""
    running = _cells.running
    if not running or running[-1].is_known:
        yield
        return
    run = cell_begins(running[-1].namespace, place)
    try:
        yield
    finally:
        cell_ends(run)


class Definition:
    """The functions that one place registered under one name and interface, in its latest run.

    Attributes:
        run: the token of that run.
        function: the function that was registered first in that run.
        single: whether it is the only one; only then does the next run replace it.
        version: the version of the function.
        rule: its derivative rule, as `differentiated_by` has noted it.
        hosts: the host functions that call it.
    """

    __slots__ = (
        "__weakref__", "_before", "_marked", "_name", "_older", "_rule_before", "function", "hosts",
        "rule", "run", "single", "version",
    )  # fmt: skip

    def __init__(
        self, run: Run, function: Callable[..., Any], known: Definition | None, name: _Name
    ) -> None:
        self.run, self.function, self._name, self.single = run.token, function, name, True
        self.hosts: weakref.WeakSet[HostFunction] = weakref.WeakSet()
        self._older: list[HostFunction] = []  # taken over from the previous run
        self._before = function  # the function that `_older` called
        self._marked: list[HostFunction] = []  # marked as replaced because of this definition
        self.rule = self._rule_before = () if known is None else known.rule
        self.version = 1 if known is None else known.version + 1
        if known is not None and known.single:
            self._older, self._before = list(known.hosts), known.function
        for host in self._older:
            self._take(host)
        self._mark()
        name.definitions.add(self)

    def host(self, function: Callable[..., Any]) -> HostFunction:
        """Return the host function for `function`, which this run registers."""
        if function is not self.function:
            self._give_back()
            host = HostFunction(function)
            host.definition = self  # keeps this definition alive, so the next run sees two
            return host
        for host in self.hosts:
            if host not in self._older:
                return host
        host = HostFunction(function, late_bound=True)
        host.version = self.version
        self._take(host)
        return host

    def settle(self) -> None:
        """Note that this run registers no further function under the name."""
        self._older, self._before, self._marked = [], self.function, []

    def differentiate_by(self, rule: tuple[Any, ...]) -> None:
        """Note the derivative rule. Programs that have another one keep the function that it is of.

        A rule is JAX code, and part of compiled programs.
        """
        self.rule = rule
        if self._rule_before in ((), rule):
            return
        self._let_go()
        for host in self._older:
            host.replaced = True
        self._older = []

    def _take(self, host: HostFunction) -> None:
        host.rebind(self.function)
        host.replaced = False
        host.definition = self
        self.hosts.add(host)

    def _give_back(self) -> None:
        """Undo the takeover: with two functions of the name, either could replace the old one."""
        self.single = False
        self._let_go()
        for host in self._marked:
            host.replaced = False
        self.settle()

    def _let_go(self) -> None:
        for host in self._older:
            host.rebind(self._before)
            self.hosts.discard(host)

    def _mark(self) -> None:
        """Mark the host functions of other places that registered the same name as replaced."""
        for other in list(self._name.definitions):
            if other.single and other.run is not self.run:
                for host in other.hosts:
                    if host.current is not self.function and not host.replaced:
                        host.replaced = True
                        self._marked.append(host)


class _Name:
    """All definitions registered under one name of a namespace."""

    def __init__(self) -> None:
        self.definitions: weakref.WeakSet[Definition] = weakref.WeakSet()


# A host function keeps its definition alive, and a definition keeps its name alive.
_definitions: weakref.WeakValueDictionary[tuple[Hashable, str, Hashable], Definition]
_definitions = weakref.WeakValueDictionary()
_names: weakref.WeakValueDictionary[tuple[int, str], _Name] = weakref.WeakValueDictionary()


def register(function: Callable[..., Any], interface: Hashable) -> HostFunction:
    """Return the `HostFunction` for `function`.

    If a cell or a module runs again, and both runs register exactly one function under a name,
    programs that call the old function call the new one from now on.

    Args:
        function: the host function.
        interface: what programs were compiled against (flavor, result, vmap method). A function
            only replaces one with an equal interface.
    """
    run = _run_of(function) if _is_defined_at_top_level(function) else None
    if run is None:
        host = HostFunction(function)
        if host.name == "<lambda>":
            host.name = assigned_name(function) or host.name
        return host
    place = (run.place, function.__qualname__, interface)
    with _lock:
        known = _definitions.get(place)
        if known is None or known.run is not run.token:
            known = Definition(run, function, known, _name_of(function))
            _definitions[place] = known
            run.definitions.append(known)
        host = known.host(function)
    recorder = active()
    if recorder is not None:
        recorder.forget_plain()  # versions may have changed
    return host


def differentiated_by(host: HostFunction, *rule: Any) -> None:
    """Note the derivative rule of a host function: functions, and the options of the rule."""
    if host.definition is not None:
        with _lock:
            host.definition.differentiate_by(tuple(map(_content, rule)))


def _content(part: Any) -> Hashable:
    """Return what is equal for a function, or a part of its code, if its cell runs again as is."""
    if isinstance(part, types.FunctionType):
        if part.__closure__ or part.__defaults__ or part.__kwdefaults__:
            return part
        part = part.__code__
    if isinstance(part, types.CodeType):  # without its lines, which move
        return part.co_code, part.co_names, tuple(map(_content, part.co_consts))
    return type(part), part


def _name_of(function: Callable[..., Any]) -> _Name:
    if not function.__qualname__.strip("_"):  # def _(x) is anonymous
        return _Name()
    key = (id(function.__globals__), function.__qualname__)
    name = _names.get(key)
    if name is None:
        name = _names[key] = _Name()
    return name


def _run_of(function: types.FunctionType) -> Run | None:
    """Return the run that registers `function` at top level; None if its code cannot run again."""
    names = function.__globals__
    running = _cells.running
    if running and names is running[-1].namespace:
        # A file or a string that the cell executes in its own namespace is not the cell.
        return running[-1] if is_cell(function.__code__.co_filename) else None
    module = sys.modules.get(function.__module__)
    # Each importlib.reload makes a new spec; a script has none.
    spec = getattr(module, "__spec__", None)
    if spec is None or getattr(module, "__dict__", None) is not names:
        return None
    return Run(names, id(names), spec)


def _is_defined_at_top_level(function: Callable[..., Any]) -> bool:
    """Return whether its name identifies it: not a closure, lambda, method or wrapper."""
    return (
        type(function) is types.FunctionType
        and function.__code__.co_qualname == function.__qualname__
        and "<" not in function.__qualname__
    )
