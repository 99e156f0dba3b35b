"""Check the options of ``%%jax_callback`` before the cell runs."""

from __future__ import annotations

import argparse
import ast
import builtins
import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument

from ... import register, stack
from ...stack import INFER, did_you_mean, nothing_in, rows, scalar_of

FLAVORS: Mapping[str, Callable[..., Any]] = {
    flavor: getattr(register, flavor) for flavor in stack.FLAVORS
}
_ROWS = dict(rows())
# The options of each flavor, by their names in the parsed arguments.
_TAKES = {
    flavor: {*inspect.signature(decorator).parameters} - {"function"}
    for flavor, decorator in FLAVORS.items()
}
_RULED = ("pure", "buffer")  # flavors that take a derivative rule
_LEAST_SECONDS = 1  # between two looks at what runs
_OF_PARAMETERS = {"--gradient", "--linear"}
_RESULT_SCOPE = {"jax", "jnp", "np"}  # names that every result expression may use


def option_arguments(magic: Callable[..., Any]) -> Callable[..., Any]:
    """Give a magic the options of callbacks, as a decorator."""
    for name, row in reversed(_ROWS.items()):
        if row.help:
            option, how = _spelled(name), {}
            if row.kind == "flag":
                how = {"action": f"store_{str(not row.default).lower()}", "dest": name}
            text = f"{', '.join(row.flavors)}: {row.help}"
            magic = argument(option, help=text, **how)(magic)
    return magic


def _is_on(name: str) -> bool:
    """Return whether an option is a flag that is on unless it is given."""
    return name in _ROWS and _ROWS[name].default is True


def _spelled(name: str) -> str:
    """Return the option of the magic for one of callbacks: ``--no-rematerialize``."""
    return f"--{'no-' * _is_on(name)}{name.replace('_', '-')}"


def option_names(magic: Any) -> list[str]:
    """Return the options of `magic`, such as ``"--result"``."""
    return [name for action in magic.parser._actions for name in action.option_strings]


def option_hint(line: str, known: Collection[str]) -> str:
    """Guess what is wrong with a line that cannot be parsed: a typo, or missing quotes.

    Args:
        line: the line of the magic.
        known: the options of the magic.
    """
    given = [word.partition("=")[0] for word in line.split() if word.startswith("--")]
    wrong = [option for option in given if option not in known]
    if wrong:
        return did_you_mean(wrong[0], known)
    if "--vjp" in given:
        return ". Name both functions of the rule: --vjp FORWARD BACKWARD."
    words = line.split()
    for option in _OF_PARAMETERS & {*words}:
        if not any(word.startswith("--") for word in words[words.index(option) + 1 :][:2]):
            return f". Write several parameters without spaces, as in {option} a,b."
    if "--result" in given:
        return '. Put an expression with spaces into quotes, as in --result "(x, x)".'
    return "."


def rules_of(options: argparse.Namespace) -> list[tuple[str, list[str]]]:
    """Return the callback's methods for the rules in the line, each with the rule's functions.

    Raises:
        UsageError: the line has more than one derivative, or the rule of a linear function without
            ``--linear``.
    """
    given = [
        f"--{name}" for name in ("jvp", "vjp", "residual", "derivative") if getattr(options, name)
    ]
    if len(given) > 1:
        raise UsageError(
            f"{given[0]} does not go with {given[1]}: a function has only one derivative. Remove "
            "one of them."
        )
    for name in ("transpose", "residual"):
        if getattr(options, name) and not options.linear:
            raise UsageError(
                f"--{name} needs --linear: it is for functions that are linear in an argument. Add "
                "--linear with the name of that parameter, as in --linear b."
            )
    rules = [
        (f"def{name}", [getattr(options, name)])
        for name in ("jvp", "transpose", "residual")
        if getattr(options, name)
    ]
    return [*rules, ("defvjp", options.vjp)] if options.vjp else rules


def unquoted(word: str) -> str:
    """Remove the quotes that IPython leaves around an option's value."""
    if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"":
        return word[1:-1]
    return word


_OF_EVERY_TAP = {
    "ordered": "a tap is always in order. Remove it",
    "vmap_method": "a tap always gets the whole batch in one call. Remove it, or register the "
    "function as debug to choose",
}


