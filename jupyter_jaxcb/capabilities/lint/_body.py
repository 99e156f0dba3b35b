"""Read what is written in a function, and what its names refer to, without running it.

A `Body` is read once for each code object, from the source or, where there is none, from the code
itself. It knows expressions that begin with a name by their text, such as ``COUNTS['n']``, each
after the one that it begins with. So a `Reading` finds the values of all of them in one loop.
"""

from __future__ import annotations

import array
import ast
import builtins
import collections
import dis
import functools
import inspect
import itertools
import linecache
import operator
import sys
import textwrap
import tokenize
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ._functions import UNKNOWN, Called, attribute, called_by, closure_of, entries, entry

MAX_FUNCTIONS = 60  # read at most for one host function, nearest first
MAX_ENTRIES = 100  # read of one dict, list or tuple
_CONTAINERS = (list, dict, set, bytearray, collections.deque, array.array, np.ndarray)
_GROW = frozenset(  # methods of containers
    "add append appendleft clear discard extend extendleft insert pop popitem popleft remove "
    "reverse rotate subtract update".split()
)
_FILL = frozenset("fill itemset partition sort".split())  # of containers, and of any argument
_FUNCTIONS = (ast.FunctionDef, ast.Lambda)
# How an object changes: to a value that depends on the old one (``n += 1``), by more or fewer
# elements (``log.append(x)``), to a new attribute or item, or all of it (``x.fill(0)``, ``out=x``).
_COUNTS, _GROWS, _SETS, _FILLS = range(4)


