"""Report the uses of host_callback in a file, and what to write instead."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from ._edits import Text, rewritten
from ._files import Part, Source
from ._notebook import parse
from ._uses import NAME, OURS, Use, bound_names, name_of_module


def report(source: Source) -> str:
    """List each use in a file with its line, its kind, and the line to write.

    Returns:
        Text without a final newline.
    """
    found = source.uses()
    if not found:
        return f"{source.path}: no use of host_callback"
    count = f"{len(found)} use{'' if len(found) == 1 else 's'}"
    lines = [f"{source.path}: {count} of host_callback"]
    for part, use in found:
        lines.append(f"  {_where(part, use)}: {use.what}: {_line(part.text().of(use.node))}")
        lines.append(f"      {modern(use, part)}")
    return "\n".join(lines)


def notes(sources: Iterable[Source]) -> list[str]:
    """Return what to know about the proposals for some sources."""
    uses = [use for source in sources for _, use in source.uses()]
    whats = {use.what for use in uses if isinstance(use.node, ast.Call)}
    return [note for what, note in _NOTES.items() if whats & {*what}]


def written(source: Source) -> str:
    """Rewrite a file; say what was done, and what was not.

    Raises:
        MigrationError: it cannot be written.
    """
    left = [f"{_where(part, use)} ({use.what})" for part, use in source.left()]
    done = "rewritten" if source.write() else "nothing to rewrite"
    return f"{done}; not rewritten: {', '.join(left)}" if left else done


def modern(use: Use, part: Part) -> str:
    """Return the advice for a use, which begins with "write", "keep", "change" or "remove"."""
    text = part.text()
    if use.what == "import":
        return f"write: {_import(text.of(use.node))}"
    if use.what == "option":
        return f"write: {_option(use.node, part)}"
    if isinstance(use.node, ast.Call) and use.what in _CALLS:
        return _CALLS[use.what](_Call(use, text))
    return _OTHERS.get(use.what, _UNKNOWN)


def _where(part: Part, use: Use) -> str:
    cell = f"cell {part.cell + 1}, " if part.cell is not None else ""
    return f"{cell}line {use.line}"


def _option(node: ast.stmt | ast.expr, part: Part) -> str:
    """Return the line that replaces a use of an option of jax.config."""
    module = name_of_module(part.known)
    if isinstance(node, ast.Call):
        text = part.text()
        given = ", ".join(
            _line(text.of(argument))
            for argument in [*node.args, *(word.value for word in node.keywords)]
        )
        line = f"{module or NAME}.flags.update({given})"
    else:
        assert isinstance(node, ast.Attribute)
        line = f"{module or NAME}.flags.{node.attr}"
    return line if module else f"{line}, after from {OURS} import {NAME}"


def _import(statement: str) -> str:
    """Return the statements that replace an import, on one line."""
    tree = parse(statement)
    new = rewritten(statement, tree, bound_names(tree), jax_is_bound=True)
    return _line("; ".join(map(ast.unparse, parse(new).body)))


class _Call:
    """The arguments of one call, as source text."""

    def __init__(self, use: Use, text: Text) -> None:
        assert isinstance(use.node, ast.Call)
        self.text = text
        self.nodes: dict[str | int, ast.expr] = dict(enumerate(use.node.args))
        self.nodes |= {word.arg: word.value for word in use.node.keywords if word.arg}
        self.more = [_line(text.of(word.value)) for word in use.node.keywords if not word.arg]
        self.words = {
            name: self.of(node) for name, node in self.nodes.items() if isinstance(name, str)
        }
        self.is_statement = use.is_statement

    def of(self, node: ast.expr) -> str:
        """Return the text of an argument, on one line."""
        return _line(self.text.of(node))

    def node(self, place: int, *names: str) -> ast.expr | None:
        """Return an argument by position or name."""
        return next((self.nodes[key] for key in (place, *names) if key in self.nodes), None)

    def place(self, number: int, name: str, default: str) -> str:
        """Return the text of an argument by position or name."""
        node = self.node(number, name)
        return default if node is None else self.of(node)

    def passing(self, value: str) -> str:
        """Return what to append to the advice if the value of the call is used."""
        result = self.words.get("result", value)
        return "" if self.is_statement else f", and continue with {result}"


def _id_tap(call: _Call) -> str:
    node = call.node(0, "tap_func")
    function, arg = call.place(0, "tap_func", "f"), call.place(1, "arg", "x")
    second = _second_parameter(node)
    if isinstance(node, ast.Lambda) and second is not None:
        if second.arg in {part.id for part in ast.walk(node.body) if isinstance(part, ast.Name)}:
            return f"keep it, or write: jaxcb.tap({function})({arg}){_device(call, _OF_DEVICE)}"
        function = _without_second(call.text, node)
    return (
        f"keep it, or write: jaxcb.debug_callback({function}, {arg}, ordered=True)"
        f"{call.passing(arg)}{_device(call, _OF_DEVICE)}"
    )


def _second_parameter(node: ast.expr | None) -> ast.arg | None:
    """Return the second parameter of a lambda, if it has no default."""
    if not isinstance(node, ast.Lambda):
        return None
    parameters = [*node.args.posonlyargs, *node.args.args]
    required = len(parameters) - len(node.args.defaults)
    return parameters[1] if required >= 2 else None


def _without_second(text: Text, node: ast.Lambda) -> str:
    """Return a lambda without its second parameter."""
    first, second = [*node.args.posonlyargs, *node.args.args][:2]
    start, end = text.span(node)
    cut, after = text.span(first)[1], text.span(second)[1]
    return _line(text.source[start:cut] + text.source[after:end])


_OF_DEVICE = (
    "; the function gets no device: ask jaxcb.call_info().device, a name such as 'cpu:0', empty on "
    "a single device"
)


def _device(call: _Call, words: str) -> str:
    """Return `words` if the call passes the device to the function."""
    given = call.words.get("tap_with_device", call.words.get("call_with_device", "False"))
    return "" if given == "False" else words


_PRINT_OPTIONS = {
    "result", "tap_with_device", "device_index", "output_stream", "threshold", "callback_flavor",
}  # fmt: skip


def _id_print(call: _Call) -> str:
    arg = call.place(0, "arg", "x")
    skipped = {"arg", *_PRINT_OPTIONS}
    words = {name: value for name, value in call.words.items() if name not in skipped}
    fields = " ".join(f"{name}={{{name}}}" for name in words)
    given = "".join(f", {name}={value}" for name, value in words.items())
    text = f"{fields} {{}}" if fields else "{}"
    more = f", with a field and a keyword for each item of {call.more[0]}" if call.more else ""
    return (
        f'keep it, or write: jaxcb.debug_print("{text}", {arg}{given}, ordered=True){more}'
        f"{call.passing(arg)}{_device(call, '; the device is not printed')}"
    )


def _call(call: _Call) -> str:
    function, arg = call.place(0, "callback_func", "f"), call.place(1, "arg", "x")
    shape = _declared(call)
    device = _device(call, _OF_DEVICE)
    advice = f"keep it, or write: jaxcb.io_callback({function}, {shape}, {arg}, ordered=True)"
    if shape == "None":  # XLA would remove a pure callback without a result
        return advice + device
    return (
        f"{advice}; if {function} is pure: jaxcb.pure_callback({function}, {shape}, {arg}){device}"
    )


def _declared(call: _Call) -> str:
    """Return the declaration of the result; numbers become arrays, because these have shapes."""
    node = call.node(2, "result_shape", "result_shape_dtypes")
    if node is None:
        return "None"
    text = call.of(node)
    if _is_number(node):
        return f"jnp.asarray({text})"
    parts = node.elts if isinstance(node, (ast.Tuple, ast.List)) else []
    return f"jax.tree.map(jnp.asarray, {text})" if any(map(_is_number, parts)) else text


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float, complex))


def _barrier(call: _Call) -> str:
    return "keep it with taps: only it raises their errors; else write: jax.effects_barrier()"


_CALLS: dict[str, Callable[[_Call], str]] = {
    "id_tap": _id_tap,
    "id_print": _id_print,
    "call": _call,
    "barrier_wait": _barrier,
    "stop_outfeed_receiver": _barrier,
}
_NOTES: dict[tuple[str, ...], str] = {
    ("id_tap",): "id_tap: the function of jaxcb.debug_callback gets no transforms, so remove that "
    "parameter; under vmap it gets one batch element at a time. @jaxcb.tap passes transforms and "
    "the whole batch.",
    ("id_print",): "id_print: under vmap, jaxcb.debug_print prints one batch element at a time; "
    'for the whole batch, pass vmap_method="expand_dims" instead of ordered=True.',
    ("id_tap", "id_print"): "JAX refuses debug_callback and debug_print with ordered=True in "
    "programs over several devices, such as a pmap; @jaxcb.tap works there.",
    ("call",): "call: jaxcb.io_callback has no order with taps and prints.",
}
_ERRORS = "keep it; other callbacks raise jax.errors.JaxRuntimeError, see jaxcb.host_error"
_OTHERS = {
    "CallbackException": _ERRORS,
    "TapFunctionException": _ERRORS,
    "CallbackFlavor": "keep it, or remove it: it has no effect",
    "flags": "keep it",
    "host_callback": "keep it",
    "in a string": f"change it: the module is {OURS}.{NAME}, and its options are in its flags",
    **dict.fromkeys(_CALLS, "keep it"),
}
_UNKNOWN = f"remove it: it was not public in {NAME}, and {OURS} does not have it"


def _line(text: str) -> str:
    """Join the lines of a text."""
    return " ".join(text.split())
