"""Check the contract of a host function by running it."""

from __future__ import annotations

import contextlib
import functools
import numbers
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jax.tree_util import tree_leaves

from ... import jax_compat
from ...capabilities.lint import impurities, jax_inside
from ...recording import Check, Checks, Finding, Frame, on_one_line
from ...register import Callback
from ...stack.call import name_of
from ...stack.errors import message_of
from ...stack.results import ResultError, kind_of
from ...stack.trace import enabled, is_cell
from ..record import Unrecorded
from ._batches import ROWS, VMAP, rows_findings, vmap_findings
from ._calls_of import calls_of
from ._compare import REPEATED, difference
from ._derivative import KIND as DERIVATIVE
from ._derivative import derivative_findings
from ._elements import Elements
from ._linear import KIND as LINEAR
from ._linear import linear_findings
from ._subject import OutOfTime, Subject, one_line
from ._threads import KIND as THREADS
from ._threads import threads_findings, threads_of

_RESULT, _TWICE, _INPUTS = "declared result", "same inputs twice", "inputs unchanged"
_DISTINCT = 1e-13  # relative difference from which on numbers in float64 are not rounding errors
_WARNINGS = ("warnings", "_py_warnings")  # modules whose output is shown
_one_at_a_time = threading.RLock()  # streams are replaced for one check