class Body:
    """What is written in a function, and in the functions and classes inside it.

    Attributes:
        has_source: whether the source could be read.
        local: its own variables.
        bound: names that it assigns to, also parameters.
        steps: for each expression: the shorter one that it begins with, empty for a name; what gets
            its value from the value of that one, None if it is another name of it; with what key,
            `UNKNOWN` for any entry.
        uses: text, line, whether it is whole, not the beginning of a longer one, and its call as
            written if that has no arguments but None.
        changes: line, text, the part of it that changes, how, whether by a method that does so for
            containers only, and whether it is a cache, or made once.
    """

    def __init__(self, code: types.CodeType) -> None:
        self.local: set[str] = set()
        codes = [code]
        for each in codes:
            is_class = not each.co_flags & inspect.CO_OPTIMIZED
            self.local.update(each.co_varnames, each.co_cellvars, each.co_names * is_class)
            codes += [inner for inner in each.co_consts if isinstance(inner, types.CodeType)]
        self.bound: set[str] = set()
        self.steps: dict[str, tuple[str, Callable[..., Any] | None, Any]] = {}
        self.uses: list[tuple[str, int, bool, str]] = []
        self.changes: list[tuple[int, str, str, int, bool, bool]] = []
        nodes = _nodes_of(code)
        self.has_source = bool(nodes)
        if nodes:
            self._read_changes(nodes, self._read_expressions(nodes))
        else:
            for each in codes:
                self._read_code(each)

    def _read_code(self, code: types.CodeType) -> None:
        """Read names and what follows them at once: ``jnp.linalg.norm``, ``SOLVERS['cg']``."""
        text, constant = "", UNKNOWN
        for each in dis.get_instructions(code):
            operation, name = each.opname, each.argval
            step: tuple[str, str, Callable[..., Any] | None, Any] | None = None
            if operation in ("LOAD_CONST", "LOAD_SMALL_INT"):
                constant = name
                continue
            if operation in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"):
                if text and constant is UNKNOWN:
                    step = f"{text}.{name}", text, attribute, name
            elif operation == "BINARY_SUBSCR" or each.argrepr == "[]":
                if text and constant is not UNKNOWN:
                    step = f"{text}[{constant!r}]", text, entry, constant
            elif operation.startswith("LOAD_") and type(name) is str:
                step = name, "", None, name
            text, constant = "", UNKNOWN
            if step is not None:
                text, shorter, get, key = step
                self.steps.setdefault(text, (shorter, get, key))
                if shorter:
                    self.uses[-1] = (*self.uses[-1][:2], False, "")
                line = each.positions.lineno if each.positions else None
                self.uses.append((text, line or code.co_firstlineno, True, ""))

    def _read_expressions(self, nodes: list[Any]) -> dict[Any, str]:
        """Read what it refers to, but not ``print`` in ``print(x, file=text)``.

        Returns:
            The texts of expressions, by their nodes.
        """
        texts: dict[Any, str] = {}
        beginnings, to_files, bare_calls = set(), set(), {}
        times_bound: collections.Counter[str] = collections.Counter()
        for node in nodes:
            thing, get, key, text = None, None, None, ""
            match node:
                case ast.Name(id=name):
                    texts[node] = name
                    if isinstance(node.ctx, ast.Store):
                        times_bound[name] += 1
                    else:
                        self.steps.setdefault(name, ("", None, name))
                case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    times_bound[name] += 1
                case ast.Import(names=names) | ast.ImportFrom(names=names):
                    for each in names:
                        name, module, part = each.asname or each.name, each.name, ""
                        if isinstance(node, ast.ImportFrom):
                            module, part = node.module, each.name
                        elif each.asname is None:  # import jax.numpy
                            name = module = each.name.partition(".")[0]
                        times_bound[name] += 1
                        self.steps[f"import {module}"] = "", None, ""
                        self.steps[name] = f"import {module}", attribute if part else None, part
                case ast.AugAssign(target=ast.Name(id=name)):
                    times_bound[name] -= 1
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if value in texts:
                    if name in self.local:
                        self.steps.setdefault(name, (texts[value], None, name))
                case (
                    ast.Attribute(value=thing, attr=key)
                    | ast.Call(
                        func=ast.Name(id="getattr" | "hasattr"),
                        args=[thing, ast.Constant(str(key)), *_],
                    )
                ):
                    get, text = attribute, f"{texts.get(thing)}.{key}"
                case (
                    ast.Subscript(value=thing, slice=index)
                    | ast.Call(func=ast.Attribute(value=thing, attr="get"), args=[index, *_])
                ):
                    get, key = entry, index.value if isinstance(index, ast.Constant) else UNKNOWN
                    text = ast.unparse(ast.Subscript(ast.Name(texts.get(thing, "")), index))
                case (
                    ast.For(iter=thing)
                    | ast.Call(func=ast.Attribute(value=thing, attr="values" | "items"), args=[])
                    | object(generators=[ast.comprehension(iter=thing), *_])
                ):
                    get, key, text = entry, UNKNOWN, f"{texts.get(thing)}[...]"
                case ast.Call(func=func, args=[] | [ast.Constant(None)] as nothing, keywords=[]):
                    bare_calls[func] = f"{texts.get(func)}({'None' * len(nothing)})"
                case ast.Call(func=ast.Name(id="print") as func, keywords=keywords):
                    to_files.update(func for each in keywords if each.arg == "file")
            if get is not None and thing in texts:
                texts[node] = text
                self.steps.setdefault(text, (texts[thing], get, key))
                if key is not UNKNOWN:
                    beginnings.add(thing)
        for name, times in times_bound.items():
            if times > 1 or name not in self.steps:
                self.steps[name] = "", None, name
            if times:
                self.bound.add(name)
        for node, text in texts.items():
            is_read = not isinstance(getattr(node, "ctx", None), ast.Store)
            if is_read and node not in to_files:
                whole = node not in beginnings
                self.uses.append((text, node.lineno, whole, bare_calls.get(node, "")))
        return texts

    def _read_changes(self, nodes: list[Any], texts: dict[Any, str]) -> None:
        unused = {node.value for node in nodes if isinstance(node, ast.Expr)}
        operands: list[tuple[tuple[int, int], str]] = []  # position and text
        summed: dict[str, set[str]] = {}  # operands in the value of a variable
        looked_up: set[str] = set()  # ``CACHE`` in ``key in CACHE``, ``CACHE.get(key)``
        once: list[tuple[str, range]] = []  # ``MODEL``, lines of ``if MODEL is None``
        found: list[tuple[int, str, str, int, bool]] = []  # as `changes`
        for node in nodes:
            value, targets = None, []
            match node:
                case ast.BinOp(left=left, op=op, right=right) if not isinstance(op, ast.BitOr):
                    for side in (left, right):
                        text = self._meaning(texts.get(side, ""))
                        operands.append(((node.lineno, node.col_offset), text))
                case ast.Assign(targets=targets, value=value):
                    targets = itertools.chain(*(getattr(each, "elts", [each]) for each in targets))
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    targets = [target]
                case ast.Call(
                    func=ast.Name(id="setattr") | ast.Attribute(attr="__setattr__"),
                    args=[thing, ast.Constant(str(name)), value],
                ):
                    targets = [ast.Attribute(thing, name)]
                    if thing in texts:
                        texts[targets[0]] = f"{texts[thing]}.{name}"
                case ast.AugAssign(
                    target=ast.Name(id=name), value=ast.JoinedStr() | ast.Constant(str())
                ) if name in self.local:
                    pass  # mode += "_done"
                case ast.AugAssign(target=target) if target in texts:
                    thing = texts[getattr(target, "value", target)]
                    found.append((node.lineno, texts[target], thing, _COUNTS, False))
                case ast.Delete(targets=[ast.Subscript(value=thing)]) if thing in texts:
                    found.append((node.lineno, texts[thing], texts[thing], _GROWS, False))
                case ast.Call(func=func, keywords=keywords):
                    method = self._meaning(texts.get(func, ""))  # add = LOG.append
                    thing, get, name = self.steps.get(method, ("", None, ""))
                    if get is attribute and name in _GROW | _FILL:
                        how = _FILLS if name in _FILL and node in unused else _GROWS
                        found.append((node.lineno, thing, thing, how, True))
                    for keyword in keywords:
                        thing = texts.get(keyword.value, "")
                        if keyword.arg == "out":
                            found.append((node.lineno, thing, thing, _FILLS, False))
                        elif keyword.arg == "file" and method == "print":
                            found.append((node.lineno, thing, thing, _GROWS, False))
                case (
                    ast.If(test=ast.Compare(left=thing, ops=[ast.Is()]))
                    | ast.If(test=ast.UnaryOp(op=ast.Not(), operand=thing))
                ):
                    last: Any = node.body[-1]
                    once.append((texts.get(thing, ""), range(node.lineno, last.end_lineno + 1)))
                case (
                    ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[thing])
                    | ast.Attribute(value=thing, attr="get")
                ):
                    looked_up.add(texts.get(thing, ""))
                case ast.Try(body=body, handlers=handlers):
                    if any(x.type and "KeyError" in ast.unparse(x.type) for x in handlers):
                        tried = itertools.chain(*map(ast.walk, body))
                        items = [each.value for each in tried if isinstance(each, ast.Subscript)]
                        looked_up.update(texts.get(each, "") for each in items)
            if value is not None:
                start = value.lineno, value.col_offset
                added = {text for position, text in operands if position >= start}
                added |= summed.get(texts.get(value, ""), set())
                for target in targets:
                    if target in texts:
                        text, thing = texts[target], texts[getattr(target, "value", target)]
                        fills = text.endswith(("[:]", "[...]"))
                        how = _COUNTS if text in added else _FILLS if fills else _SETS
                        summed[text] = added
                        if text not in self.local:
                            found.append((node.lineno, text, thing, how, False))
        for line, text, thing, how, by_method in found:
            is_kept = how in (_GROWS, _SETS) and thing in looked_up
            for made, lines in once:
                is_kept = is_kept or (text == made and line in lines)
            if thing in self.steps:
                self.changes.append((line, text, thing, how, by_method, is_kept))

    def _meaning(self, text: str) -> str:
        """Return what a name is another name of; any other expression as it is."""
        other, get, _ = self.steps.get(text, ("", None, ""))
        return other if other and get is None else text