def decorator_of(
    options: argparse.Namespace, namespace: Mapping[str, Any]
) -> tuple[Callable[[Any], Any], str | None]:
    """Return the decorator for the line, and the result that it declares.

    Args:
        options: the parsed line.
        namespace: the user's namespace, in which ``--executor`` may name a variable.

    Raises:
        UsageError: the flavor is unknown, the flavor does not take an option, or a value is
            refused; the message says what to type instead.
    """
    flavor = options.flavor
    if flavor not in FLAVORS:
        wrong = (
            f"unknown flavor {flavor!r}{did_you_mean(flavor, FLAVORS)}" if flavor else "no flavor."
        )
        raise UsageError(f"{wrong} Write %%jax_callback followed by one of {', '.join(FLAVORS)}.")
    known = set().union(*_TAKES.values())
    given = {
        name: _value(name, value, namespace)
        for name, value in vars(options).items()
        if name in known and value is not None and value is not _is_on(name)
    }
    for name in given.keys() - _TAKES[flavor]:
        if flavor == "tap" and name in _OF_EVERY_TAP:
            raise UsageError(f"{_spelled(name)} does not go with tap: {_OF_EVERY_TAP[name]}.")
        *others, last = fitting = [other for other, takes in _TAKES.items() if name in takes]
        raise UsageError(
            f"{_spelled(name)} does not go with {flavor}: it is for "
            f"{' and '.join(filter(None, [', '.join(others), last]))}. Remove it, or register the "
            f"function as {fitting[0]}."
        )
    try:
        decorator = FLAVORS[flavor](**given) if given else FLAVORS[flavor]
    except (TypeError, ValueError, ImportError) as error:
        raise UsageError(str(error)) from None
    return decorator, given.get("result")


def _value(name: str, given: Any, namespace: Mapping[str, Any]) -> Any:
    """Convert the value of an option: to a number, a variable of the user, or unquoted text."""
    kind = _ROWS[name].kind if name in _ROWS else "text"
    if kind == "flag":
        return given
    text = unquoted(given)
    try:
        if kind in ("integer", "number"):
            return int(text) if kind == "integer" else float(text)
    except ValueError:
        return text  # the decorator refuses it
    if kind == "variable":
        return namespace.get(text, text) if text.isidentifier() else text
    return text


def chosen_functions(
    names: list[str], functions: Mapping[str, ast.FunctionDef], line: str
) -> list[ast.FunctionDef]:
    """Return the functions of the cell to register: those in `names`, or all.

    Newer Pythons take a word behind an option for a name, too, so `line` tells what was meant.

    Raises:
        UsageError: the cell has no functions, or lacks one of `names`.
    """
    if not functions:
        raise UsageError(
            "no function in this cell: %%jax_callback registers functions defined at top level "
            "with def (not lambda, not async def). Put a def below it."
        )
    for name in names:
        if name not in functions:
            given = [word for word in line.split() if word.startswith("--")]
            is_behind = given and name in line.partition(given[0])[2].split()
            hint = option_hint(line, given).removeprefix(".") if is_behind else ""
            raise UsageError(
                f"no function {name!r} in this cell{did_you_mean(name, functions)} It defines "
                f"{', '.join(functions)}.{hint}"
            )
    return [functions[name] for name in names] if names else list(functions.values())


def check_rules(
    rules: Sequence[tuple[str, list[str]]],
    flavor: str,
    chosen: list[ast.FunctionDef],
    functions: Mapping[str, ast.FunctionDef],
) -> list[ast.FunctionDef]:
    """Return the single function to register, whose rules `rules` name; all without rules.

    Raises:
        UsageError: a function of a rule is missing, or it is unclear whose rule it is.
    """
    if not rules:
        return chosen
    for method, rule in rules:
        option = f"--{method.removeprefix('def')}"
        if flavor not in _RULED:
            raise UsageError(
                f"{option} does not go with {flavor}: it is for {' and '.join(_RULED)}."
            )
        for name in rule:
            if name not in functions:
                raise UsageError(
                    f"no function {name!r} in this cell{did_you_mean(name, functions)}"
                )
        if len(set(rule)) < len(rule):
            raise UsageError(
                f"{option} takes two different functions, not {rule[0]} twice. Write {option} "
                "FORWARD BACKWARD: forward(*args) -> (out, residuals), backward(residuals, "
                "cotangent) -> cotangents."
            )
    named = {name for _, rule in rules for name in rule}
    others = [function for function in chosen if function.name not in named]
    if len(others) != 1:
        names = ", ".join(function.name for function in others) or "none"
        given = " ".join(
            word for method, rule in rules for word in (f"--{method.removeprefix('def')}", *rule)
        )
        raise UsageError(
            f"{given} is for one function, but the cell registers {names}. Name the function: "
            f"%%jax_callback {flavor} NAME {given} ..."
        )
    return others


