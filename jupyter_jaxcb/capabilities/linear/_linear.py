"""What is declared of a linear host function, and how the arguments of its transpose follow."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from typing import Any

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
    """A host function that is linear in some of its parameters, jointly: the vectors.

    Attributes:
        host: the host function.
        options: the options of its calls.
        names: the parameters in which it is linear, in the user's order.
        leading: the number of parameters before the arguments of a call: the output.
        transposed: its transpose; None: there is none.
        original: the function of which it is the transpose. A transpose takes the cotangent in the
            place of the first linear parameter, and not the other ones.
        by_others: the derivative of the original by all arguments, see `_by_others`.
    """

    host: HostFunction
    options: options.Options
    names: tuple[str, ...]
    leading: int = 0
    transposed: Linear | None = None
    original: Linear | None = None
    by_others: Callable[..., Any] | None = None

    @property
    def first(self) -> str:
        """The first parameter of its calls in which it is linear."""
        return next(name for name in self.signature.parameters if name in self.names)

    @property
    def signature(self) -> inspect.Signature:
        """The parameters of its calls; of a transpose, under the names of its original."""
        if self.original is None:
            return signature_of(self.host.current, self.leading)
        left_out = {*self.original.names} - {*self.names}
        known = self.original.signature.parameters.values()
        return inspect.Signature([each for each in known if each.name not in left_out])

    def arguments(
        self, callback: Any, operands: Sequence[Any]
    ) -> tuple[dict[str, Any], Sequence[Any]]:
        """Return the arguments of a call by parameter, and the operands behind them: a mask.

        Args:
            callback: the callback of the call.
            operands: its operands, or what takes their places.
        """
        leaves, behind = callback.leaves(operands)
        args, kwargs = tree_unflatten(callback.in_tree, leaves)
        return self.signature.bind(*args, **kwargs).arguments, behind

    def places(self, callback: Any) -> list[int]:
        """Return which operands of a call it is linear in, in the order of `names`."""
        count = callback.in_tree.num_leaves - len(callback.static.values)
        values, _ = self.arguments(callback, range(count))
        return [n for n in tree_leaves(self.vectors(values)) if type(n) is int]

    def vectors(self, values: Mapping[str, Any]) -> Any:
        """Return the arguments that it is linear in: one pytree, or a tuple of several."""
        vectors: Any = tuple(values[name] for name in self.names)
        return vectors if len(vectors) > 1 else vectors[0]

    def with_vectors(self, values: Mapping[str, Any], vectors: Any) -> dict[str, Any]:
        """Return arguments with others that it is linear in, as `vectors` returns them.

        Args:
            values: the arguments of a call of this function, or of its transpose.
            vectors: what replaces those that it is linear in.
        """
        given = (vectors,) if len(self.names) == 1 else vectors
        kept = {name: x for name, x in values.items() if name in self.signature.parameters}
        return kept | dict(zip(self.names, given, strict=True))

    def call(self, values: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the positional and the keyword arguments of a call."""
        bound = inspect.BoundArguments(self.signature, dict(values))  # type: ignore[arg-type]
        return bound.args, bound.kwargs


def linear_in(host: HostFunction, given: options.Options, leading: int = 0) -> Linear:
    """Note in which parameters a host function is linear, as its options say.

    Raises:
        ValueError: if it has no such parameter, or one that cannot be linear.
    """
    __tracebackhide__ = True
    names = tuple((given.linear or "").split(", "))
    made = Linear(host, given, names, leading)
    try:
        parameters = made.signature.parameters
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
        before = itertools.takewhile(lambda other, name=name: other != name, parameters)
        optional = [other for other in before if parameters[other].default is not Parameter.empty]
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
    if original.options.linear_self_adjoint:
        raise TypeError(
            f"cannot define a transpose of {original.host.name}: linear_self_adjoint=True says "
            "that it is its own adjoint. Drop one of the two."
        )
    names = original.names
    made = Linear(host, original.options, (original.first,), original.leading, original, original)
    made.options = _divided_as(original, made)
    known = made.signature.parameters.values()
    given = [each for each in known if each.default is Parameter.empty]
    if all(each.kind in _POSITIONAL for each in given):
        check_takes(
            host.current,
            [each.name for each in given],
            f"the transpose of {original.host.name}",
            f"the arguments of {original.host.name}, with the cotangent of the result in the place "
            f"of {', '.join(names)}",
            original.leading,
        )
    original.transposed = host.derivative = made
    what = f"that of {names[0]}" if len(names) == 1 else f"a tuple of those of {', '.join(names)}"
    places = "".join(f"; [{n}] is that of {name}" for n, name in enumerate(names) if names[1:])
    host.because = (
        f"It is the transpose of {original.host.name}: it takes the cotangent of the result and "
        f"returns {what}, with the same shapes and dtypes{places}."
    )
    return made


def _divided_as(original: Linear, made: Linear) -> options.Options:
    """Return the options of a transpose, where ``partitioned=`` has the names of its parameters.

    Its results are the linear arguments. If one of them has no rows, nothing is divided.
    """
    given = original.options
    if not isinstance(given.partitioned, tuple):
        return given
    try:
        own = signature_of(made.host.current, made.leading).parameters
    except (TypeError, ValueError):  # unknown
        own = {}
    if not own or not {*original.names} <= {*given.partitioned}:
        return dataclasses.replace(given, partitioned=False)
    renamed = zip(made.signature.parameters, own, strict=False)
    names = tuple(name for before, name in renamed if before in given.partitioned)
    return dataclasses.replace(given, partitioned=names)


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
