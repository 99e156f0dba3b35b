"""What is known of a linear host function, and how the arguments of its transpose follow."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from typing import Any, NamedTuple

from jax.tree_util import tree_leaves, tree_unflatten

from ...stack import options
from ...stack.call import HostFunction, did_you_mean, name_of, signature_of

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


@options.check("linear")
def _check_linear(linear: Any) -> str:
    """Return the names as one text: ``"b, c"``."""
    __tracebackhide__ = True
    given = linear.split(",") if isinstance(linear, str) else linear
    if not isinstance(given, Sequence) or not all(isinstance(name, str) for name in given):
        raise TypeError(
            f"cannot use linear={linear!r}: name the parameters in which the function is linear, "
            "as in linear='b' or linear='b,c'."
        )
    names = [name.strip() for name in given]
    wrong = [name for name in names if not name.isidentifier()]
    if wrong or not names or len({*names}) < len(names):
        raise ValueError(
            f"cannot use linear={linear!r}: it is no list of different parameters. Name each once, "
            "as in linear='b' or linear='b,c'."
        )
    return ", ".join(names)


for _option, _why, _fix in (
    (
        "derivative",
        "central differences would take the place of the transpose",
        "Drop derivative='finite', and differentiate by the other arguments with defjvp or "
        "defresidual.",
    ),
    ("gradient", "the derivative of a linear function is the function itself", "Drop gradient=."),
    (
        "has_side_effect",
        "a derivative calls it, or its transpose, as often as JAX needs them",
        "Drop has_side_effect=True.",
    ),
):
    options.refuse(_option, "linear", _why, _fix)


@dataclasses.dataclass(eq=False)
class Linear:
    """A host function that is linear in some of its parameters, jointly.

    Attributes:
        host: the host function.
        options: the options of its calls.
        names: the parameters in which it is linear, in the user's order.
        leading: the number of parameters before the arguments of a call: the output.
        transposed: its transpose; None: there is none.
        original: the function of which it is the transpose. A transpose takes the cotangent in the
            place of the first linear parameter, and not the other ones.
        by_others: its derivative by all arguments, a `Residual` or an `OwnRule`; None: there is
            none. That of a transpose is its original's.
    """

    host: HostFunction
    options: options.Options
    names: tuple[str, ...]
    leading: int = 0
    transposed: Linear | None = None
    original: Linear | None = None
    by_others: Any = None

    @property
    def is_self_adjoint(self) -> bool:
        """Whether it is its own adjoint: the conjugate of its transpose."""
        return self.options.linear_self_adjoint

    @property
    def first(self) -> str:
        """The first parameter of its calls in which it is linear."""
        return next(one.name for one in self.parameters() if one.name in self.names)

    def parameters(self) -> list[Parameter]:
        """Return the parameters of its calls; of a transpose, under the names of its original."""
        if self.original is None:
            signature = signature_of(self.host.current, self.leading)
            return list(signature.parameters.values())
        others = [one for one in self.original.names if one not in self.names]
        return [one for one in self.original.parameters() if one.name not in others]

    def arguments(self, callback: Any, operands: Sequence[Any]) -> Arguments:
        """Return the arguments of a call.

        Args:
            callback: the callback of the call.
            operands: its operands, or what takes their places.
        """
        static, count = callback.static.values, callback.in_tree.num_leaves
        rest = iter(operands)
        whole = [static[n] if n in static else next(rest) for n in range(count)]
        args, kwargs = tree_unflatten(callback.in_tree, whole)
        values = inspect.Signature(self.parameters()).bind(*args, **kwargs).arguments
        vectors: Any = tuple(values.pop(name) for name in self.names)
        return Arguments(values, vectors if len(vectors) > 1 else vectors[0], list(rest))

    def places(self, callback: Any) -> list[int]:
        """Return which operands of a call it is linear in, by the order of `names`."""
        count = callback.in_tree.num_leaves - len(callback.static.values)
        marks = [object() for _ in range(count)]
        leaves = tree_leaves(self.arguments(callback, marks).vectors)
        return [n for leaf in leaves for n, mark in enumerate(marks) if leaf is mark]

    def call(self, others: Mapping[str, Any], vectors: Any) -> tuple[tuple[Any, ...], dict]:
        """Return positional and keyword arguments of a call.

        Args:
            others: the arguments that it is not linear in, by parameter.
            vectors: those that it is linear in, as in `Arguments`.
        """
        given = (vectors,) if len(self.names) == 1 else vectors
        values = {**others, **dict(zip(self.names, given, strict=True))}
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        left_out = False  # a parameter: those after it are passed by keyword
        for one in self.parameters():
            if one.name not in values:
                left_out = left_out or one.kind in _POSITIONAL
            elif one.kind is Parameter.VAR_POSITIONAL:
                args += values[one.name]
            elif one.kind is Parameter.VAR_KEYWORD:
                kwargs |= values[one.name]
            elif one.kind is Parameter.KEYWORD_ONLY or left_out:
                kwargs[one.name] = values[one.name]
            else:
                args.append(values[one.name])
        return tuple(args), kwargs


class Arguments(NamedTuple):
    """The arguments of a call.

    Attributes:
        others: those that the function is not linear in, by parameter.
        vectors: those that it is linear in: one pytree, or a tuple of several.
        behind: operands that are not arguments: a mask.
    """

    others: dict[str, Any]
    vectors: Any
    behind: list[Any]


def linear_in(host: HostFunction, given: options.Options, leading: int = 0) -> Linear:
    """Note in which parameters a host function is linear, as its options say.

    Raises:
        ValueError: if it has no such parameter, or one that cannot be linear.
    """
    __tracebackhide__ = True
    names = tuple((given.linear or "").split(", "))
    made = Linear(host, given, names, leading)
    try:
        parameters = {one.name: one for one in made.parameters()}
    except (TypeError, ValueError):
        raise TypeError(
            f"cannot register {host.name} as linear: its parameters are unknown. Wrap it, as in "
            f"def solve(a, b): return {host.name}(a, b)."
        ) from None
    for name in names:
        if name not in parameters:
            raise ValueError(
                f"linear={given.linear!r} of {host.name}: it has no parameter {name!r}"
                f"{did_you_mean(name, parameters)} Its parameters are "
                f"{', '.join(parameters) or 'none'}."
            )
        before = itertools.takewhile(lambda one, name=name: one != name, parameters)
        optional = [one for one in before if parameters[one].default is not Parameter.empty]
        if parameters[name].kind not in _POSITIONAL or optional:
            raise ValueError(
                f"linear={given.linear!r} of {host.name}: {name} cannot be passed by position "
                "without passing optional parameters. Write it before these."
            )
    if given.linear_self_adjoint and len(names) > 1:
        raise ValueError(
            f"linear_self_adjoint=True of {host.name}: it is linear in {given.linear}, so its "
            "transpose takes one argument and returns several. Pass these as one pytree."
        )
    host.derivative = made
    return made


def transposed_by(original: Linear, host: HostFunction) -> Linear:
    """Make a host function the transpose of another one, and the other one its transpose."""
    __tracebackhide__ = True
    if original.is_self_adjoint:
        raise TypeError(
            f"cannot define a transpose of {original.host.name}: linear_self_adjoint=True says "
            "that it is its own adjoint. Drop one of the two."
        )
    made = Linear(host, _divided_as(original, host), (original.first,), original.leading)
    made.original = made.transposed = original
    given = [one for one in made.parameters() if one.default is one.empty]
    if all(one.kind in _POSITIONAL for one in given):
        check_takes(
            host.current,
            [one.name for one in given],
            f"the transpose of {original.host.name}",
            f"the arguments of {original.host.name}, with the cotangent of the result in the place "
            f"of {', '.join(original.names)}",
            original.leading,
        )
    original.transposed = host.derivative = made
    names = original.names
    what = f"that of {names[0]}" if len(names) == 1 else f"a tuple of those of {', '.join(names)}"
    places = "".join(f"; [{n}] is that of {name}" for n, name in enumerate(names) if names[1:])
    host.because = (
        f"It is the transpose of {original.host.name}: it takes the cotangent of the result and "
        f"returns {what}, with the same shapes and dtypes{places}."
    )
    return made


def _divided_as(original: Linear, host: HostFunction) -> options.Options:
    """Return the options of a transpose, where ``partitioned=`` has the names of its parameters.

    Its results are the linear arguments. If one of them has no rows, nothing is divided.
    """
    given = original.options
    if not isinstance(given.partitioned, tuple):
        return given
    if not {*original.names} <= {*given.partitioned}:
        return dataclasses.replace(given, partitioned=False)
    others = original.names[1:]
    replaced = [one.name for one in original.parameters() if one.name not in others]
    try:
        own = [*signature_of(host.current, original.leading).parameters]
    except (TypeError, ValueError):  # unknown
        return dataclasses.replace(given, partitioned=False)
    names = [new for old, new in zip(replaced, own, strict=False) if old in given.partitioned]
    return dataclasses.replace(given, partitioned=tuple(names))


def check_takes(
    function: Callable[..., Any], names: Sequence[str], what: str, given: str, leading: int = 0
) -> None:
    """Raise TypeError if a function does not take the arguments `names`, by position.

    Args:
        function: the function.
        names: the arguments, in words.
        what: what it is used as.
        given: what it gets.
        leading: the number of parameters before these.
    """
    __tracebackhide__ = True
    try:
        signature = signature_of(function, leading)
    except (TypeError, ValueError):  # unknown
        return
    try:
        signature.bind(*names)
    except TypeError as error:
        raise TypeError(
            f"cannot use {name_of(function)}{signature} as {what}: {error}. It gets {given}."
        ) from None
