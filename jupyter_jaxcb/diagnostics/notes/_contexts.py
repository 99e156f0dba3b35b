"""Count the steps of loops, and mark the branches, around the code that is being traced.

While a block watches, the bodies of `jax.lax.scan` and `while_loop` get the number of the step as
an additional argument, and the branches of `cond` and `switch` know their predicate. Under vmap,
JAX computes every branch for all batch elements, and the body of a loop for the finished ones too;
the predicate says for which elements the values count.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ... import jax_compat

# What the block watches, and the number of the context; None outside. JAX's caches depend on it, so
# that what was traced before is traced again, and what is traced inside is not used outside.
key: Any = jax.make_user_context(None)
_numbers = itertools.count(1)


class Context(NamedTuple):
    """A loop or a branch that is being traced."""

    length: int | None  # how many steps the loop has, as far as that is known
    step: Any  # the number of the step; None in a branch
    mask: Any  # whether the values count, with those of the contexts around it; None if all do
    trace: Any  # the trace of the body
    number: int


class _Now(threading.local):
    contexts: tuple[Context, ...] = ()  # outermost first
    paused: bool = False


_now = _Now()
_BODIES: set[CodeType] = set()


def is_watching() -> bool:
    """Return whether this thread traces the user's code inside a block that watches."""
    return key.value is not None and not _now.paused


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Do not watch the operations of this package."""
    before, _now.paused = _now.paused, True
    try:
        yield
    finally:
        _now.paused = before


def contexts(frame: FrameType | None) -> tuple[tuple[Context, ...], bool]:
    """Return the loops and branches around what is traced now, outermost first.

    Args:
        frame: the code that makes the bind, outside of the bind itself.

    Returns:
        The contexts, and whether they are all: code that JAX traces on its own, such as the
        backward rule of a `custom_vjp` in a loop that is differentiated as a whole, must not use
        values of the loop.
    """
    found = _now.contexts
    if found and jax_compat.jaxpr_trace() is found[-1].trace:
        return found, True
    while frame is not None and frame.f_code not in _BODIES:
        if jax_compat.runs_rules(frame) or jax_compat.is_transposing(frame.f_code):
            return (), False
        frame = frame.f_back
    return found, True


@contextlib.contextmanager
def _inside(step: Any = None, mask: Any = None, length: int | None = None) -> Iterator[None]:
    """Add a context around the body that is being traced."""
    (outer, _), before = contexts(sys._getframe(1)), _now.contexts
    around = outer[-1].mask if outer else None
    if mask is None:
        mask = around
    elif around is not None:
        with paused():
            mask = jnp.logical_and(around, mask)
    options, number = key.value[0], next(_numbers)
    _now.contexts = (*outer, Context(length, step, mask, jax_compat.jaxpr_trace(), number))
    try:
        # A number of its own: a function that is jitted and used in several bodies must not be
        # taken from JAX's cache, because its jaxpr contains the step of one of them.
        with key((options, number)):
            yield
    finally:
        _now.contexts = before


def _scan(original: Callable[..., Any]) -> Callable[..., Any]:
    def scan(f: Any, init: Any, xs: Any = None, length: Any = None, *args: Any, **kw: Any) -> Any:
        count = _length(xs, length) if is_watching() else None
        if count is None:
            return original(f, init, xs, length, *args, **kw)
        reverse = args[0] if args else kw.get("reverse", False)
        steps = np.arange(count, dtype=np.int32)[:: -1 if reverse else 1]

        def body(carry: Any, numbered: Any) -> Any:
            step, x = numbered
            with _inside(step, length=count):
                return f(carry, x)

        return original(_as(f, body), init, (steps, xs), length, *args, **kw)

    return scan


def _as(function: Any, body: Any) -> Any:
    """Remember that `body` runs the user's function, and give it its name."""
    # Without its attributes: JAX keeps there what it knows of the user's arguments.
    return functools.wraps(function, updated=())(as_body(body))