def check_declared(flavor: str, function: ast.FunctionDef) -> None:
    """Check that a function without ``--result`` has an annotation for its result.

    Raises:
        UsageError: it has none.
    """
    if flavor == "buffer" and any(a.annotation for a in _parameters(function)[:1]):
        return
    if "result" in _TAKES[flavor] and (function.returns is None or flavor == "buffer"):
        annotation = 'out: Float[Array, "n"]' if flavor == "buffer" else '-> Float[Array, "n"]'
        raise UsageError(
            f"{flavor} needs --result: what {function.name} returns, as an expression over its "
            'parameters (--result x, --result "(x, x.shape[:1])")'
            + (", or --result None" if flavor == "io" else "")
            + f"; or an annotation {annotation} (from jaxtyping import Array, Float)."
        )


def check_result(
    result: str, flavor: str, function: ast.FunctionDef, defined: Collection[str], alone: bool
) -> None:
    """Check that a result expression can be evaluated for `function`.

    Args:
        result: the expression.
        flavor: flavor of the callback.
        function: the function to register.
        defined: names defined in the namespace and the cell.
        alone: whether it is the only function in its cell.

    Raises:
        UsageError: it is not an expression, or uses a name that is neither a parameter nor defined.
    """
    try:
        expression = ast.parse(result, mode="eval")
    except SyntaxError as error:
        raise UsageError(
            f"--result {result!r} is not a Python expression: {error.msg}. Write an expression "
            "over the parameters, in quotes if it has spaces."
        ) from None
    if result == INFER:
        return
    nothing = nothing_in(result) if flavor == "pure" else None
    if nothing:
        raise UsageError(
            f"--result {result} {nothing}, and does not go with pure: JAX never calls a pure "
            "callback whose result is unused. Register it as io, which is called as often as the "
            "program says, or as debug, which only inspects values."
        )
    parameters = [a.arg for a in _parameters(function)][flavor == "buffer" :]
    scalar = None if result in {*parameters, *defined} else scalar_of(result)
    if scalar:
        raise UsageError(
            f"--result {result} is not defined. Write --result {scalar} for a scalar, or "
            f'"jax.ShapeDtypeStruct({[*parameters, "x"][0]}.shape, {scalar})" for an array.'
        )
    known = {*parameters, *_RESULT_SCOPE, *defined, *vars(builtins)}
    bound = {  # by the expression itself: comprehensions and lambdas
        node.id if isinstance(node, ast.Name) else node.arg
        for node in ast.walk(expression)
        if (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        or isinstance(node, ast.arg)
    }
    for node in ast.walk(expression):
        if isinstance(node, ast.Name) and node.id not in known | bound:
            raise UsageError(
                f"--result {result!r} uses {node.id!r}, which is not defined"
                f"{did_you_mean(node.id, parameters)} The parameters of {function.name} are "
                f"{', '.join(parameters) or 'none'}{_written_first(flavor, function)}."
                + ("" if alone else _or_name_others(function))
            )


def _or_name_others(function: ast.FunctionDef) -> str:
    return (
        f" If {function.name} is not a callback, name the callbacks: %%jax_callback FLAVOR NAME ..."
    )


def _written_first(flavor: str, function: ast.FunctionDef) -> str:
    if flavor != "buffer":
        return ""
    if len(parameters := _parameters(function)) == 1:
        only = parameters[0].arg
        return f". The first one, {only}, is the output: write def {function.name}(out, {only})"
    return f" after the output, which it writes into: def {function.name}(out, ...)"


def _parameters(function: ast.FunctionDef) -> list[ast.arg]:
    arguments = function.args
    more = [a for a in (arguments.vararg, arguments.kwarg) if a]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *more]


def seconds_of(text: str) -> float:
    """Parse the seconds of ``--wait``."""
    seconds = _finite(text)
    if seconds is None or seconds < 0:
        raise UsageError(
            f"--wait takes seconds, 0 or more, not {text!r}. Write %jax_callbacks --wait 5, or 0 "
            "to not wait."
        )
    return seconds


def stacks_after(text: str) -> float | None:
    """Parse the seconds of ``--stacks-after``; None: off."""
    if text == "off":
        return None
    seconds = _finite(text)
    if seconds is None or seconds < _LEAST_SECONDS:
        raise UsageError(
            f"--stacks-after takes {_LEAST_SECONDS} second or more, or off, not {text!r}. Write "
            "%jax_callbacks --stacks-after 30."
        )
    return seconds


def _finite(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
