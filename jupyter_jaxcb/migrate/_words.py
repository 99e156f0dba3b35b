"""What a file uses of host_callback, line by line, and what to write instead."""

from __future__ import annotations

import ast
from collections.abc import Callable

from ._cells import parse
from ._edits import Text, rewritten
from ._files import Part, Source
from ._uses import Use, bound_names


def report(source: Source) -> str:
    """Each use in a file: its line, what it is, and the line to write.

    Returns:
        Text without a final newline.
    """
    found = [(part, use) for part in source.parts for use in part.uses()]
    if not found:
        return f"{source.path}: no use of host_callback"
    count = f"{len(found)} use{'' if len(found) == 1 else 's'}"
    lines = [f"{source.path}: {count} of host_callback"]
    for part, use in found:
        where = f"cell {part.cell + 1}, " if part.cell is not None else ""
        text = part.text()
        lines.append(f"  {where}line {use.line}: {use.what}: {_line(text.of(use.node))}")
        lines.append(f"      {modern(use, part)}")
    return "\n".join(lines)


def modern(use: Use, part: Part) -> str:
    """What to write instead of a use, in words that begin with "write" or "keep"."""
    text = part.text()
    if use.what == "import":
        return f"write: {_import(text.of(use.node))}"
    if isinstance(use.node, ast.Call) and use.what == "option":
        given = ", ".join(_line(text.of(argument)) for argument in use.node.args)
        return f"write: host_callback.flags.update({given})"
    if isinstance(use.node, ast.Call) and use.what in _CALLS:
        call = _Call(use, text)
        return f"keep it, or write: {_CALLS[use.what](call)}"
    return _OTHERS.get(use.what, _UNKNOWN)


def _import(statement: str) -> str:
    """The statement that takes the place of an import; several on one line."""
    tree = parse(statement)
    new = rewritten(statement, tree, bound_names(tree), jax_is_bound=True)
    return _line("; ".join(map(ast.unparse, parse(new).body)))


class _Call:
    """The words of one call: its arguments as they are written."""

    def __init__(self, use: Use, text: Text) -> None:
        assert isinstance(use.node, ast.Call)
        self._text = text
        self.places = [_line(text.of(argument)) for argument in use.node.args]
        self.words = {
            word.arg: _line(text.of(word.value)) for word in use.node.keywords if word.arg
        }
        self.is_statement = use.is_statement

    def place(self, number: int, name: str, default: str) -> str:
        """An argument by position or name."""
        if number < len(self.places):
            return self.places[number]
        return self.words.get(name, default)

    def passing(self, value: str) -> str:
        """What to say where the value of the call is used."""
        result = self.words.get("result", value)
        return "" if self.is_statement else f", and go on with {result}"


def _id_tap(call: _Call) -> str:
    function, arg = call.place(0, "tap_func", "f"), call.place(1, "arg", "x")
    return (
        f"jaxcb.debug_callback({function}, {arg}, ordered=True){call.passing(arg)} (the function "
        "gets no transforms, and one element at a time under vmap; with @jaxcb.tap it keeps both)"
    )


_PRINT_OPTIONS = {
    "result", "tap_with_device", "device_index", "output_stream", "threshold", "callback_flavor",
}  # fmt: skip


def _id_print(call: _Call) -> str:
    arg = call.place(0, "arg", "x")
    words = {name: value for name, value in call.words.items() if name not in _PRINT_OPTIONS}
    fields = " ".join(f"{name}={{{name}}}" for name in words)
    given = "".join(f", {name}={value}" for name, value in words.items())
    text = f"{fields} {{}}" if fields else "{}"
    return f'jaxcb.debug_print("{text}", {arg}{given}, ordered=True){call.passing(arg)}'


def _call(call: _Call) -> str:
    function, arg = call.place(0, "callback_func", "f"), call.place(1, "arg", "x")
    shape = call.words.get("result_shape", call.words.get("result_shape_dtypes", "None"))
    return (
        f"jaxcb.io_callback({function}, {shape}, {arg}, ordered=True); if {function} is pure: "
        f"jaxcb.pure_callback({function}, {shape}, {arg})"
    )


_CALLS: dict[str, Callable[[_Call], str]] = {
    "id_tap": _id_tap,
    "id_print": _id_print,
    "call": _call,
    "barrier_wait": lambda call: "jax.effects_barrier()",
    "stop_outfeed_receiver": lambda call: "jax.effects_barrier()",
}
_ERRORS = "keep it; errors of other callbacks are jax.errors.JaxRuntimeError, see jaxcb.host_error"
_OTHERS = {
    "CallbackException": _ERRORS,
    "TapFunctionException": _ERRORS,
    "CallbackFlavor": "keep it, or leave it out: it means nothing",
    "flags": "keep it",
    "host_callback": "keep it",
    **dict.fromkeys(_CALLS, "keep it"),
}
_UNKNOWN = "take it out: it was no part of what host_callback promised, and is not in ours"


def _line(text: str) -> str:
    """Text of several lines as one."""
    return " ".join(text.split())