def as_body(body: Any) -> Any:
    """Remember that `body` is traced inside the contexts of its caller; return it."""
    _BODIES.add(body.__code__)
    return body


def _length(xs: Any, length: Any) -> int | None:
    """Return the number of steps; None if JAX is going to refuse the arguments."""
    try:
        found = {int(leaf.shape[0]) for leaf in jax.tree.leaves(xs)}
        found |= set() if length is None else {int(length)}
        (count,) = found
    except (AttributeError, IndexError, TypeError, ValueError):
        return None
    return count


def _while_loop(original: Callable[..., Any]) -> Callable[..., Any]:
    def while_loop(cond_fun: Any, body_fun: Any, init_val: Any) -> Any:
        if not is_watching():
            return original(cond_fun, body_fun, init_val)

        def cond(numbered: Any) -> Any:
            step, value = numbered
            with _inside(step):
                return cond_fun(value)

        def body(numbered: Any) -> Any:
            step, value = numbered
            with _inside(step, _unfinished(cond_fun, value)):
                out = body_fun(value)
            with paused():
                return step + 1, out

        cond, body = _as(cond_fun, cond), _as(body_fun, body)
        try:
            return original(cond, body, (np.int32(0), init_val))[1]
        except TypeError:  # JAX's message about the user's carry, without the step in it
            return original(cond_fun, body_fun, init_val)

    return while_loop


def _unfinished(cond_fun: Any, value: Any) -> Any:
    """Return whether the loop goes on: the same as True, except for batch elements under vmap.

    None if the predicate has effects, which must not happen twice.
    """
    with paused():
        if jax.make_jaxpr(cond_fun)(value).effects:
            return None
        return cond_fun(value)


def _cond(original: Callable[..., Any]) -> Callable[..., Any]:
    def cond(pred: Any, true_fun: Any, false_fun: Any, *operands: Any, **kw: Any) -> Any:
        if is_watching() and callable(true_fun) and callable(false_fun) and _is_traced(pred):
            with paused():
                holds = pred != 0
                masks = holds, jnp.logical_not(holds)
            true_fun, false_fun = map(_branch, (true_fun, false_fun), masks)
        return original(pred, true_fun, false_fun, *operands, **kw)

    return cond


def _switch(original: Callable[..., Any]) -> Callable[..., Any]:
    def switch(index: Any, branches: Any, *operands: Any, **kw: Any) -> Any:
        if is_watching() and all(map(callable, branches)) and _is_traced(index):
            with paused():
                number = jnp.clip(index, 0, len(branches) - 1)
                masks = [number == n for n in range(len(branches))]
            branches = [*map(_branch, branches, masks)]
        return original(index, branches, *operands, **kw)

    return switch


def _is_traced(value: Any) -> bool:
    return isinstance(value, Tracer) and value.ndim == 0


def _branch(function: Any, mask: Any) -> Any:
    def branch(*operands: Any) -> Any:
        with _inside(mask=mask):
            return function(*operands)

    return _as(function, branch)


_originals: dict[str, Callable[..., Any]] = {}


def original(name: str) -> Callable[..., Any]:
    """Return JAX's function `name`, which adds no context."""
    return _originals.get(name) or getattr(jax.lax, name)


def _keeping(name: str, wrap: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(function: Callable[..., Any]) -> Callable[..., Any]:
        _originals[name] = function
        return wrap(function)

    return wrapper


_wrappers = {"scan": _scan, "while_loop": _while_loop, "cond": _cond, "switch": _switch}
WRAPPERS = {name: _keeping(name, wrap) for name, wrap in _wrappers.items()}


def unwatched(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`, which runs, and what it returns, as outside of the block."""

    @functools.wraps(function)
    def outside(*args: Any, **kw: Any) -> Any:
        with key(None):
            out = function(*args, **kw)
        return unwatched(out) if callable(out) else out

    return outside