class Reading:
    """A function as it is written, with the values that its expressions have before it runs.

    Args:
        called: the function.
        leading: the number of leading parameters that it may write into.
        wrapped: whether a decorator calls it, which may pass copies of the arguments.

    Attributes:
        file: its source file, or the name of the cell.
        has_source: whether the source could be read.
        uses: what it refers to: text, value, line, whether it is whole, not the beginning of a
            longer expression, and its call as written if that has no arguments but None.
    """

    def __init__(self, called: Called, leading: int = 0, *, wrapped: bool = False) -> None:
        function, known, receiver = called
        code = function.__code__
        self._body = body = _body_of(code)
        self.file, self.has_source = code.co_filename, body.has_source
        parameters = () if wrapped else code.co_varnames[: code.co_argcount]
        self._arguments = set(parameters[leading + bool(receiver) :]).difference(known, body.bound)
        self._given = {name: known[name] for name in known if name not in body.bound}
        self._receiver = receiver
        self._scopes = closure_of(function), function.__globals__, vars(builtins)
        # Whose each expression is; its value, then the values of what leads to it.
        self._known: dict[str, tuple[str, list[Any]]] = {"": ("", [UNKNOWN])}
        for text, (shorter, get, key) in body.steps.items():
            if not shorter:
                owner, value = self._named(text)
                objects = [value]
            else:
                owner, lead = self._known.get(shorter, self._known[""])
                value, objects = lead[0], lead
                if get is None and value is UNKNOWN and body.steps[shorter][0]:
                    owner = ""  # a name for a copy, part = x[[0, 1]]
                elif get is not None:
                    value = UNKNOWN if value is UNKNOWN else get(value, key)
                    objects = [value, *lead]
            self._known[text] = owner, objects
        self.uses: list[tuple[str, Any, int, bool, str]] = []
        for text, line, whole, bare_call in body.uses:
            shorter, _, key = body.steps[text]
            value = self._known[text][1][0]
            if key is UNKNOWN:  # any entry
                table = entries(self._known[shorter][1][0])
                for key, value in itertools.islice(table.items(), MAX_ENTRIES):
                    is_plain = type(key) in (str, int, float, bool)
                    item = f"{shorter}[{key!r}]" if is_plain else f"{shorter}[...]"
                    self.uses.append((item, value, line, True, ""))
            elif value is not UNKNOWN:
                self.uses.append((text, value, line, whole, bare_call))

    def _named(self, name: str) -> tuple[str, Any]:
        """Return whose a variable or an imported module is, and its value.

        It is an "argument", or the method's "object", or from "outside", or the function's own.
        """
        if name in self._arguments:
            return "argument", UNKNOWN
        if name in self._given:
            return "object" if name == self._receiver else "outside", self._given[name]
        if name in self._body.local:
            return "", UNKNOWN
        if name.startswith("import "):
            return "outside", sys.modules.get(name.removeprefix("import "), UNKNOWN)
        for scope in self._scopes:
            value = scope.get(name, UNKNOWN)
            if value is not UNKNOWN:
                return "outside", value
        return "outside", UNKNOWN

    def changes(self) -> list[tuple[str, int, bool, bool, list[Any]]]:
        """Return what it changes outside of itself.

        Left out are caches, and what it makes once: it looks first whether they have a value. The
        object of a method may keep results, and begin to count anew in each call. Lists and named
        items of an argument, ``params["w"]``, are of this call alone.

        Returns:
            For each change its text and line; whether it is in an argument; whether it sets an
            item, which the same call may read again, and no other one; the value of what changes,
            and those of what leads to it.
        """
        found, begun = [], set()
        for text, value, line, *_ in self.uses:  # next(NUMBERS)
            is_name = text.isidentifier() and not self._body.steps[text][0]
            if is_name and text != self._receiver and issubclass(type(value), Iterator):
                found.append((text, line, False, False, [value]))
        for line, text, thing, how, by_method, is_kept in self._body.changes:
            owner, objects = self._known[thing]
            of_container = issubclass(type(objects[0]), _CONTAINERS)
            rest = text.removeprefix(thing)  # an attribute or an index
            if owner == "argument":
                is_named = rest.startswith(".") or "'" in text or '"' in text
                reported = how is not _GROWS and not is_named
            elif by_method and not of_container:
                reported = False
            elif owner == "object":
                if how in (_SETS, _FILLS) and not is_kept:
                    begun.add(text if how is _SETS else thing)
                grows = how is _GROWS and of_container
                reported = (how is _COUNTS or grows) and not (is_kept or {text, thing} & begun)
            elif how is _COUNTS and text in self._given:
                reported = of_container and not is_kept  # a number is of this call alone
            else:
                reported = owner == "outside" and not is_kept
            if reported:
                sets_item = how is _SETS and rest.startswith("[")
                found.append((text, line, owner == "argument", sets_item, objects))
        return found


