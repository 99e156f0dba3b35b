"""Parse the call in ``%jax_explain f(x, y)`` and ``%jax_check f(x, y)``."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from IPython.core.error import UsageError

from ._options import did_you_mean

OPTIONS = ("--matrix", "--cost", "--jax")
_EXPLAIN = "%jax_explain"
_COLLECT = "_jaxcb_collect"
_FILE = "<%jax_explain>"


class CallArgument(NamedTuple):
    """A function and the arguments of the call."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def split_options(line: str) -> tuple[set[str], str]:
    """Split a line into the options before the call, and the call.

    Raises:
        UsageError: an option is unknown, or follows the call.
    """
    given, rest = set(), line.strip()
    while rest.startswith("--"):
        word, _, rest = rest.partition(" ")
        if word not in OPTIONS:
            raise UsageError(f"unknown option {word}{did_you_mean(word, OPTIONS)}")
        given.add(word)
        rest = rest.strip()
    behind = [option for option in OPTIONS if rest.endswith(f" {option}")]
    if behind:
        raise UsageError(f"write {behind[0]} before the call: %jax_explain {behind[0]} f(x)")
    return given, rest.removesuffix(";")


def call_argument(call: str, namespace: Mapping[str, Any], magic: str = _EXPLAIN) -> CallArgument:
    """Evaluate the function and the arguments of a call, without making the call.

    Args:
        call: ``f(x, n=2)``, ``jax.grad(f)(x)``.
        namespace: where its names are looked up.
        magic: name of the magic, for messages.

    Raises:
        UsageError: `call` is not a call.
        Exception: any error of evaluating its parts.
    """
    __tracebackhide__ = True
    made = " that is not executed" if magic == _EXPLAIN else ""
    if not call.strip():
        raise UsageError(f"{magic} takes a call{made}: write {magic} f(x, y).")
    try:
        tree = ast.parse(call.strip(), mode="eval")
    except SyntaxError as error:
        raise UsageError(
            f"{call!r} is not a Python expression: {error.msg}. Write a call, as in "
            f"{magic} f(x, y)."
        ) from None
    if not isinstance(tree.body, ast.Call):
        named = isinstance(tree.body, ast.Name | ast.Attribute)
        raise UsageError(
            f"{call!r} is not a call. Write the function with its arguments, as in "
            f"{magic} {call.strip() if named else 'f'}(x, y)."
        )
    function = ast.Expression(tree.body.func)
    tree.body.func = ast.copy_location(ast.Name(_COLLECT, ast.Load()), tree.body)
    names = {**namespace, _COLLECT: lambda *args, **kwargs: (args, kwargs)}
    linecache.cache[_FILE] = (len(call), None, [call + "\n"], _FILE)  # for a traceback
    args, kwargs = eval(compile(tree, _FILE, "eval"), names)
    return CallArgument(eval(compile(function, _FILE, "eval"), names), args, kwargs)
