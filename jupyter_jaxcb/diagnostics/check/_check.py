"""Check the contract of a host function by running it."""

from __future__ import annotations

import contextlib
import numbers
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import numpy as np
from jax.tree_util import tree_flatten, tree_leaves, tree_unflatten

from ... import jax_compat
from ...capabilities.lint import impurities, jax_inside
from ...recording import Check, Checks, Finding, Frame, on_one_line
from ...register import Callback, watching_calls
from ...stack.call import name_of
from ...stack.errors import message_of
from ...stack.results import ResultError, kind_of
from ...stack.trace import enabled, is_cell
from ..record import Unrecorded
from ._batches import check_rows, check_vmap
from ._derivative import check_derivative
from ._linear import check_linear
from ._subject import (
    EXACT,
    REPEATED,
    SECONDS,
    OutOfTime,
    Subject,
    Wrong,
    clock,
    difference,
    one_line,
)
from ._threads import check_threads, threads_of

_DISTINCT = 1e-13  # relative difference from which on numbers in float64 are not rounding errors
_COPY = (
    "Copy an argument before writing to it, as in np.array(x), or register the function as buffer, "
    "which writes into its result."
)


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
            checked(Subject(f, args, kwargs, tolerance)) for f, (args, kwargs) in known.items()
        ]
        reasons = {f.host.name: why for f, why in left_out.items()}
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


def checked(subject: Subject) -> Check:
    """Run the checks of one callback, one after the other."""
    entries: dict[str, list[Any]] = {}  # findings, and reasons why something was not checked
    options = {None: True, **subject.settings}
    options["threads"] = threads_of(subject.settings.get("executor"))
    rows = [row for row in _CHECKS if options.get(row[2])]
    if subject.has_effects:  # it is run once
        rows = [row for row in rows if row[1] in (_first_result, check_threads)]
    is_repeatable = True
    with contextlib.nullcontext() if subject.has_effects else _silent(subject.printed):
        for kind, check, _ in rows:
            if entries.get(kind):
                continue
            if subject.result is None and entries.get(_RESULT) and not subject.has_effects:
                break
            is_first, found = kind not in entries, entries.setdefault(kind, [])
            if kind in _COMPARING and not is_repeatable:
                continue
            try:
                for entry in check(subject):
                    found.append(Finding(kind, *entry) if type(entry) is tuple else entry)
            except OutOfTime as error:
                found += [str(error)] if is_first else []
            is_repeatable &= kind != _TWICE or not any(type(x) is Finding for x in found)
    if not is_repeatable:  # which is why other results differ
        reason = ["its results are not repeatable"]
        entries |= {kind: reason for kind in _COMPARING if kind in entries}
        subject.vmap_methods.clear()
    reasons = {kind: "; ".join(x for x in entries[kind] if type(x) is str) for kind in entries}
    return Check(
        subject.name,
        subject.callback.flavor,
        tuple(x for found in entries.values() for x in found if type(x) is Finding),
        tuple(kind for kind, found in entries.items() if not found),
        {kind: words for kind, words in reasons.items() if words},
        subject.vmap_methods,
        tuple(subject.notes),
    )


def _source(subject: Subject) -> Iterator[Wrong]:
    for impurity in impurities(subject.callback.host.current, subject.leading):
        yield f"it {impurity.does}: {impurity.what}, {impurity.place.where}", f"{impurity.advice}."


def _first_result(subject: Subject) -> Iterator[Wrong | Finding]:
    """Run it for the first time, and keep its result."""
    try:
        subject.result = subject.run()
    except ResultError as error:
        yield str(error), "Declare what it returns, or return what it declares."
    except Exception as error:
        if isinstance(error, ValueError) and "read-only" in message_of(error):
            what = f"it fails on read-only arrays: {message_of(error)}"
            yield Finding("inputs unchanged", what, _COPY)
        else:
            advice = "Call the undecorated function with NumPy arrays to see where."
            yield f"it fails on these arguments: {one_line(error)}", advice
    else:
        subject.notes += _lost_digits(subject)


def _lost_digits(subject: Subject) -> Iterator[str]:
    """Note where distinct numbers in float64 become equal in the declared dtype."""
    leaves = tree_leaves(subject.returned)
    for returned, x, path in zip(leaves, subject.result or (), subject.paths, strict=False):
        if kind_of(x.dtype) == "f" and np.asarray(returned).dtype == np.float64 != x.dtype:
            numbers = np.sort(np.asarray(returned), axis=None)
            with np.errstate(all="ignore"):
                rounded = numbers.astype(x.dtype)
                gaps = np.diff(numbers) > _DISTINCT * np.abs(numbers[1:])
            lost = np.flatnonzero(gaps & (rounded[1:] == rounded[:-1]))
            if lost.size:
                low, high = numbers[lost[0] : lost[0] + 2].tolist()
                yield (
                    f"it returns float64{path and f' at {path}'}, and {x.dtype} is declared: "
                    f"{low!r} and {high!r} both become {rounded[lost[0]]}"
                )


