"""Check the contract of a host function by running it."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import jax
from jax.tree_util import tree_flatten, tree_unflatten

from ... import jax_compat
from ...recording import Check, Checks, on_one_line
from ...register import Callback, watching_calls
from ...stack.call import name_of
from ...stack.trace import enabled
from ..record import Unrecorded
from ._checks import checked
from ._subject import SECONDS, OutOfTime, Subject, clock, one_line


def check(
    callback: Callable[..., Any], *args: Any, tolerance: float = 0.0, **kwargs: Any
) -> Check | Checks:
    """Run a registered callback on these arguments and report where it breaks its contract.

    A pure callback is run about eight times: on the same inputs, on other inputs in between, on
    read-only and on writable arrays. It must return the same result for the same inputs, leave its
    inputs unchanged, return what it declares, and not use JAX. A buffer callback must also write
    its whole output. What this thread prints meanwhile is not shown, but for stderr. A callback of
    flavor io or debug, or with ``has_side_effect=True``, is run once.

    If its `vmap_method` passes whole batches, or if it is a ufunc, the function is run on about ten
    batches, whose results are compared with those of single calls. (A Python number among arrays is
    taken as unbatched.) With other methods it is not given batches, because it need not accept
    them.

    If it has a derivative rule, or returns its gradient, the derivative is compared with finite
    differences, which take five runs for each argument, or 15 if the function is not smooth. The
    first four arguments are checked one by one, the others together.

    If it is registered with ``linear=``, random combinations of vectors at three scales test
    whether it is linear, and ``sum(f(b) * ct) == sum(b * transposed(ct))`` whether its transpose is
    right: a wrong sign, a conjugate too many or too few, and the function itself are named as
    such. The derivative that follows from a residual is compared with differences, as a rule is.

    If it is registered with ``partitioned=``, it is called with the halves of the rows, and with
    each row if there are at most eight: parts must give the rows that all rows together give.

    If it is registered with ``executor="threads"``, or another pool of threads, it is called with
    up to three inputs at once in these threads, which take turns at each operation of Python. Each
    call must return what it returns alone.

    After ten seconds no further run begins, and the remaining checks are skipped. Nothing in this
    process is recorded during the check.

    Any other function (a lambda, a `functools.partial`, a jitted or transformed function) is run
    once, with ``jax.disable_jit``, to find the callbacks that it calls. Each of them is then
    checked on the arguments of its first call: under vmap those of the first batch element, under
    a derivative without tangents. What the function does with the results is not checked. Callbacks
    that it calls only while JAX traces (in a `jax.checkpoint`), taps, and callbacks that are not
    registered (`pure_callback`, JAX's own) are not checked either.

    Args:
        callback: a callback made by a decorator or ``%%jax_callback``, or a function that calls
            some.
        *args: positional arguments of the call to check.
        tolerance: the error that a derivative may have, relative to the slope and to the result:
            ``1e-3`` for a solver that stops at this accuracy. At least 0.007, which differences
            need, is allowed of the slope. Where a rule says that a result does not depend on an
            argument, such as the starting point of an iteration, a slope is accepted that is below
            the square root of the precision of the result.
        **kwargs: keyword arguments of the call to check.

    Returns:
        A `Check`, with `ok` and `findings`; for a function that calls callbacks `Checks`, which
        has these too.

    Raises:
        TypeError: `callback` neither is a registered callback nor calls one, or the arguments do
            not fit it.
        Exception: any error of a function that raises before it calls a callback.
        ValueError: its declared result cannot be evaluated for these arguments.

    >>> import numpy as np, jupyter_jaxcb as jaxcb
    >>> @jaxcb.pure(result="x", vmap_method="expand_dims")
    ... def scaled(x):
    ...     return x / x.max()
    >>> found = jaxcb.check(scaled, np.float32([1.0, 2.0]))
    >>> found.ok, found.findings[0].kind
    (False, 'vmap contract')
    """
    __tracebackhide__ = True
    if not isinstance(tolerance, numbers.Real) or not 0 <= tolerance < 1:
        raise ValueError(
            f"cannot check with tolerance={tolerance!r}: it is a relative error. Pass a number "
            "from 0 to below 1, such as 1e-3. (If the function has a parameter of that name, pass "
            "it by position.)"
        )
    if not callable(callback) or (isinstance(callback, Callback) and callback.flavor == "tap"):
        raise TypeError(
            f"cannot check {on_one_line(repr(callback))}: it is not a callback of flavor pure, "
            "buffer, io or debug. "
            "Write check(f, x) with a function f registered by @jaxcb.pure(...)."
        )
    with Unrecorded(), enabled():
        if isinstance(callback, Callback):
            return checked(Subject(callback, args, kwargs, tolerance))
        name, (known, left_out, rest) = name_of(callback), _calls_of(callback, args, kwargs)
        if not (known or left_out):
            raise TypeError(
                f"cannot check {name}: called with these arguments, it calls no registered "
                "callback of flavor pure, buffer, io or debug. Register the host function by "
                "@jaxcb.pure(...). Write check(f, x) with that callback, or a function that calls "
                "it."
            )
        checks = [
            checked(Subject(one, args, kwargs, tolerance)) for one, (args, kwargs) in known.items()
        ]
        reasons = {one.host.name: why for one, why in left_out.items()}
        if rest:
            reasons[f"what {name} calls next"] = rest
        return Checks(name, tuple(checks), reasons)


def _calls_of(function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, Any, str]:
    """Run a function once, with ``jax.disable_jit``, so that the arguments of calls have values.

    Returns:
        The arguments of the first call with values of each callback, why the other callbacks have
        no such call, and why the function did not run to its end; empty if it did.
    """
    known: dict[Callback, tuple[Any, Any]] = {}
    unknown: dict[Callback, str] = {}
    end, rest = clock() + SECONDS, ""

    def called(callback: Callback, args: Any, kwargs: Any, mask: Any) -> None:
        if clock() > end:
            raise OutOfTime(f"no time left after {SECONDS:.0f} s")
        if callback in known or callback.flavor == "tap":
            return
        leaves, tree = tree_flatten((args, kwargs))
        masks = mask, jax_compat.mask_of_rule()
        *values, needed, by_rule = map(jax_compat.first_value, (*leaves, *masks))
        if any(value is None for value in (*values, needed, by_rule)):
            why = "JAX traces all of its calls, as in jax.checkpoint, so its arguments have no "
            unknown.setdefault(callback, f"{why}values")
        elif not (needed and by_rule):
            unknown.setdefault(callback, "its mask is not true for the first batch element")
        else:
            unknown.pop(callback, None)
            known[callback] = tree_unflatten(tree, values)

    try:
        # Fresh, because a jax.checkpoint that is in JAX's caches does not call its function.
        with jax_compat.fresh_caches(), jax.disable_jit(), watching_calls(called):
            jax.block_until_ready(function(*args, **kwargs))
    except OutOfTime as error:
        rest = str(error)
    except Exception as error:
        if not (known or unknown):
            raise
        rest = f"it raised {one_line(error)}"
    return known, unknown, rest