def check(
    callback: Callable[..., Any], *args: Any, tolerance: float = 0.0, **kwargs: Any
) -> Check | Checks:
    """Run a registered callback on these arguments and report where it breaks its contract.

    A pure callback is run about ten times: on the same inputs, on other inputs in between, on
    read-only and on writable arrays. It must return the same result for the same inputs, leave its
    inputs unchanged, return what it declares, and not use JAX. A buffer callback must also write
    its whole output. Output that this thread prints during these runs is not shown. A callback of
    flavor io or debug is run once.

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
            return _checked(Subject(callback, args, kwargs), tolerance)
        calls, name = calls_of(callback, args, kwargs), name_of(callback)
        if not (calls.known or calls.unknown):
            raise TypeError(
                f"cannot check {name}: called with these arguments, it calls no registered "
                "callback of flavor pure, buffer, io or debug. Register the host function by "
                "@jaxcb.pure(...). Write check(f, x) with that callback, or a function that calls "
                "it."
            )
        subjects = [Subject(one, *given) for one, given in calls.known.items()]
        checks = [_checked(one, tolerance) for one in subjects]
        left_out = {one.host.name: why for one, why in calls.unknown.items()}
        if calls.rest:
            left_out[f"what {name} calls next"] = calls.rest
        return Checks(name, tuple(checks), left_out)


def _checked(subject: Subject, tolerance: float) -> Check:
    """Run the checks of one callback, one after the other."""
    findings: list[Finding] = []
    kept: list[str] = []
    left_out: dict[str, str] = {}
    notes: list[str] = []
    methods: dict[str, bool] = {}

    def run(kind: str, check: Callable[[], Iterator[Finding | str]]) -> bool:
        """Keep the findings of a check, or why something was not checked."""
        found: list[Finding | str] = []
        try:
            found.extend(check())
        except OutOfTime as error:
            found.append(str(error))
        wrong = [one for one in found if isinstance(one, Finding)]
        skipped = [one for one in found if isinstance(one, str)]
        findings.extend(wrong)
        if skipped:
            left_out[kind] = "; ".join(skipped)
        elif not wrong:
            kept.append(kind)
        return not wrong

    flavor = subject.callback.flavor
    in_threads = threads_of(subject.settings.get("executor")) > 0
    if flavor in ("io", "debug"):
        if in_threads:
            left_out[THREADS] = f"an {flavor} function is called once"
        run(_RESULT, lambda: _first_result(subject, [], notes))
        return Check(subject.name, flavor, tuple(findings), tuple(kept), left_out)

    result: list[np.ndarray] = []
    again = functools.partial(_again, subject, result)
    elements = functools.cache(lambda: Elements(subject))
    comparing: dict[str, Callable[[], Iterator[Finding | str]]] = {
        VMAP: lambda: vmap_findings(elements(), methods),
        DERIVATIVE: lambda: derivative_findings(subject, result, tolerance),
    }
    if subject.settings.get("linear"):
        comparing[LINEAR] = lambda: linear_findings(subject)
    if subject.settings.get("partitioned") and subject.avals:
        comparing[ROWS] = lambda: rows_findings(elements())
    with _printed() as text:
        repeatable = not subject.settings.get("has_side_effect")
        if repeatable:
            run("source", lambda: _source(subject))
        if run(_RESULT, lambda: _first_result(subject, result, notes)) and repeatable:
            repeats = run(_TWICE, lambda: _twice(elements, again))
            if elements.cache_info().currsize and elements().misfit:
                kept.remove(_RESULT)
                advice = "A compiled program has the same shapes and dtypes for all values: pad the"
                advice += " result or convert it to what is declared."
                findings.append(Finding(_RESULT, elements().misfit, advice))
            run(_INPUTS, lambda: _unchanged(subject, again))
            run("no JAX inside", lambda: _no_jax(subject))
            for kind, check in comparing.items() if repeats else ():
                run(kind, check)
            with contextlib.suppress(OutOfTime):
                late = again(" after all other calls") if repeats else []
                if late:
                    findings.extend(late)
                    kept.remove(_TWICE)
                    repeats = False
            if repeats and in_threads:
                run(THREADS, lambda: threads_findings(elements()))
            if not repeats:  # which is why other results differ
                findings[:] = [one for one in findings if one.kind not in comparing]
                kept[:] = [kind for kind in kept if kind not in comparing]
                left_out |= dict.fromkeys(comparing, "its results are not repeatable")
                methods.clear()
            if not any(one.what.startswith("it prints") for one in findings):
                run("no printing", lambda: _no_printing("".join(text)))
    return Check(
        subject.name, flavor, tuple(findings), tuple(kept), left_out, methods, tuple(notes)
    )


def _source(subject: Subject) -> Iterator[Finding]:
    for one in impurities(subject.callback.host.current, subject.leading):
        yield Finding("source", f"it {one.does}: {one.what}, {one.where}", f"{one.advice}.")


def _first_result(
    subject: Subject, result: list[np.ndarray], notes: list[str]
) -> Iterator[Finding]:
    """Run it for the first time, keep its result, and note numbers that became equal."""
    try:
        result.extend(subject.run())
    except ResultError as error:
        advice = "Declare what it returns, or return what it declares."
        yield Finding(_RESULT, str(error), advice)
    except Exception as error:
        if isinstance(error, ValueError) and "read-only" in message_of(error):
            yield _writes(f"it fails on read-only arrays: {message_of(error)}")
            return
        advice = "Call the undecorated function with NumPy arrays to see where."
        yield Finding(_RESULT, f"it fails on these arguments: {one_line(error)}", advice)
    leaves = tree_leaves(subject.returned)
    for returned, got, path in zip(leaves, result, subject.paths, strict=False):
        if kind_of(got.dtype) == "f" and np.asarray(returned).dtype == np.float64 != got.dtype:
            numbers = np.sort(np.asarray(returned), axis=None)
            with np.errstate(all="ignore"):
                rounded = numbers.astype(got.dtype)
                gaps = np.diff(numbers) > _DISTINCT * np.abs(numbers[1:])
            lost = np.flatnonzero(gaps & (rounded[1:] == rounded[:-1]))
            if lost.size:
                one, other = numbers[lost[0] : lost[0] + 2].tolist()
                notes.append(
                    f"it returns float64{path and f' at {path}'}, and {got.dtype} is declared: "
                    f"{one!r} and {other!r} both become {rounded[lost[0]]}"
                )


def _twice(elements: Callable[[], Elements], again: Callable) -> Iterator[Finding]:
    """Run it again, and once more after other inputs, which it may remember."""
    found = again("")
    if not found:
        for values in list(zip(*elements().variants, strict=True))[1:]:
            elements().takes(list(values))
        found = again(" after calls with other arguments")
    yield from found


def _again(subject: Subject, result: list[np.ndarray], when: str) -> list[Finding]:
    try:
        wrong: Any = difference(subject.run(), result, subject.paths, REPEATED)
        what = f"returns {wrong}" if wrong else ""
    except Exception as error:
        what = f"fails: {one_line(error)}"
    advice = "Register it as io, which is called as often as the program says, or pass what "
    advice += "changes as an argument."
    return [Finding(_TWICE, f"a second call with the same inputs{when} {what}", advice)] * bool(
        what
    )


def _unchanged(subject: Subject, again: Callable) -> Iterator[Finding]:
    """Run it on writable arrays."""
    operands = [array.copy() for array in subject.operands]
    try:
        subject.run(operands, writable=True)
    except Exception as error:
        if not again(""):  # else it fails on any arrays
            advice = "Accept both read-only arrays, as from programs, and writable ones."
            what = f"it fails on writable arrays: {one_line(error)}"
            yield Finding(_INPUTS, what, advice)
        return
    wrong = difference(operands, subject.operands, subject.names, 1.0)
    if wrong:
        yield _writes(f"after the call its input is {wrong}")


def _writes(what: str) -> Finding:
    advice = (
        "Copy an argument before writing to it, as in np.array(x), or register the function as "
    )
    return Finding(_INPUTS, what, f"{advice}buffer, which writes into its result.")


def _no_jax(subject: Subject) -> Iterator[Finding | str]:
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
        advice = "Use NumPy in the host function: JAX may deadlock there."
        yield Finding("no JAX inside", f"it uses JAX: {use}", advice)


def _no_printing(text: str) -> Iterator[Finding]:
    line = text.strip().partition("\n")[0]
    if line:
        advice = "Print in a debug callback (jaxcb.debug), or register it as io."
        yield Finding("no printing", f"it prints {line[:60]!r}", advice)


class _Stream:
    """Stands in for a stream, and keeps what one thread writes to it."""

    def __init__(self, shown: Any, text: list[str]) -> None:
        self._shown, self._text, self._thread = shown, text, threading.get_ident()

    def write(self, text: str) -> int:
        is_warning = sys._getframe(1).f_globals.get("__name__") in _WARNINGS
        if threading.get_ident() != self._thread or is_warning:
            return self._shown.write(text)
        self._text.append(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shown, name)


@contextlib.contextmanager
def _printed() -> Iterator[list[str]]:
    """Yield a list that receives what this thread prints, in place of the screen."""
    text: list[str] = []
    with (
        _one_at_a_time,
        contextlib.redirect_stdout(_Stream(sys.stdout, text)),  # type: ignore[type-var]
        contextlib.redirect_stderr(_Stream(sys.stderr, text)),  # type: ignore[type-var]
    ):
        yield text