def _again(subject: Subject, when: str = "") -> list[Wrong]:
    """Run it again on the same inputs."""
    try:
        wrong = difference(subject.run(), subject.result or (), subject.paths, REPEATED)
        what = f"returns {wrong}" if wrong else ""
    except Exception as error:
        what = f"fails: {one_line(error)}"
    advice = "Register it as io, which is called as often as the program says, or pass what "
    advice += "changes as an argument."
    return [(f"a second call with the same inputs{when} {what}", advice)] if what else []


def _twice(subject: Subject) -> list[Wrong]:
    others = " after calls with other arguments"  # which it may remember
    return _again(subject) or (_again(subject, others) if subject.variants else [])


def _other_results(subject: Subject) -> Iterator[Wrong]:
    if subject.misfit:
        advice = "A compiled program has the same shapes and dtypes for all values: pad the"
        yield subject.misfit, f"{advice} result or convert it to what is declared."


def _inputs(subject: Subject) -> Iterator[Wrong]:
    """Run it on writable arrays."""
    operands = [array.copy() for array in subject.operands]
    try:
        subject.run(operands, writable=True)
    except Exception as error:
        if not _again(subject):  # else it fails on any arrays
            advice = "Accept both read-only arrays, as from programs, and writable ones."
            yield f"it fails on writable arrays: {one_line(error)}", advice
        return
    wrong = difference(operands, subject.operands, subject.names, EXACT)
    if wrong:
        yield f"after the call its input is {wrong}", _COPY


def _jax_inside(subject: Subject) -> Iterator[Wrong | str]:
    """Look for JAX in its code, and in what it does."""
    if subject.settings.get("arrays") == "jax":
        yield 'it is registered with arrays="jax"'
        return

    def call() -> None:
        with contextlib.suppress(Exception):  # reported by the checks that compare results
            subject.run()

    use: Any = jax_inside(subject.callback.host)
    seen = None if use else jax_compat.first_operation(call)
    if seen:
        use = Frame("", *seen, cell=is_cell(seen[0])).where
    if use:
        yield f"it uses JAX: {use}", "Use NumPy in the host function: JAX may deadlock there."


def _no_printing(subject: Subject) -> Iterator[Wrong | str]:
    line = "".join(subject.printed).strip().partition("\n")[0]
    if any(what.startswith("it prints") for what, _ in _source(subject)):
        yield "see source"
    elif line:
        advice = "Print in a debug callback (jaxcb.debug), or register it as io."
        yield f"it prints {line[:60]!r}", advice


_RESULT, _TWICE = "declared result", "same inputs twice"
# In the order in which they run, each with the option that it checks. A kind ends with its first
# finding; without a first result nothing else runs.
_CHECKS: tuple[tuple[str, Callable[[Subject], Iterable[Any]], str | None], ...] = (
    ("source", _source, None),
    (_RESULT, _first_result, None),
    (_TWICE, _twice, None),
    (_RESULT, _other_results, None),
    ("inputs unchanged", _inputs, None),
    ("no JAX inside", _jax_inside, None),
    ("vmap contract", check_vmap, None),
    ("derivative rule", check_derivative, None),
    ("linear", check_linear, "linear"),
    ("rows alone", check_rows, "partitioned"),
    (_TWICE, lambda subject: _again(subject, " after all other calls"), None),
    ("same in threads", check_threads, "threads"),  # may leave anything behind
    ("no printing", _no_printing, None),
)
_COMPARING = "vmap contract", "derivative rule", "linear", "rows alone", "same in threads"
_one_at_a_time = threading.RLock()  # sys.stdout is replaced for one check


@contextlib.contextmanager
def _silent(printed: list[str]) -> Iterator[None]:
    """Keep what this thread prints meanwhile in a list instead of showing it."""
    thread = threading.get_ident()

    class Output:
        def write(self, text: str) -> int:
            if threading.get_ident() != thread:
                return shown.write(text)
            printed.append(text)
            return len(text)

        def writelines(self, lines: Iterable[str]) -> None:
            for line in lines:
                self.write(line)

        def __getattr__(self, name: str) -> Any:
            return getattr(shown, name)

    output: Any = Output()
    with _one_at_a_time:
        shown = sys.stdout
        with contextlib.redirect_stdout(output):
            yield
