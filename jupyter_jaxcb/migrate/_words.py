"""Report the uses of host_callback in a file, and what to write instead."""

from __future__ import annotations

import ast
from collections.abc import Callable

from ._edits import Text, rewritten
from ._files import Part, Source
from ._notebook import parse
from ._uses import Use, bound_names


def report(source: Source) -> str:
    """List each use in a file with its line, its kind, and the line to write.

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
    """Return the advice for a use, which begins with "write", "keep" or "remove"."""
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
    """Return the statements that replace an import, on one line."""
    tree = parse(statement)
    new = rewritten(statement, tree, bound_names(tree), jax_is_bound=True)
    return _line("; ".join(map(ast.unparse, parse(new).body)))


class _Call:
    """The arguments of one call, as source text."""

    def __init__(self, use: Use, text: Text) -> None:
        assert isinstance(use.node, ast.Call)
        self._text = text
        self.places = [_line(text.of(argument)) for argument in use.node.args]
        self.words = {
            word.arg: _line(text.of(word.value)) for word in use.node.keywords if word.arg
        }
        self.is_statement = use.is_statement

    def place(self, number: int, name: str, default: str) -> str:
        """Return an argument by position or name."""
        if number < len(self.places):
            return self.places[number]
        return self.words.get(name, default)

    def passing(self, value: str) -> str:
        """Return what to append to the advice if the value of the call is used."""
        result = self.words.get("result", value)
        return "" if self.is_statement else f", and continue with {result}"


def _id_tap(call: _Call) -> str:
    function, arg = call.place(0, "tap_func", "f"), call.place(1, "arg", "x")
    return (
        f"jaxcb.debug_callback({function}, {arg}, ordered=True){call.passing(arg)} (the function "
        "then gets no transforms, and under vmap one element at a time; @jaxcb.tap passes the "
        "transforms and the whole batch)"
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
_ERRORS = "keep it; other callbacks raise jax.errors.JaxRuntimeError, see jaxcb.host_error"
_OTHERS = {
    "CallbackException": _ERRORS,
    "TapFunctionException": _ERRORS,
    "CallbackFlavor": "keep it, or remove it: it has no effect",
    "flags": "keep it",
    "host_callback": "keep it",
    **dict.fromkeys(_CALLS, "keep it"),
}
_UNKNOWN = "remove it: it was not public in host_callback, and jupyter_jaxcb does not have it"


def _line(text: str) -> str:
    """Join the lines of a text."""
    return " ".join(text.split())