def reached(function: Callable[..., Any]) -> Iterator[Reading]:
    """Yield the readings of `function` and of the functions that it refers to, nearest first."""
    waiting: list[Any] = [function]
    seen: set[types.CodeType] = set()
    while waiting and len(seen) < MAX_FUNCTIONS:
        called = called_by(waiting.pop(0))
        if called is not None and called.function.__code__ not in seen:
            seen.add(called.function.__code__)
            reading = Reading(called)
            yield reading
            for _, value, _, whole, _ in reading.uses:
                if whole and callable(value):
                    waiting.append(value)


@functools.lru_cache(maxsize=1024)
def _body_of(code: types.CodeType) -> Body:
    return Body(code)


def _nodes_of(code: types.CodeType) -> list[Any]:
    """Return the parts of a function's body in the order in which they end, with their lines.

    There are none without source, or if that is ambiguous.
    """
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    try:
        source = textwrap.dedent("".join(inspect.getblock(lines)))
        tree = ast.parse("\n" * (code.co_firstlineno - 1) + source)
    except (SyntaxError, ValueError, RecursionError, tokenize.TokenError):
        return []
    bodies = []
    for node in ast.walk(tree) if code.co_name == "<lambda>" else tree.body:
        if getattr(node, "name", "<lambda>") == code.co_name and isinstance(node, _FUNCTIONS):
            parameters = [each.arg for each in node.args.posonlyargs + node.args.args]
            if parameters == list(code.co_varnames[: code.co_argcount]):
                bodies.append(node.body)
    if len(bodies) != 1:
        return []
    body = bodies[0] if isinstance(bodies[0], list) else bodies
    placed = [node for node in ast.walk(ast.Module(body, [])) if hasattr(node, "end_lineno")]
    return sorted(reversed(placed), key=operator.attrgetter("end_lineno", "end_col_offset"))
